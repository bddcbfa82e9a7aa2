package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/render"
)

//go:embed templates/*.html
var templateFiles embed.FS

// parseTemplates parses the templates.
func parseTemplates() (*template.Template, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"asset": assetURL, "clock": clock, "until": until, "stamp": stamp, "machine": machine, "opSign": opSign, "thousands": thousands, "length": render.Duration, "older": olderURL,
	}).ParseFS(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse templates: %w", err)
	}
	return t, nil
}

// head is what every page has.
type head struct {
	Title, Cluster string
	// Section is the current item of the navigation.
	Section string
	// HasStatus says that there is a page of streams and sinks.
	HasStatus bool
	// Self is the page's path and query.
	Self string
	// Now is the server's time.
	Now time.Time
}

func (p *Page) head(r *http.Request, title string) head {
	return head{HasStatus: p.o.Console != nil, Title: title, Cluster: p.past.source.Cluster(), Self: r.URL.RequestURI(), Now: p.o.Now().UTC()}
}

// fragment reports whether htmx wants a part of a page.
func fragment(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// render sends a template. Nothing is sent if it fails.
func (p *Page) render(w http.ResponseWriter, code int, name string, data any) error {
	b, err := p.html(name, data)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "HX-Request")
	w.WriteHeader(code)
	_, _ = w.Write(b) // the browser may have gone
	return nil
}

// html executes a template and escapes what controls or reorders text, wherever it came from.
func (p *Page) html(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return render.EscapeHTML(b.Bytes()), nil
}

// clock formats a time of day. The browser's script shows it in the reader's time zone.
func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// until formats the end of an interval: like clock, with its date if that is another one than that of the beginning.
func until(from, to time.Time) string {
	if from, to := from.UTC(), to.UTC(); from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		return stamp(to)
	}
	return clock(to)
}

// stamp formats a time with its date.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// machine formats a time for the attribute datetime and for URLs.
func machine(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// opSign returns the sign of an operation, as in the lines of tattler log.
func opSign(op event.Op) string {
	switch op {
	case event.Created:
		return "+"
	case event.Deleted:
		return "−"
	case event.Entered:
		return ">"
	case event.Left:
		return "<"
	case event.Snapshot:
		return "="
	case event.Gap, event.Absent:
		return "!"
	}
	return "~"
}

// thousands formats a number with separators.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// olderURL returns the URL of a list alone for the URL of its page.
func olderURL(page string) string { return "/entries" + strings.TrimPrefix(page, "/") }
