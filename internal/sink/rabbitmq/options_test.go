package rabbitmq

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// loader knows only this kind of sink.
func loader() *config.Loader {
	fromURL := func(address string) (config.Options, error) { return FromURL(address) }
	return &config.Loader{Sinks: []config.SinkType{{
		Name: "rabbitmq", New: func() config.Options { return &Options{} },
		Schemes: map[string]func(string) (config.Options, error){"amqp": fromURL, "amqps": fromURL},
	}}}
}

func parse(text string) (*Options, error) {
	c, err := loader().Parse("config.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: bus\n  rabbitmq: "+text+"\n"))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*Options), nil
}

func TestOptions(t *testing.T) {
	long := strings.Repeat("a", 256)
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "{url: 'amqp://h', queue: q}", ""},
		{"an exchange", "{url: 'amqps://u:p4ss@h:1/v', exchange: x, routingKey: 'a.{{.Data.Op}}'}", ""},
		{"no URL", "{queue: q}", "url: missing"},
		{"no scheme", "{url: 'h:5672', queue: q}", "must begin with amqps://"},
		{"another scheme", "{url: 'http://u:p4ss@h', queue: q}", "must begin with amqps://"},
		{"not a URL", "{url: 'amqp://u:p4ss@h:x', queue: q}", "not a URL"},
		{"a query", "{url: 'amqp://u:p4ss@h?heartbeat=1', queue: q}", "options have their own keys"},
		{"two vhosts", "{url: 'amqp://h/a/b', queue: q}", "%2F"},
		{"nowhere to go", "{url: 'amqp://h'}", "exchange or queue"},
		{"two places to go", "{url: 'amqp://h', queue: q, exchange: x}", "excludes exchange and routingKey"},
		{"a key for a queue", "{url: 'amqp://h', queue: q, routingKey: x}", "excludes exchange and routingKey"},
		{"too long an exchange", "{url: 'amqp://h', exchange: " + long + "}", "longer than 255"},
		{"too long a queue", "{url: 'amqp://h', queue: " + long + "}", "longer than 255"},
		{"too long a key", "{url: 'amqp://h', exchange: x, routingKey: " + long + "}", "a routing key of 256 bytes"},
		{"a field that is not there", "{url: 'amqp://h', exchange: x, routingKey: '{{.Nothing}}'}", "Nothing"},
		{"no room", "{url: 'amqp://h', queue: q, maxMessageBytes: 1Ki}", "at least 8192"},
		{"too many heartbeats", "{url: 'amqp://h', queue: q, heartbeat: 1ms}", "at least 1s"},
		{"time goes forward", "{url: 'amqp://h', queue: q, timeout: -1s}", "negative"},
		{"TLS without TLS", "{url: 'amqp://h', queue: q, tls: {insecure: true}}", "does not begin with amqps://"},
		{"half of a pair", "{url: 'amqps://h', queue: q, tls: {cert: a}}", "cert and key"},
		{"a key that is invalid", "{url: 'amqp://h', queue: q, mandatory: true}", "mandatory"},
	} {
		o, err := parse(tc.text)
		if tc.want == "" && err == nil {
			continue
		}
		if err == nil || tc.want == "" || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: %+v, %v, want %q", tc.why, o, err, tc.want)
		}
	}
}

func TestOptionKeys(t *testing.T) {
	got, err := parse(`
    url: amqps://u:p@h/v
    exchange: x
    routingKey: k
    allowUnroutable: true
    maxMessageBytes: 16Mi
    heartbeat: 5s
    timeout: 3s
    tls: {ca: a, cert: b, key: c, serverName: d}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Options{
		URL: "amqps://u:p@h/v", Exchange: "x", RoutingKey: "k", AllowUnroutable: true, MaxMessageBytes: 16 << 20,
		Heartbeat: 5 * time.Second, Timeout: 3 * time.Second, TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestParseServer(t *testing.T) {
	for text, want := range map[string]string{
		"amqp://h":                   "h:5672 false /",
		"amqp://h/":                  "h:5672 false /",
		"amqps://h/%2F":              "h:5671 true /",
		"amqp://[::1]:5673/team%2Fa": "[::1]:5673 false team/a",
	} {
		s, err := parseServer(text)
		if got := fmt.Sprint(s.HostPort, " ", s.Secure, " ", s.vhost); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestFromURL(t *testing.T) {
	for address, want := range map[string]Options{
		"amqp://h?queue=q": {URL: "amqp://h", Queue: "q"},
		"amqp://u:p%2F@h:5673/v?exchange=x&key={{.Data.Op}}.a+b&insecure=true": {URL: "amqp://u:p%2F@h:5673/v", Exchange: "x", RoutingKey: "{{.Data.Op}}.a b", Insecure: true},
		"amqps://h?queue=q&ca=/ca.pem":                                         {URL: "amqps://h", Queue: "q", TLS: sink.TLS{CA: "/ca.pem"}},
		"amqps://h?queue=q&insecure=true":                                      {URL: "amqps://h", Queue: "q", TLS: sink.TLS{Insecure: true}},
	} {
		s, err := loader().SinkFromURL(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if d := cmp.Diff(&want, s.Options); d != "" {
			t.Errorf("%s (-want +got):\n%s", address, d)
		}
	}
}

func TestFromURLErrors(t *testing.T) {
	for _, tc := range []struct{ why, address, want string }{
		{"no host", "amqp:///v?queue=q", "must begin with amqps://"},
		{"nowhere to go", "amqp://u:p4ss@h/v", "exchange or queue"},
		{"a slash in the password", "amqp://u:p4ss/p4ss@h/v?queue=q", "%2F"},
		{"a slash behind digits in it", "amqp://u:1/p4ss@h?queue=q", "%2F"},
		{"a question mark in it", "amqp://u:p4ss?p4ss@h/v?queue=q", "%2F"},
		{"a wrong escape", "amqp://u:p4ss%zz@h/v?queue=q", "not a URL"},
		{"an unknown key", "amqp://u:p4ss@h?p4ss=q", "known are ca, exchange, insecure, key, queue"},
		{"no key", "amqp://u:p4ss@h?p4ss=%zz", "invalid query"},
		{"a truth that is invalid", "amqps://u:p4ss@h?queue=q&insecure=p4ss", "must be true or false"},
	} {
		_, err := loader().SinkFromURL(tc.address)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}
