package mqtt

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(string) (sink.Sink, error) { panic("the suite is in integration/sinks/mqtt") })
}

const canary = "w0rdw0rdw0rdw0rd"

// loader knows only this kind of sink: package kinds imports this package.
func loader() *config.Loader {
	parse := func(address string) (config.Options, error) { return FromURL(address) }
	return &config.Loader{Sinks: []config.SinkType{{
		Name: "mqtt", New: func() config.Options { return &Options{} },
		Schemes: map[string]func(string) (config.Options, error){"mqtt": parse, "mqtts": parse},
	}}}
}

func load(options string) (*Options, error) {
	text := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: a\n  mqtt:\n    " + strings.ReplaceAll(options, "\n", "\n    ") + "\n"
	c, err := loader().Parse("t.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*Options), nil
}

// check checks an error's text, each half of want separately: the configuration formats the key its own way.
func check(t *testing.T, why string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", why, err)
		}
		return
	}
	key, rest, _ := strings.Cut(want, ": ")
	if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), rest) {
		t.Errorf("%s: %v, want %q", why, err, want)
	}
}

func TestOptions(t *testing.T) {
	with := func(more string) string { return "{url: 'mqtt://h', " + more + "}" }
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "url: mqtt://h", ""},
		{"no URL", "{}", "url: missing"},
		{"no scheme", "url: h:1883", "url: must begin with mqtts://"},
		{"another scheme", "url: 'http://u:" + canary + "@h'", "url: must begin with mqtts://"},
		{"no host", "url: mqtt://:1883", "url: must begin with"},
		{"a port that is invalid", "url: 'mqtt://h:" + canary + "'", "url: not a URL"},
		{"a user in it", "url: 'mqtt://u:" + canary + "@h'", "url: must not contain a user"},
		{"a topic in it", "url: mqtt://h/a/b", "url: must be a scheme and a host only"},
		{"a query in it", "url: 'mqtt://h?password=" + canary + "'", "url: must be a scheme and a host only"},
		{"no template", with("topic: '{{'"), "topic: unclosed action"},
		{"a wrong name in it", with("topic: '{{.Data.Title}}'"), "topic: can't evaluate field Title"},
		{"a wildcard of one level", with("topic: 'a/+'"), "topic: has a wildcard"},
		{"a wildcard of all", with("topic: 'a/#'"), "topic: has a wildcard"},
		{"NUL", with(`topic: "a\0"`), "topic: control character"},
		{"too long", with("topic: '" + strings.Repeat("a", 65536) + "'"), "topic: longer than 65535"},
		{"what may be absent becomes _", with("topic: '{{.Data.Resource.Namespace}}'"), ""},
		{"empty levels are topics", with("topic: '/a//b/'"), ""},
		{"a client that is invalid", with(`clientId: "a\n"`), "clientId: such as a newline"},
		{"a user that is invalid", with(`user: "a\n"`), "user: such as a newline"},
		{"a token alone", with("insecure: true, password: " + canary), ""},
		{"a password that is too long", with("password: " + canary + strings.Repeat("a", 65536)), "password: longer than 65535"},
		{"expiry in parts of seconds", with("expiry: 1500ms"), "expiry: whole seconds"},
		{"expiry beyond the field", with("expiry: 1200000h"), "expiry: at most 136 years"},
		{"keep-alive in parts of seconds", with("keepAlive: 1500ms"), "keepAlive: whole seconds"},
		{"keep-alive beyond the field", with("keepAlive: 19h"), "keepAlive: from 1s to 18h"},
		{"time goes forward", with("timeout: -1s"), `timeout: "-1s" is negative`},
		{"half of a pair", "{url: 'mqtts://h', tls: {cert: a}}", "tls: cert and key belong together"},
		{"TLS without TLS", with("tls: {ca: a}"), "tls: the url does not begin with mqtts://"},
	} {
		_, err := load(tc.text)
		check(t, tc.why, err, tc.want)
	}
	_, err := New("tattler/test", Options{URL: "mqtts://h", TLS: sink.TLS{CA: "/nonexistent"}})
	check(t, "no such CA", err, "mqtt sink: tls: ca: open /nonexistent")
}

func TestOptionKeys(t *testing.T) {
	got, err := load(`url: mqtts://h:1
topic: a/b
retain: true
expiry: 1h
clientId: c
user: u
password: p
keepAlive: 5s
timeout: 3s
tls: {ca: a, cert: b, key: c, serverName: d}`)
	want := &Options{
		URL: "mqtts://h:1", Topic: "a/b", Retain: true, Expiry: time.Hour, ClientID: "c", User: "u", Password: "p",
		KeepAlive: 5 * time.Second, Timeout: 3 * time.Second, TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestFromURL(t *testing.T) {
	l := loader()
	for _, tc := range []struct {
		why, address string
		want         Options
	}{
		{"a host", "mqtt://h", Options{URL: "mqtt://h"}},
		{"a topic", "MQTT://h:1883/a/b", Options{URL: "mqtt://h:1883", Topic: "a/b"}},
		{"a topic that begins with an empty level", "mqtt://h//a", Options{URL: "mqtt://h", Topic: "/a"}},
		{"a template", "mqtt://h/c/{{.Data.Op}}", Options{URL: "mqtt://h", Topic: "c/{{.Data.Op}}"}},
		{"a template, escaped", "mqtt://h/c/%7B%7B.Data.Op%7D%7D", Options{URL: "mqtt://h", Topic: "c/{{.Data.Op}}"}},
		{"a user", "mqtts://u:p%40%23@[::1]:1/c", Options{URL: "mqtts://[::1]:1", Topic: "c", User: "u", Password: "p@#"}},
		{"the rest", "mqtts://h/c?retain=true&clientId=i&expiry=1h&keepAlive=5s&timeout=3s&ca=/ca", Options{
			URL: "mqtts://h", Topic: "c", Retain: true, ClientID: "i", Expiry: time.Hour, KeepAlive: 5 * time.Second, Timeout: 3 * time.Second,
			TLS: sink.TLS{CA: "/ca"},
		}},
	} {
		s, err := l.SinkFromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if got := *s.Options.(*Options); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.why, got, tc.want)
		}
	}
	for _, tc := range []struct{ why, address, want string }{
		{"no host", "mqtt:", "must begin with mqtts://"},
		{"no host behind slashes", "mqtt:///c", "must begin with mqtts://"},
		{"an unknown key", "mqtt://u:" + canary + "@h/c?qos=" + canary, "unknown key in the query: known are ca, clientId"},
		{"no truth", "mqtt://u:" + canary + "@h/c?retain=" + canary, "retain must be true or false"},
		{"no duration", "mqtt://u:" + canary + "@h/c?timeout=" + canary, "timeout must be a duration"},
		{"a query that is invalid", "mqtt://u:" + canary + "@h/c?a=%zz", "invalid query"},
		{"a topic that is invalid", "mqtt://u:" + canary + "@h/%zz", "not a URL"},
		{"a wildcard", "mqtt://u:" + canary + "@h/a/#", "contains no #"},
		{"the other wildcard", "mqtt://u:" + canary + "@h/a/+", "has a wildcard"},
		{"a password with a slash", "mqtt://u:" + canary + "/" + canary + "@h/c", "not a URL"},
		{"a password with a number sign", "mqtt://u:" + canary + "#" + canary + "@h/c", "not a URL"},
		{"TLS without TLS", "mqtt://u:" + canary + "@h/c?ca=/ca", "does not begin with mqtts://"},
	} {
		_, err := l.SinkFromURL(tc.address)
		check(t, tc.why, err, tc.want)
	}
}

func TestTopic(t *testing.T) {
	for value, want := range map[string]string{
		"": "_", "web": "web", "a/b": "a_b", "+": "_", "#": "_", "a\x00b\n": "a_b_", "\xff": "_", "ü": "ü",
	} {
		if got := cleanLevel(value); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}
