package otlp

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// load loads a file with one sink that has the options.
func load(options string) (*Options, error) {
	l := &config.Loader{
		Sinks:     []config.SinkType{{Name: "otlp", New: func() config.Options { return &Options{} }}},
		LookupEnv: func(string) (string, bool) { return "hunter2-and-more", true },
	}
	c, err := l.Parse("t.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: a\n  otlp: "+options+"\n"))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*Options), nil
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "{endpoint: 'http://h'}", ""},
		{"no endpoint", "{}", "endpoint: missing"},
		{"no scheme", "{endpoint: 'h:4317'}", "must begin with https://"},
		{"no host", "{endpoint: 'https:///x'}", "must begin with"},
		{"a path for gRPC", "{endpoint: 'http://h/v1/logs'}", "must not have a path"},
		{"a path for HTTP", "{endpoint: 'http://h/otlp/v1/logs', protocol: http}", ""},
		{"a query for gRPC", "{endpoint: 'http://h?token=${env:A}'}", "must not have a query"},
		{"a query for HTTP", "{endpoint: 'https://h?token=${env:A}', protocol: http}", ""},
		{"no protocol of ours", "{endpoint: 'http://h', protocol: udp}", "neither grpc nor http"},
		{"no body of ours", "{endpoint: 'http://h', body: text}", "neither event nor object"},
		{"no compression of ours", "{endpoint: 'http://h', compression: zstd}", "neither gzip nor none"},
		{"batches too small", "{endpoint: 'http://h', maxBatchBytes: 1Ki}", "at least 65536"},
		{"time goes forward", "{endpoint: 'http://h', timeout: -1s}", "is negative"},
		{"a header's name", "{endpoint: 'http://h', headers: {'a b': c}}", `"a b" is not a header name`},
		{"a header of the protocol", "{endpoint: 'http://h', headers: {Content-Type: c}}", "Content-Type cannot be set"},
		{"a header of gRPC's", "{endpoint: 'http://h', headers: {grpc-timeout: c}}", "grpc-timeout cannot be set"},
		{"a header twice", "{endpoint: 'http://h', headers: {x-a: c, X-A: d}}", "X-A is set twice"},
		{"a newline from a file", "{endpoint: 'http://h', headers: {x-a: \"${env:A}\\n\"}}", "value of x-a contains"},
		{"two credentials", "{endpoint: 'http://u:${env:A}@h', headers: {Authorization: c}}", "conflicts with the user"},
		{"an attribute without a name", "{endpoint: 'http://h', resource: {'': c}}", "an attribute has no name"},
		{"TLS without TLS", "{endpoint: 'http://h', tls: {insecure: true}}", "does not begin with https://"},
		{"half of a pair", "{endpoint: 'https://h', tls: {cert: a}}", "cert and key belong together"},
		{"a password that spoils the URL", "{endpoint: 'http://u:${env:A}%zz@h'}", "not a URL"},
	} {
		_, err := load(tc.text)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a credential: %v", tc.why, err)
		}
	}
	if err := (Options{Endpoint: "http://h", Timeout: -1}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
		t.Errorf("a negative timeout: %v", err)
	}
	if _, err := New("tattler/test", Options{Endpoint: "https://h", TLS: sink.TLS{CA: "/nonexistent/ca.pem"}}); err == nil || !strings.Contains(err.Error(), "tls: ca: open") {
		t.Errorf("no file: %v", err)
	}
}

func TestOptionKeys(t *testing.T) {
	got, err := load(`
    endpoint: https://u:${env:A}@example.com
    protocol: http
    body: object
    headers: {X-A: b}
    resource: {deployment.environment.name: prod}
    compression: none
    maxBatchBytes: 1Mi
    timeout: 3s
    tls: {ca: a, cert: b, key: c, serverName: d}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Options{
		Endpoint: "https://u:hunter2-and-more@example.com", Protocol: HTTP, Body: BodyObject, Headers: map[string]string{"X-A": "b"},
		Resource: map[string]string{"deployment.environment.name": "prod"}, Compression: None, MaxBatchBytes: 1 << 20,
		Timeout: 3 * time.Second, TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFromURL(t *testing.T) {
	for _, tc := range []struct {
		address string
		want    Options
		place   string // the sink's String
	}{
		{"otlp://h:4317", Options{Endpoint: "http://h:4317", Protocol: GRPC}, "otlp http://h:4317"},
		{"otlp://h", Options{Endpoint: "http://h", Protocol: GRPC}, "otlp http://h:4317"},
		{"otlps://u:hunter2@h", Options{Endpoint: "https://u:hunter2@h", Protocol: GRPC}, "otlp https://h:4317"},
		{"otlp+http://h", Options{Endpoint: "http://h", Protocol: HTTP}, "otlp http://h:4318"},
		{"OTLP+https://[::1]/x/v1/logs", Options{Endpoint: "https://[::1]/x/v1/logs", Protocol: HTTP}, "otlp https://[::1]:4318"},
		{"otlp://h?body=object&compression=none&timeout=3s", Options{Endpoint: "http://h", Protocol: GRPC, Body: BodyObject, Compression: None, Timeout: 3 * time.Second}, "otlp http://h:4317"},
	} {
		o, err := FromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.address, err)
			continue
		}
		if d := cmp.Diff(&tc.want, o); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.address, d)
		}
		s, err := New("tattler/test", *o)
		if err != nil || s.String() != tc.place {
			t.Errorf("%s: %v, %v; want %s", tc.address, s, err, tc.place)
		}
	}
	if o, err := FromURL("otlps://h?ca=/a&cert=/b&key=/c"); err != nil || o.TLS != (sink.TLS{CA: "/a", Cert: "/b", Key: "/c"}) {
		t.Errorf("TLS: %+v, %v", o, err)
	}
	for address, want := range map[string]string{
		"otlp:":                           "://HOST:PORT",
		"otlp://u:hunter2%zz@h":           "not a URL",
		"otlp://u:1?hunter2@h":            "unknown key in the query: known are body, ca, cert",
		"otlp://u:hunter2@h?timeout=soon": "timeout must be",
		"otlp://u:hunter2@h?a=%zz":        "invalid query",
	} {
		if _, err := FromURL(address); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q and no credential", address, err, want)
		}
	}
}
