package trace

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// load loads a file with traces.
func load(options string) (*Options, error) {
	l := &config.Loader{
		Traces:    func() config.Options { o := DefaultOptions(); return &o },
		LookupEnv: func(string) (string, bool) { return "hunter2-and-more", true },
	}
	c, err := l.Parse("t.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\ntraces: "+options+"\n"))
	if err != nil {
		return nil, err
	}
	return c.Traces.Options.(*Options), nil
}

// TestOptions: a mistake is an error that names its place and the key, without a credential.
func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "{endpoint: 'http://h'}", ""},
		{"a credential with TLS", "{endpoint: 'https://u:${env:A}@h', headers: {x-a: '${file:/dev/null}'}}", "is empty"},
		{"no endpoint", "{sample: 1}", "t.yaml:3:9: traces.endpoint: missing; an example is http://collector:4318"},
		{"no keys", "{}", "traces.endpoint: missing"},
		{"no scheme", "{endpoint: 'h:4318'}", "t.yaml:3:20: traces.endpoint: must begin with https://"},
		{"the scheme of a sink", "{endpoint: 'otlp+http://h:4318'}", "must begin with https://"},
		{"more than all", "{endpoint: 'http://h', sample: 10}", "t.yaml:3:40: traces.sample: want a number from 0 to 1"},
		{"less than nothing", "{endpoint: 'http://h', sample: -0.1}", "traces.sample: want a number from 0 to 1"},
		{"not a number", "{endpoint: 'http://h', sample: .nan}", "traces.sample: want"},
		{"infinite", "{endpoint: 'http://h', sample: Inf}", "traces.sample: want"},
		{"longer than spans are kept", "{endpoint: 'http://h', timeout: 61s}", "t.yaml:3:41: traces.timeout: want at most 1m"},
		{"as long as spans are kept", "{endpoint: 'http://h', timeout: 1m}", ""},
		{"an unknown key", "{endpoint: 'http://h', samples: 1}", "did you mean sample?"},
		{"another protocol", "{endpoint: 'http://h', protocol: grpc}", "traces.protocol: unknown key"},
		{"a header of the protocol", "{endpoint: 'http://h', headers: {Content-Type: c}}", "traces.headers: Content-Type cannot be set"},
		{"TLS without TLS", "{endpoint: 'http://h', tls: {insecure: true}}", "traces.tls: the endpoint does not begin with https://"},
		{"a password in clear text", "{endpoint: 'http://u:${env:A}@h'}", "the password would be sent to h in clear text"},
		{"a header in clear text", "{endpoint: 'http://h', headers: {x-team: '${env:A}'}}", "would be sent to h in clear text"},
		{"where that is allowed", "{endpoint: 'http://u:${env:A}@h', insecure: true}", ""},
		{"on this machine", "{endpoint: 'http://u:${env:A}@127.0.0.1'}", ""},
		{"a password that spoils the URL", "{endpoint: 'https://u:${env:A}%zz@h'}", "not a URL"},
	} {
		_, err := load(tc.text)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		var positions config.Errors
		if err != nil && (strings.Contains(err.Error(), "hunter2") || !errors.As(err, &positions) || positions[0].Line != 3) {
			t.Errorf("%s: a credential, or no position: %v", tc.why, err)
		}
	}
	o, err := load("{endpoint: 'https://h/x', sample: 0.25, headers: {authorization: 'Bearer ${env:A}'}, resource: {a: b}, timeout: 3s, tls: {insecure: true}}")
	want := &Options{
		Endpoint: "https://h/x", Sample: 0.25, Headers: map[string]string{"authorization": "Bearer hunter2-and-more"}, Resource: map[string]string{"a": "b"},
		Timeout: 3 * time.Second, TLS: sink.TLS{Insecure: true},
	}
	if d := cmp.Diff(want, o); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestPath: the default path is that of traces, and another path is left alone.
func TestPath(t *testing.T) {
	for from, to := range map[string]string{
		"http://h": "http://h/v1/traces", "http://h:4318/": "http://h:4318/v1/traces", "https://u:a%2Fb@h": "https://u:a%2Fb@h/v1/traces",
		"https://h/otlp/v1/traces": "https://h/otlp/v1/traces", "https://h?token=a": "https://h/v1/traces?token=a",
	} {
		if got := (&Options{Endpoint: from}).client().Endpoint; got != to {
			t.Errorf("%s leads to %s, want %s", from, got, to)
		}
	}
}
