package notify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// standard is the default template.
const standard = `{{if .Several}}{{counts .Counts}}
{{end}}{{range .Stories -}}
{{if $.Several}}{{icon .}} {{bold .Title}}{{with .Link}} {{link "show" .}}{{end}}
{{end}}{{with .Note}}{{.}}
{{end}}{{range .Fields}}• {{code .Path}}: {{if eq .Op "add"}}set to {{code .To}}{{else if eq .Op "remove"}}removed, was {{code .From}}{{else}}{{if eq .Op "reorder"}}order {{end}}{{code .From}} → {{code .To}}{{end}}{{if and .Manager (ne .Manager "?")}} by {{.Manager}}{{end}}
{{end}}{{with .MoreFields}}• and {{.}} more fields
{{end}}{{with .Owned}}• owned: {{counts .}}
{{end}}{{end}}{{with .More}}…and {{.}} more changes{{end}}`

// maxText bounds the output of a template, in bytes.
const maxText = 4 << 20

const escaper = "tattlerEscape"

// parseTemplate compiles a template, or the standard one if the text is empty, and runs it on samples, so that a
// wrong name is found before the first change. It escapes what the template prints for the markup.
func parseTemplate(source string, m markup) (*template.Template, error) {
	if source == "" {
		source = standard
	}
	t, err := template.New("template").Option("missingkey=error").Funcs(template.FuncMap{
		"bold":   m.strong,
		"code":   func(v any) text { return text(m.code(printed(v))) },
		"link":   func(label, url any) text { return text(m.link(m.plain(label), printed(url))) },
		"icon":   icon,
		"counts": listed,
		escaper:  m.plain,
	}).Parse(source)
	if err != nil {
		return nil, err
	}
	sink.AppendToActions(t, escaper)
	all := &summary{}
	k := owners{}
	for _, e := range sink.Samples() {
		single := &summary{}
		single.add(&sink.Message{Event: e}, k, nil)
		all.add(&sink.Message{Event: e}, k, nil)
		if _, err := execute(t, single.message(k, sample)); err != nil {
			return nil, fmt.Errorf("for an event with op %s: %w", e.Data.Op, err)
		}
	}
	if _, err := execute(t, all.message(k, sample)); err != nil {
		return nil, fmt.Errorf("for several events: %w", err)
	}
	return t, nil
}

func sample(id string) string { return "https://example.com/changes/" + id }

// printed formats a value as a template does, on one line.
func printed(v any) string {
	switch v := v.(type) {
	case string:
		return clean(v)
	case text:
		return string(v)
	case event.Op:
		return string(v)
	}
	return clean(fmt.Sprint(v))
}

func execute(t *template.Template, m *Message) (string, error) {
	b := &bounded{}
	if err := t.Execute(b, m); err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b.text)), nil
}

// bounded is a buffer with a maximum length.
type bounded struct{ text []byte }

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxText {
		return 0, fmt.Errorf("the text is longer than %d bytes", maxText)
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

var errCut = errors.New("the text is too long, and cannot be cut without breaking the service's markup")

// details are the levels of detail to try until a message fits: the maximum of stories, fields and counts.
var details = []struct{ stories, fields, counts int }{
	{maxStories + maxProminent, maxFields, 2 * maxCounts}, {maxStories, minorFields, 2 * maxCounts}, {20, minorFields, 2 * maxCounts},
	{20, 1, 2 * maxCounts}, {10, 1, 2 * maxCounts}, {5, 1, 16}, {2, 1, 16}, {1, 1, 16}, {1, 0, 8}, {1, 0, 3},
}

// fit renders a message with less and less detail until it fits: first fewer fields, then fewer stories and counts.
// The message counts what it leaves out. If even the shortest form is too long, fit cuts it at the end of a line.
func fit(t *template.Template, m *Message, u markup) (string, error) {
	for i, d := range details {
		s, err := execute(t, m.less(min(d.stories, u.stories), d.fields, d.counts))
		if err != nil {
			return "", err
		}
		if u.length(s) <= u.limit {
			return s, nil
		}
		if i < len(details)-1 {
			continue
		}
		const said = "\n…cut: too long for this service."
		for u.length(s+said) > u.limit {
			i := strings.LastIndexByte(s, '\n')
			if i <= 0 {
				return "", errCut
			}
			s = s[:i]
		}
		return s + said, nil
	}
	return "", errCut
}

// less returns the message with at most so many stories, fields per story, and counts.
func (m *Message) less(stories, fields, counts int) *Message {
	out := *m
	out.Stories, out.Counts = nil, fewer(m.Counts, counts)
	for i, s := range m.Stories {
		if i >= stories {
			out.More += s.Changes
			continue
		}
		if more := len(s.Fields) - fields; more > 0 {
			s.Fields, s.MoreFields = s.Fields[:fields], s.MoreFields+more
		}
		s.Owned = fewer(s.Owned, counts)
		out.Stories = append(out.Stories, s)
	}
	return &out
}

// fewer returns at most so many counts; the last one sums up the rest.
func fewer(counts []Count, most int) []Count {
	if len(counts) <= most {
		return counts
	}
	rest := Count{Kind: "others"}
	for _, c := range counts[most-1:] {
		rest.N += c.N
	}
	return append(slices.Clone(counts[:most-1]), rest)
}
