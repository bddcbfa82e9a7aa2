package sink

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

func TestName(t *testing.T) {
	web := Samples()[2] // an update of the Deployment web in the namespace shop
	dashes := func(value string) string { return strings.ReplaceAll(value, ".", "-") }
	for _, tc := range []struct{ why, text, want string }{
		{"a text", "changes.all", "changes.all"},
		{"fields", "{{.Data.Resource.Namespace}}.{{.Data.Op}}", "shop.updated"},
		{"what is printed is clean, the text around is not", `a.{{print "b.c"}}.d`, "a.b-c.d"},
		{"in each branch", `{{if .Data.Gap}}g.g{{else}}{{with "x.y"}}{{.}}{{end}}{{end}}{{range $i, $c := .Data.Changes}}.{{$c.Path}}{{end}}`, "x-y.spec-replicas"},
		{"a pipeline, once", `{{"A.B" | lower | printf "%s!"}}`, "a-b!"},
		{"what it defines, and uses", `{{define "n"}}{{.Data.Resource.Name}}.{{print "b.c"}}{{end}}{{template "n" .}}.{{block "m" .}}{{print "d.e"}}{{end}}`, "web.b-c.d-e"},
		{"a variable prints nothing", `{{$x := "a.b"}}{{$x}}`, "a-b"},
	} {
		n, err := NewName(tc.text, dashes, nil)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if got, err := n.Of(web); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.why, got, err, tc.want)
		}
	}
}

func TestNameErrors(t *testing.T) {
	check := func(name string) error {
		if strings.Contains(name, " ") {
			return fmt.Errorf("%q has a space", name)
		}
		return nil
	}
	for _, tc := range []struct{ why, text, want string }{
		{"no template", "{{", "unclosed action"},
		{"no such field", "{{.Data.Nome}}", "can't evaluate field Nome"},
		{"nothing", "", "for an event with op snapshot: the template makes an empty name"},
		{"nothing for some", "{{.Data.Resource.Namespace}}", "for an event with op created: the template makes an empty name"},
		{"a wrong name", "a {{.ID}}", "has a space"},
	} {
		if _, err := NewName(tc.text, nil, check); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
	n, err := NewName("x{{.Source}}", nil, check)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Of(&event.Event{Source: " "}); err == nil {
		t.Error("a name that only this event has is not checked")
	}
}

func TestBlot(t *testing.T) {
	b := &Mask{}
	b.Add(MinSecret, "pa", `s3cr"t/`, "s3cr", "")
	for in, want := range map[string]string{
		"pa stays":                        "pa stays",
		`is s3cr"t/`:                      "is ***",
		`quoted "s3cr\"t/"`:               `quoted "***"`,
		"?q=s3cr%22t%2F":                  "?q=***",
		"Basic czNjciJ0Lw==":              "Basic ***",
		"s3cr alone":                      "*** alone",
		"two\nlines\x00 with s3cr":        "two\nlines\x00 with ***",
		strings.Repeat("s3cr", 2) + "!":   "******!",
		"nothing of that: connection off": "nothing of that: connection off",
	} {
		if got := b.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := b.Excerpt([]byte("two\nlines\x00 with s3cr")); got != "two lines with ***" {
		t.Errorf("excerpt %q", got)
	}
	inner := errors.New("s3cr")
	if err := b.Error(inner); err.Error() != "***" || !errors.Is(err, inner) || b.Error(nil) != nil {
		t.Errorf("error %v", err)
	}
	if got := (*Mask)(nil).Text("x"); got != "x" {
		t.Error(got)
	}
}
