package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// load loads a file with one sink that has the options.
func load(options string) (*Options, error) {
	l := &config.Loader{
		Sinks:     []config.SinkType{{Name: "redis", New: func() config.Options { return &Options{} }}},
		LookupEnv: func(string) (string, bool) { return "hunter2-and-more", true },
	}
	c, err := l.Parse("t.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: a\n  redis: "+options+"\n"))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*Options), nil
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "{url: 'redis://h'}", ""},
		{"no URL", "{}", "url: missing"},
		{"another scheme", "{url: 'http://h'}", "must begin with rediss://"},
		{"no host", "{url: 'redis:///0'}", "must begin with"},
		{"a database with a name", "{url: 'redis://:${env:A}@h/main'}", "the number of a database"},
		{"a query", "{url: 'redis://:${env:A}@h?stream=a'}", "options have their own keys"},
		{"a password that spoils the URL", "{url: 'redis://:${env:A}%zz@h'}", "not a URL"},
		{"a template that is invalid", "{url: 'redis://h', stream: '{{'}", "stream: "},
		{"a wrong name in a template", "{url: 'redis://h', stream: '{{.Data.Resource.Nam}}'}", "Nam"},
		{"a name that is empty at times", "{url: 'redis://h', stream: '{{.Data.Resource.Namespace}}'}", "empty name"},
		{"a name by template", "{url: 'redis://h', stream: 'a:{{.Data.Resource.Namespace}}'}", ""},
		{"fewer than none", "{url: 'redis://h', maxLen: -1}", "maxLen: must not be negative"},
		{"too many replicas", "{url: 'redis://h', replicas: 101}", "between 0 and 100"},
		{"TLS without TLS", "{url: 'redis://h', tls: {insecure: true}}", "does not begin with rediss://"},
		{"half of a pair", "{url: 'rediss://h', tls: {cert: a}}", "cert and key belong together"},
	} {
		_, err := load(tc.text)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(strings.ReplaceAll(err.Error(), "sinks[0].redis.", ""), tc.want) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a credential: %v", tc.why, err)
		}
	}
	if err := (Options{URL: "redis://h", Timeout: -1}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
		t.Errorf("a negative timeout: %v", err)
	}
	if _, err := New("tattler/test", Options{URL: "rediss://h", TLS: sink.TLS{CA: "/nonexistent/ca.pem"}}); err == nil || !strings.Contains(err.Error(), "tls: ca: open") {
		t.Errorf("no file: %v", err)
	}
}

func TestOptionKeys(t *testing.T) {
	got, err := load(`
    url: rediss://u:${env:A}@example.com:1/2
    stream: changes
    maxLen: 1000
    replicas: 2
    timeout: 3s
    tls: {ca: a, cert: b, key: c, serverName: d}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Options{
		URL: "rediss://u:hunter2-and-more@example.com:1/2", Stream: "changes", MaxLen: 1000, Replicas: 2, Timeout: 3 * time.Second,
		TLS: sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
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
		{"redis://h", Options{URL: "redis://h"}, "redis redis://h:6379/0"},
		{"redis://u:hunter2@h:1/2?stream=a&maxLen=9&timeout=3s&insecure=true", Options{Insecure: true, URL: "redis://u:hunter2@h:1/2", Stream: "a", MaxLen: 9, Timeout: 3 * time.Second}, "redis redis://h:1/2"},
		{"rediss://:hunter2@[::1]", Options{URL: "rediss://:hunter2@[::1]"}, "redis rediss://[::1]:6379/0"},
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
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if o, err := FromURL("rediss://h?ca=/a&cert=/b&key=/c"); err != nil || o.TLS != (sink.TLS{CA: "/a", Cert: "/b", Key: "/c"}) {
		t.Errorf("TLS: %+v, %v", o, err)
	}
	for address, want := range map[string]string{
		"redis://u:hunter2%zz@h":           "not a URL",
		"redis://u:1?hunter2@h":            "unknown key in the query: known are ca, cert",
		"redis://u:hunter2@h?maxLen=many":  "maxLen must be",
		"redis://u:hunter2@h?timeout=soon": "timeout must be",
		"redis://u:hunter2@h?a=%zz":        "invalid query",
	} {
		if _, err := FromURL(address); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q and no credential", address, err, want)
		}
	}
}

// TestRefusalsOnFake checks that the server's errors are temporary, have a hint, and show no credential. These are
// errors that a real server rarely returns; the suite in integration/sinks/redis has others.
func TestRefusalsOnFake(t *testing.T) {
	for said, want := range map[string]string{
		"LOADING Redis is loading the dataset in memory":          "has just started",
		"MASTERDOWN Link with MASTER is down":                     "lost its master",
		"MISCONF Redis is configured to save RDB snapshots":       "cannot write to its disk",
		"CLUSTERDOWN Hash slot not served":                        "this is a cluster",
		"ERR max number of clients reached":                       "max number of clients",
		"ERR something about hunter2":                             "something about ***",
		"MOVED 3999 127.0.0.1:1":                                  "this is a cluster",
		"NOREPLICAS Not enough good replicas to write.":           "min-replicas-to-write",
		"READONLY You can't write against a read only replica.":   "must name the master",
		"WRONGPASS invalid username-password pair or is disabled": "is wrong",
	} {
		s := must(New("tattler/test", Options{URL: "redis://u:hunter2@" + answer(t, "-"+said+"\r\n"), Timeout: time.Minute}))(t)
		n, err := s.Send(t.Context(), sinktest.Messages(0, 2))
		var p *sink.PermanentError
		if n != 0 || err == nil || errors.As(err, &p) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %d, %v; want a passing error with %q", said, n, err, want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestTimeoutOnFake checks that a server that does not answer costs only the timeout.
func TestTimeoutOnFake(t *testing.T) {
	s := must(New("tattler/test", Options{URL: "redis://" + answer(t, ""), Timeout: 20 * time.Millisecond}))(t)
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); err == nil || !strings.Contains(err.Error(), "no answer within 20ms (timeout)") {
		t.Error(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// answer returns the address of a server that gives the same answer to each command.
func answer(t *testing.T, text string) string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() }) // it may be closed
			running.Go(func() {
				defer conn.Close()
				for b := make([]byte, 64<<10); ; {
					n, err := conn.Read(b)
					if err != nil {
						return
					}
					fmt.Fprint(conn, strings.Repeat(text, max(1, strings.Count(string(b[:n]), "*"))))
				}
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
