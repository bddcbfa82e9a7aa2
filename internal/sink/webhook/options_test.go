package webhook

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "url: https://example.com/changes", ""},
		{"no URL", "{}", "url: missing"},
		{"no scheme", "url: example.com", "url: must begin with https://"},
		{"no host", "url: 'https:///changes'", "url: must begin with"},
		{"a header's name", "{url: 'http://h', headers: {'a b': c}}", `headers: "a b"`},
		{"a header of ours", "{url: 'http://h', headers: {webhook-id: c}}", "webhook-id cannot be set"},
		{"a header of the protocol", "{url: 'http://h', headers: {content-length: c}}", "content-length cannot be set"},
		{"a header twice", "{url: 'http://h', headers: {x-a: c, X-A: d}}", "X-A is set twice"},
		{"a newline from a file", "{url: 'http://h', headers: {x-a: \"c\\n\"}}", "value of x-a contains a control character"},
		{"a secret that is not coded", "{url: 'http://h', secret: 'whsec_?'}", "secret: not base64 after whsec_"},
		{"a template that is invalid", "{url: 'http://h', template: '{{'}", "template: "},
		{"a wrong name in a template", "{url: 'http://h', template: '{{.Data.Resource.Nam}}'}", "Nam"},
		{"what may be absent", "{url: 'http://h', template: '{{.Data.Resource.Owner.Name}}'}", "for an event with op snapshot"},
		{"and is asked for", "{url: 'http://h', template: '{{with .Data.Resource.Owner}}{{.Name}}{{end}}'}", ""},
		{"time goes forward", "{url: 'http://h', timeout: -1s}", "timeout"},
		{"too many at a time", "{url: 'http://h', parallel: 65}", "parallel: must be between 1 and 64"},
		{"half of a pair", "{url: 'https://h', tls: {cert: a}}", "cert and key belong together"},
		{"insecure, and trusting", "{url: 'https://h', tls: {ca: a, insecure: true}}", "insecure trusts any"},
		{"TLS without TLS", "{url: 'http://h', tls: {insecure: true}}", "does not begin with https://"},
		{"no file", "{url: 'https://h', tls: {ca: /nonexistent/ca.pem}}", "tls: ca: open /nonexistent/ca.pem"},
		{"a file without a certificate", "{url: 'https://h', tls: {ca: options_test.go}}", "contains no PEM certificate"},
		{"a pair that is invalid", "{url: 'https://h', tls: {cert: options.go, key: options.go}}", "cert and key"},
	} {
		var o Options
		if err := yaml.Unmarshal([]byte(tc.text), &o); err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		_, err := New("tattler/test", o)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}

func TestOptionKeys(t *testing.T) {
	const text = `
url: https://example.com
headers: {X-A: b}
secret: s
template: "{}"
timeout: 3s
parallel: 4
tls: {ca: a, cert: b, key: c, serverName: d, insecure: true}`
	var o Options
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	want := Options{
		URL: "https://example.com", Headers: map[string]string{"X-A": "b"}, Secret: "s", Template: "{}", Timeout: 3 * time.Second, Parallel: 4,
		TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d", Insecure: true},
	}
	if d := cmp.Diff(want, o); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestTemplate makes the body that PagerDuty's Events API v2 expects.
func TestTemplate(t *testing.T) {
	const text = `{"routing_key": "R0", "event_action": "trigger", "dedup_key": {{json .ID}}, "payload": {
		"summary": {{json (printf "%s %s" .Data.Op .Subject)}}, "severity": "info", "source": {{json .Source}},
		"custom_details": {{json .Data.Changes}} } }`
	var h http.Header
	var body []byte
	s := serve(t, Options{Template: text}, func(_ http.ResponseWriter, r *http.Request) {
		h = r.Header
		body, _ = io.ReadAll(r.Body)
	})
	m := sinktest.Messages(0, 1)
	if _, err := s.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		DedupKey string `json:"dedup_key"`
		Payload  struct {
			Summary       string
			CustomDetails []map[string]any `json:"custom_details"`
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if doc.DedupKey != m[0].ID || doc.Payload.Summary != "updated "+m[0].Event.Subject || doc.Payload.CustomDetails[0]["path"] != "spec.image" {
		t.Errorf("body %s", body)
	}
	if got := h.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

// TestTemplateFails: an event that a template cannot render is a permanent error, and nothing is sent.
func TestTemplateFails(t *testing.T) {
	for _, tc := range []struct{ why, template, contentType, want string }{
		{"JSON only by luck", `{"name": {{if eq .Data.Resource.Name "web"}}1{{end}}}`, "", "not valid JSON"},
		{"no JSON, and none is wanted", `name {{.Data.Resource.Name}}`, "text/plain", ""},
		{"fails for this event only", `{{if eq .Data.Resource.Name "web-0"}}{{index .Data.Changes 9}}{{end}}`, "text/plain", "render body"},
	} {
		requests := 0
		o := Options{Template: tc.template}
		if tc.contentType != "" {
			o.Headers = map[string]string{"Content-Type": tc.contentType}
		}
		s := serve(t, o, func(http.ResponseWriter, *http.Request) { requests++ })
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if tc.want == "" {
			if err != nil || requests != 1 {
				t.Errorf("%s: %v, %d requests", tc.why, err, requests)
			}
			continue
		}
		if got, _ := verdict(err); got != permanent || !strings.Contains(err.Error(), tc.want) || requests != 0 {
			t.Errorf("%s: %v, %d requests", tc.why, err, requests)
		}
	}
	endless := strings.Repeat(`{{printf "%999999s" "x"}}`, 20)
	if _, err := New("tattler/test", Options{URL: "http://h", Template: endless}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a body without end: %v", err)
	}
}
