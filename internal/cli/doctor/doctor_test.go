package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/usage"
)

// closed returns an address at which nothing listens. It is that of a connection, so no other program gets it.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}

func TestHealthy(t *testing.T) {
	s := serve(t)
	o, out := s.options(t, "sinks:\n- name: all\n  file: {path: "+filepath.Join(s.dir, "all.jsonl")+"}\n- name: out\n  log: {}\n")
	x := s.examine(t, o)
	s.golden(t, x, "healthy")
	if err := Run(t.Context(), o); err != nil || !strings.HasSuffix(out.String(), "\nNothing is wrong.\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, asked := range s.Recorded() {
		if asked.Method != http.MethodGet && !strings.Contains(asked.Path, "reviews") {
			t.Errorf("it wrote: %+v", asked)
		}
	}
}

func TestMissingRights(t *testing.T) {
	s := serve(t)
	s.user = "kubernetes-admin"
	for _, r := range []string{"list secrets", "watch secrets", "get configmaps", "watch namespaces"} {
		s.denied[r] = true
	}
	o, _ := s.options(t, "web: {address: \"127.0.0.1:0\", tokens: true}\n")
	s.denied["create tokenreviews"] = true
	s.golden(t, s.examine(t, o), "rights")
	if err := Run(t.Context(), o); !errors.Is(err, ErrFindings) {
		t.Errorf("%v", err)
	}
}

// TestNothingAllowed: checks that need a kind say that they were not made.
func TestNothingAllowed(t *testing.T) {
	s := serve(t)
	for _, kind := range []string{"secrets", "configmaps", "namespaces"} {
		s.denied["list "+kind] = true
	}
	o, _ := s.options(t, "")
	x := s.examine(t, o)
	if l, title := level(t, x, "rights.watch"); l != Error || title != "nothing of this may be watched" {
		t.Errorf("%s: %s", l, title)
	}
	if l, _ := level(t, x, "server.streaming"); l != Note {
		t.Errorf("%+v", x.findings)
	}
}

func TestRightsUnknown(t *testing.T) {
	s := serve(t)
	s.noReviews = true
	o, _ := s.options(t, "")
	x := s.examine(t, o)
	if l, title := level(t, x, "rights.review"); l != Warning || !strings.Contains(title, "no reviews") {
		t.Errorf("%s: %s", l, title)
	}
}

// TestDeadServer gives findings at once, for a server that is away and one that hangs.
func TestDeadServer(t *testing.T) {
	s := serve(t)
	s.point(t, "http://"+closed(t))
	o, _ := s.options(t, "")
	s.golden(t, s.examine(t, o), "dead")

	s.hangs = true
	s.point(t, s.http.URL)
	o, _ = s.options(t, "")
	o.limit(checkReach, "", 50*time.Millisecond)
	x := s.examine(t, o)
	if l, title := level(t, x, "server.reachable"); l != Error || !strings.Contains(title, "does not answer") {
		t.Errorf("%s: %s", l, title)
	}
	s.point(t, "http://"+closed(t))
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer page.Close()
	s.point(t, page.URL)
	o, _ = s.options(t, "")
	if l, title := level(t, s.examine(t, o), "server.reachable"); l != Error || !strings.Contains(title, "is not a Kubernetes API server") {
		t.Errorf("%s: %s", l, title)
	}
}

// TestPoorServer: no streaming lists, no protobuf, a group that does not answer, and another time.
func TestPoorServer(t *testing.T) {
	s := serve(t)
	metrics := core("pods")
	metrics.Group, metrics.Version = "metrics.k8s.io", "v1beta1"
	s.Serve(metrics, "PodMetrics")
	s.SetStale("metrics.k8s.io", true)
	s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
	s.Misbehave(informertest.Fault{On: informertest.Lists, Protobuf: true, Code: http.StatusNotAcceptable})
	o, _ := s.options(t, "")
	now := time.Now().Truncate(time.Second)
	s.date = now.Add(90 * time.Second) // a Date is half a second old, on average
	o.host.now = func() time.Time { return now.Add(time.Second / 2) }
	o.host.limit = func(int) (int64, string) { return 32 << 20, "/sys/fs/cgroup/memory.max" }
	s.golden(t, s.examine(t, o), "poor")
}

// TestNoSuchNamespace: a named namespace that does not exist is a finding, unless the user may not ask for it.
func TestNoSuchNamespace(t *testing.T) {
	s := serve(t)
	s.Put(core("namespaces"), "", "shop", nil)
	o, _ := s.options(t, "")
	for _, tc := range []struct{ namespaces, want string }{
		{"[shop]", ""},
		{"[shop, shopp]", "there is no namespace shopp (yet)"},
		{"['sh*', shopp]", "there is no namespace shopp (yet)"},
		{"[a, shop, b]", "there are no namespaces a, b (yet)"},
	} {
		o.Setup.File = s.write(t, "namespaces.yaml", "apiVersion: tattler.dev/v1alpha1\nkind: Config\nwatch:\n- resources: {include: [configmaps]}\n"+
			"  namespaces: {include: "+tc.namespaces+"}\njournal: {path: "+filepath.Join(s.dir, "journal.db")+"}\n")
		got := ""
		for _, f := range s.examine(t, o).findings {
			if f.Check == "server.namespaces" {
				got = f.Title
				if f.Level != Warning || f.Action == "" {
					t.Errorf("%+v", f)
				}
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.namespaces, got, tc.want)
		}
	}
}

// TestSinks reaches each kind of sink, or says why not; a message is only sent on request.
func TestSinks(t *testing.T) {
	s := serve(t)
	var got []string
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e struct{ Subject string }
		_ = json.NewDecoder(r.Body).Decode(&e)
		got = append(got, r.Method+" "+r.URL.Path+" "+e.Subject)
	}))
	defer hook.Close()
	text := "sinks:\n- name: hook\n  webhook: {url: " + hook.URL + "/geheim, insecure: true}\n"
	o, _ := s.options(t, text)
	x := s.examine(t, o)
	if l, title := level(t, x, "sinks.reachable"); l != OK || strings.Contains(title, "geheim") {
		t.Errorf("%s: %s", l, title)
	}
	o.TestSinks = true
	if l, title := level(t, s.examine(t, o), "sinks.reachable"); l != OK || !strings.HasSuffix(title, "took a test message") {
		t.Errorf("%s: %s", l, title)
	}
	if want := []string{"HEAD / ", "POST /geheim /apis/tattler.dev/v1/tests/doctor"}; !slices.Equal(got, want) {
		t.Errorf("the receiver got %q, want %q", got, want)
	}
}

// TestDeadSinks: each kind of sink whose receiver is away is named, without its credentials, within the deadline.
func TestDeadSinks(t *testing.T) {
	s, at := serve(t), closed(t)
	o, _ := s.options(t, "")
	o.limit(checkSink, "", 2*time.Second)
	o.Setup.To = []string{
		"nats://" + at + "/x", "kafka://" + at + "/x", "redis://" + at + "/0", "amqp://" + at + "/?queue=q", "mqtt://" + at + "/x", "otlp://" + at,
		"otlp+http://" + at, "http://" + at + "/geheim?insecure=true", "smtp://" + at + "/?from=a@example.com&to=b@example.com",
		"file:" + filepath.Join(s.dir, "no", "such", "folder"), "exec:/no/such/command",
	}
	began := time.Now()
	x := s.examine(t, o)
	failed := 0
	for _, f := range x.findings {
		if f.Section != Sinks {
			continue
		}
		if f.Level != Error || f.Action == "" || strings.Contains(f.Title, "geheim") {
			t.Errorf("%+v", f)
		}
		failed++
	}
	if failed != len(o.Setup.To) || time.Since(began) > time.Minute {
		t.Errorf("%d of %d, after %v", failed, len(o.Setup.To), time.Since(began))
	}
}

// TestHangingSinks: a sink that does not answer is a finding that says for how long, and what to do, whether or not it heeds
// its deadline.
func TestHangingSinks(t *testing.T) {
	s := serve(t)
	ended := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer silent.Close()
	defer close(ended)
	for _, send := range []bool{false, true} {
		o, _ := s.options(t, "sinks:\n- name: hook\n  webhook: {url: "+silent.URL+"/geheim, insecure: true}\n") // of this examination alone
		o.limit(checkSink, "", 50*time.Millisecond)
		o.TestSinks = send
		x := s.examine(t, o)
		if l, title := level(t, x, "sinks.reachable"); l != Error || title != "hook does not answer within 50ms" {
			t.Errorf("--test-sinks=%t: %s: %s", send, l, title)
		}
		if got := action(t, x, "sinks.reachable"); !strings.Contains(got, "Check that the receiver runs") {
			t.Error(got)
		}
	}

	o, _ := s.options(t, "")
	o.limit(checkSink, "", 20*time.Millisecond)
	deaf := &examination{o: o, host: o.host}
	f := deaf.within(t.Context(), &config.Sink{Name: "deaf"}, func(context.Context) Finding {
		<-ended
		return Finding{}
	})
	if f.Level != Error || f.Title != "deaf does not answer within 20ms" {
		t.Errorf("%+v", f)
	}
}

// TestWidth: lines fit the terminal; without one, 80 columns.
func TestWidth(t *testing.T) {
	all := []Finding{finding("", Sinks, "reachable", Error, strings.Repeat("word ", 60), strings.Repeat("word ", 60), strings.Repeat("word ", 60))}
	for _, tc := range []struct{ terminal, want int }{{0, 80}, {60, 60}, {120, 120}, {10, 40}} {
		var out bytes.Buffer
		if err := write(&terminal.IO{Out: &out, Width: func() int { return tc.terminal }}, all); err != nil {
			t.Fatal(err)
		}
		longest := 0
		for line := range strings.Lines(out.String()) {
			longest = max(longest, len([]rune(strings.TrimSuffix(line, "\n"))))
		}
		if longest > tc.want || longest < tc.want-len("word ") {
			t.Errorf("a terminal of %d columns: lines of %d:\n%s", tc.terminal, longest, out.String())
		}
	}
}

func TestOutputs(t *testing.T) {
	s := serve(t)
	o, out := s.options(t, "")
	o.Output = "json"
	if err := Run(t.Context(), o); err != nil {
		t.Error(err)
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Findings) < 10 || r.Summary[OK] < 5 || r.Summary[Error] != 0 {
		t.Errorf("%v: %+v", err, r)
	}
	o.Output = "yaml"
	var wrong *usage.Error
	if err := Run(t.Context(), o); !errors.As(err, &wrong) {
		t.Error(err)
	}
}
