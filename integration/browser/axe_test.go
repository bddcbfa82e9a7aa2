package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// axeVersion is the version that tools/axe.sh downloads.
const axeVersion = "4.14.1"

// axeSource is the text of axe-core.
var axeSource = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache folder: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(cache, "tattler", "axe-core", "axe-"+axeVersion+".min.js"))
	if err != nil {
		return "", fmt.Errorf("axe-core is missing: run tools/axe.sh: %w", err)
	}
	return string(text), nil
})

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML, FailureSummary string
		Target               []any
	}
}

func (v violation) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s (%s): %s", v.ID, v.Impact, v.Help)
	for _, n := range v.Nodes[:min(4, len(v.Nodes))] {
		fmt.Fprintf(&s, "\n  %v\n  %s\n  %s", n.Target, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", " "))
	}
	if more := len(v.Nodes) - 4; more > 0 {
		fmt.Fprintf(&s, "\n  and %d more", more)
	}
	return s.String()
}

// violations runs axe-core.
func (b *tab) violations() (found []violation) {
	b.t.Helper()
	source, err := axeSource()
	if err != nil {
		b.t.Fatal(err)
	}
	b.eval(source + "; typeof axe")
	report := b.eval(`axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`)
	if err := json.Unmarshal([]byte(report), &found); err != nil {
		b.t.Fatal(err)
	}
	return found
}

// accessible requires that axe-core finds no violation on the page.
func (b *tab) accessible(where string) {
	b.t.Helper()
	for _, v := range b.violations() {
		b.t.Errorf("%s: %v", where, v)
	}
}

// TestAxe: axe-core finds what is wrong with a page. Without this, an empty report would prove little.
func TestAxe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; style-src 'unsafe-inline'; img-src data:")
		_, _ = io.WriteString(w, `<!doctype html><html><title>x</title><link rel=icon href=data:,><main><h1>x</h1><img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><p style="color: #aaa; background: #bbb">pale</main>`)
	}))
	defer s.Close()
	b := open(t, s.URL, look{})
	b.visit("/")
	var ids []string
	for _, v := range b.violations() {
		ids = append(ids, v.ID)
	}
	if got := strings.Join(ids, " "); got != "color-contrast html-has-lang" {
		t.Errorf("found %q", got)
	}
}
