package nats_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/sink/nats"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(string) (sink.Sink, error) { panic("the suite is in integration/sinks/nats") })
}

const canary = "w0rdw0rdw0rdw0rd"

func load(options string) (*nats.Options, error) {
	l := &config.Loader{Sinks: kinds.Tattler().Types()}
	text := "apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: a\n  nats:\n    " + strings.ReplaceAll(options, "\n", "\n    ") + "\n"
	c, err := l.Parse("t.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*nats.Options), nil
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
	with := func(more string) string { return "{servers: ['nats://h'], " + more + "}" }
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "servers: ['nats://h']", ""},
		{"several, and a user", "servers: ['tls://u:p@h:4222', 'tls://g']", ""},
		{"no server", "{}", "servers: missing"},
		{"no scheme", "servers: ['h:4222']", "servers: number 1 must begin with nats://"},
		{"another scheme", "servers: ['nats://h', 'http://u:" + canary + "@h']", "servers: number 2 must begin with nats://"},
		{"no host", "servers: ['nats://:4222']", "servers: number 1 must begin with"},
		{"a port that is invalid", "servers: ['nats://u@h:" + canary + "']", "servers: number 1 is not a URL"},
		{"a subject in it", "servers: ['nats://h/a.b']", "servers: number 1 must be a scheme and a host only"},
		{"a query in it", "servers: ['nats://h?token=" + canary + "']", "servers: number 1 must be a scheme and a host only"},
		{"half WebSockets", "servers: ['nats://h', 'ws://h']", "servers: ws:// and wss:// cannot be mixed"},
		{"no template", with("subject: '{{'"), "subject: unclosed action"},
		{"a wrong name in it", with("subject: '{{.Data.Title}}'"), "subject: can't evaluate field Title"},
		{"a wildcard", with("subject: 'a.*'"), "subject: has a wildcard"},
		{"a space", with("subject: 'a b'"), "subject: must not contain spaces"},
		{"an empty word", with("subject: 'a..b'"), "subject: has an empty word before"},
		{"the server's", with("subject: '$JS.API.x'"), "subject: is reserved"},
		{"too long", with("subject: '" + strings.Repeat("a", 1025) + "'"), "subject: longer than 1024"},
		{"what may be absent becomes _", with("subject: 'a.{{.Data.Resource.Namespace}}'"), ""},
		{"a stream's name", with("stream: {name: a.b}"), "stream: the name must not contain spaces"},
		{"a stream without a name", with("stream: {create: true}"), "stream: create needs a name"},
		{"a stream that is not made", with("stream: {name: a, replicas: 3}"), "stream: only a name is allowed"},
		{"storage", with("stream: {name: a, create: true, storage: tape}"), "stream: storage must be file or memory"},
		{"replicas", with("stream: {name: a, create: true, replicas: 6}"), "stream: replicas must be between 1 and 5"},
		{"a window longer than the age", with("stream: {name: a, create: true, maxAge: 1m, duplicates: 2m}"), "stream: duplicates must be at most maxAge"},
		{"a subject of the stream", with("stream: {name: a, create: true, subjects: ['a.>', 'b.*.c', 'd..e']}"), "stream: subjects: \"d..e\" has an empty word before"},
		{"no subject of the stream", with("subject: '{{.Data.Op}}', stream: {name: a, create: true}"), "stream: begins with a template"},
		{"two ways to say who", with("user: u, password: " + canary + ", token: " + canary), "user, token, credentials and nkey exclude each other: exclude"},
		{"who in two places", "{servers: ['nats://u:" + canary + "@h'], token: t}", "servers: an address already contains a user"},
		{"no password", with("user: u"), "password: missing"},
		{"no user", with("password: " + canary), "user: the password needs one"},
		{"an inbox", with("inboxPrefix: '_INBOX.>'"), "inboxPrefix: has a wildcard"},
		{"time goes forward", with("timeout: -1s"), `timeout: "-1s" is negative`},
		{"half of a pair", with("tls: {cert: a}"), "tls: cert and key belong together"},
		{"TLS without TLS", "{servers: ['ws://h'], tls: {ca: a}}", "tls: begins with ws://"},
	} {
		_, err := load(tc.text)
		check(t, tc.why, err, tc.want)
	}
	for _, tc := range []struct {
		why  string
		o    nats.Options
		want string
	}{
		{"no such CA", nats.Options{Servers: []string{"tls://h"}, TLS: sink.TLS{CA: "/nonexistent"}}, "nats sink: tls: ca: open /nonexistent"},
		{"no such credentials", nats.Options{Servers: []string{"nats://h"}, Credentials: "/nonexistent"}, "nats sink: credentials: open /nonexistent"},
		{"no such key", nats.Options{Servers: []string{"nats://h"}, NKey: "/nonexistent"}, "nats sink: nkey: open /nonexistent"},
	} {
		_, err := nats.New("tattler/test", tc.o)
		check(t, tc.why, err, tc.want)
	}
}

func TestOptionKeys(t *testing.T) {
	for text, want := range map[string]*nats.Options{
		`servers: ["nats://h:1", "tls://g:2"]
subject: a.b
stream: {name: S, create: true, subjects: [a.b, c.>], storage: memory, replicas: 3, maxAge: 24h, maxBytes: 1Gi, duplicates: 5m}
user: u
password: p
inboxPrefix: in
timeout: 3s
tls: {ca: a, cert: b, key: c, serverName: d}`: {
			Servers: []string{"nats://h:1", "tls://g:2"}, Subject: "a.b",
			Stream: nats.Stream{
				Name: "S", Create: true, Subjects: []string{"a.b", "c.>"}, Storage: nats.Memory, Replicas: 3,
				MaxAge: 24 * time.Hour, MaxBytes: 1 << 30, Duplicates: 5 * time.Minute,
			},
			User: "u", Password: "p", InboxPrefix: "in", Timeout: 3 * time.Second, TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
		},
		"{servers: ['tls://h'], token: t}":         {Servers: []string{"tls://h"}, Token: "t"},
		"{servers: ['nats://h'], credentials: /c}": {Servers: []string{"nats://h"}, Credentials: "/c"},
		"{servers: ['nats://h'], nkey: /n}":        {Servers: []string{"nats://h"}, NKey: "/n"},
	} {
		got, err := load(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestFromURL(t *testing.T) {
	l := &config.Loader{Sinks: kinds.Tattler().Types()}
	for _, tc := range []struct {
		why, address string
		want         nats.Options
	}{
		{"a host", "nats://h", nats.Options{Servers: []string{"nats://h"}}},
		{"a subject", "nats://h:4222/changes", nats.Options{Servers: []string{"nats://h:4222"}, Subject: "changes"}},
		{"a template", "nats://h/c.{{.Data.Op}}", nats.Options{Servers: []string{"nats://h"}, Subject: "c.{{.Data.Op}}"}},
		{"a template, escaped", "nats://h/c.%7B%7B.Data.Op%7D%7D", nats.Options{Servers: []string{"nats://h"}, Subject: "c.{{.Data.Op}}"}},
		{"a user, and several hosts", "TLS://u:p%40@h:1,g:2/c", nats.Options{Servers: []string{"tls://u:p%40@h:1", "tls://u:p%40@g:2"}, Subject: "c"}},
		{"a token", "tls://t0ken@h", nats.Options{Servers: []string{"tls://t0ken@h"}}},
		{"a stream", "wss://h/c?stream=S&create=true", nats.Options{Servers: []string{"wss://h"}, Subject: "c", Stream: nats.Stream{Name: "S", Create: true}}},
		{"the rest", "tls://h/c?credentials=/c&ca=/ca&timeout=3s", nats.Options{
			Servers: []string{"tls://h"}, Subject: "c", Credentials: "/c", TLS: sink.TLS{CA: "/ca"}, Timeout: 3 * time.Second,
		}},
		{"a key", "nats://h/c?nkey=/n", nats.Options{Servers: []string{"nats://h"}, Subject: "c", NKey: "/n"}},
	} {
		s, err := l.SinkFromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if got := *s.Options.(*nats.Options); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.why, got, tc.want)
		}
	}
	for _, tc := range []struct{ why, address, want string }{
		{"no host", "nats:", "must begin with nats://"},
		{"no host behind slashes", "nats:///c", "must begin with nats://"},
		{"an unknown key", "nats://u:" + canary + "@h/c?strem=" + canary, "unknown key in the query: known are ca, create"},
		{"no truth", "nats://u:" + canary + "@h/c?create=" + canary, "create must be true or false"},
		{"no duration", "nats://u:" + canary + "@h/c?timeout=" + canary, "timeout must be a duration"},
		{"a query that is invalid", "nats://u:" + canary + "@h/c?a=%zz", "invalid query"},
		{"a subject that is invalid", "nats://u:" + canary + "@h/%zz", "not a URL"},
		{"a password with a slash behind digits", "nats://u:1/" + canary + "@h/c", "in the subject as %40"},
		{"a password with a question mark", "nats://u:1?" + canary + "@h/c", "a ? in a password as %3F"},
		{"a password with a slash", "nats://u:" + canary + "/" + canary + "@h/c", "in the subject as %40"},
		{"a wrong escape in a password", "nats://u:" + canary + "%zz@h/c", "number 1 is not a URL"},
	} {
		_, err := l.SinkFromURL(tc.address)
		check(t, tc.why, err, tc.want)
	}
}

// TestPage checks that the configuration in docs/sinks/nats.md is valid.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sinks/nats.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		_, rest, _ := strings.Cut(string(page), "```"+language+"\n")
		text, _, _ := strings.Cut(rest, "```")
		return text
	}
	l := &config.Loader{Sinks: kinds.Tattler().Types(), LookupEnv: func(string) (string, bool) { return canary, true }}
	c, err := l.Parse("page.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\n"+block("yaml")))
	if err != nil || len(c.Sinks) != 1 {
		t.Errorf("the configuration: %v", err)
	}
	_, address, _ := strings.Cut(block("sh"), "--to '")
	address, _, _ = strings.Cut(address, "'")
	if s, err := l.SinkFromURL(address); err != nil || s.Type != "nats" {
		t.Errorf("the address %s: %v", address, err)
	}
}
