package informer_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// reformer stands between a cluster and its server, and serves widgets in another form: with a default that
// a CRD got.
type reformer struct {
	next  http.RoundTripper
	form  atomic.Int32 // 0: as they are
	mute  atomic.Bool  // the OpenAPI documents do not show it
	stall atomic.Int64 // how late watches deliver, as a time.Duration
}

func (f *reformer) config(s *informertest.Server) *rest.Config {
	cfg := s.Config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		f.next = rt
		return f
	})
	return cfg
}

func (f *reformer) RoundTrip(r *http.Request) (*http.Response, error) {
	form := f.form.Load()
	if r.URL.Path == "/openapi/v3" {
		if f.mute.Load() {
			form = 0
		}
		doc := fmt.Sprintf(`{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=F%d"}}}`, form)
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(doc)), Request: r,
		}, nil
	}
	resp, err := f.next.RoundTrip(r)
	if err == nil && form > 0 && resp.StatusCode == http.StatusOK {
		resp.Body = &reformed{ReadCloser: resp.Body, with: fmt.Appendf(nil, `"spec":{"color":"red%d",`, form)}
	}
	if err == nil && r.URL.Query().Has("watch") {
		resp.Body = &stalled{resp.Body, &f.stall}
	}
	return resp, err
}

// stalled is a body that is delivered late.
type stalled struct {
	io.ReadCloser
	by *atomic.Int64
}

func (b *stalled) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if by := b.by.Load(); by > 0 {
		<-time.After(time.Duration(by))
	}
	return n, err
}

// reformed is a body with the default. The server under test writes whole objects at once.
type reformed struct {
	io.ReadCloser
	with []byte
	left []byte
}

func (b *reformed) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		buf := make([]byte, 1<<16)
		n, err := b.ReadCloser.Read(buf)
		if n == 0 {
			return 0, err
		}
		b.left = bytes.ReplaceAll(buf[:n], []byte(`"spec":{`), b.with)
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// audited is a server, and a cluster that audits every so often, in a bubble. It returns what ended, and
// what the audits found.
type audited struct {
	*testing.T
	server *informertest.Server
	form   *reformer
	every  time.Duration
	dir    string

	mu     sync.Mutex
	audits []informer.AuditInfo
	gaps   []string
}

func audits(t *testing.T, every time.Duration, test func(*audited)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &audited{T: t, server: informertest.NewServer(), form: &reformer{}, every: every, dir: t.TempDir()}
		a.server.Serve(widgets, "Widget")
		two(a.server)
		test(a)
	})
}

// run runs a cluster for as long as f takes.
func (a *audited) run(o informer.SourceOptions, f func(*informer.Cluster, *informer.Source)) {
	a.Helper()
	c, err := informer.NewCluster(a.form.config(a.server), informer.Options{Checkpoint: a.dir, AuditEvery: a.every, Hooks: informer.Hooks{
		Audit: func(i informer.AuditInfo) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.audits = append(a.audits, i)
		},
		Gap: func(_ informer.Stream, g informer.Gap) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.gaps = append(a.gaps, g.Reason)
		},
	}})
	if err != nil {
		a.Fatal(err)
	}
	s, err := c.Source(widgets, o)
	if err != nil {
		a.Fatal(err)
	}
	ctx, cancel := context.WithCancel(a.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	if err := s.Wait(ctx); err != nil {
		a.Fatal(err)
	}
	f(c, s)
	cancel()
	if err := <-done; err != nil {
		a.Errorf("Run: %v", err)
	}
}

// expire has the watch end, and the server forget what came after its version.
func (a *audited) expire() {
	a.server.Skip(10)
	a.server.Compact()
	a.server.CloseWatches()
}

// found returns and forgets what audits and gaps there were.
func (a *audited) found() string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, i := range a.audits {
		text := fmt.Sprintf("audit of %d", i.Objects)
		if i.Contents {
			text += fmt.Sprintf(", reread %d", i.Reread)
		}
		if i.Err != nil {
			text += ": " + i.Err.Error()
		}
		all = append(all, text)
	}
	for _, g := range a.gaps {
		all = append(all, "gap: "+g)
	}
	a.audits, a.gaps = nil, nil
	return strings.Join(all, "; ")
}

// colors returns the spec.color of a and b in the cache.
func colors(t *testing.T, c *informer.Cluster, s *informer.Source) string {
	t.Helper()
	i, err := informer.Unstructured(c, widgets, informer.On(s))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var all []string
	for _, name := range []string{"a", "b"} {
		o, err := i.Get("n", name)
		if err != nil {
			t.Fatal(err)
		}
		color, _ := o.Object["spec"].(map[string]any)["color"].(string)
		all = append(all, color)
	}
	return strings.Join(all, " ")
}

// TestServedForm: a CRD gets a default. The versions of its objects stay; their content does not.
func TestServedForm(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			view, err := informer.Unstructured(c, widgets, informer.On(s))
			if err != nil {
				a.Fatal(err)
			}
			sub, err := view.Subscribe("test", informer.SubscribeOptions{SkipInitial: true})
			if err != nil {
				a.Fatal(err)
			}
			a.form.form.Store(1)
			<-time.After(3 * time.Minute)
			if got := colors(a.T, c, s); got != "red1 red1" {
				a.Errorf("while it runs, the default is in %q", got)
			}
			if got := a.found(); got != "audit of 2, reread 2" {
				a.Errorf("found %s", got)
			}
			for range 2 {
				change, err := sub.Next(a.Context())
				if err != nil || change.Op != informer.Updated || !change.Relisted ||
					change.OldResourceVersion() != change.ResourceVersion() {
					a.Errorf("the change: %+v, %v", change, err)
				}
			}
			<-time.After(10 * time.Minute)
			if got := a.found(); got != "audit of 2, reread 0" {
				a.Errorf("once all API servers serve it: %s", got)
			}
			a.form.form.Store(2)
			a.expire()
			<-time.After(5 * time.Second)
			if got := colors(a.T, c, s); got != "red2 red2" {
				a.Errorf("after a 410 the next default is in %q", got)
			}
			if got := a.found(); got != "gap: expired" {
				a.Errorf("found %s", got)
			}
			<-time.After(20 * time.Minute)
			a.found()
		})
		a.form.form.Store(3)
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			if n := s.Status()[0].Lists; n != 0 {
				a.Fatalf("%d lists: it was not resumed", n)
			}
			<-time.After(time.Minute)
			if got := colors(a.T, c, s); got != "red3 red3" {
				a.Errorf("after a restart the next default is in %q", got)
			}
			if got := a.found(); got != "audit of 2, reread 2" {
				a.Errorf("after a restart: %s", got)
			}
		})
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			<-time.After(time.Minute)
			if got := a.found(); got != "audit of 2" || colors(a.T, c, s) != "red3 red3" {
				a.Errorf("after a restart in the same form: %s", got)
			}
		})
	})
}

// TestSameVersionInAList: the form changes unseen, but every list compares contents.
func TestSameVersionInAList(t *testing.T) {
	audits(t, -1, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			a.form.form.Store(1)
			a.expire()
			<-time.After(5 * time.Second)
			if got := colors(a.T, c, s); got != "red1 red1" {
				a.Errorf("the default is in %q", got)
			}
		})
	})
}

// TestForkOvertaken: etcd was restored and its kind changed, but bookmarks have moved our version on and
// the new history has overtaken it, so that no version shows it. An audit does.
func TestForkOvertaken(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*informertest.Server)
		want   string
	}{
		{"changed", func(s *informertest.Server) { s.Put(widgets, "n", "a", spec("forked")) }, "a b"},
		{"set back", nil, "a b"},
		{"deleted", func(s *informertest.Server) { s.Delete(widgets, "n", "a") }, "b"},
		{"created", func(s *informertest.Server) { s.Put(widgets, "n", "c", spec("forked")) }, "a b c"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			audits(t, time.Hour, func(a *audited) {
				a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
					back := a.server.Snapshot()
					if tc.change == nil {
						a.server.Put(widgets, "n", "a", spec("lost"))
					}
					a.server.Skip(1000) // other kinds' writes
					<-time.After(2 * time.Minute)
					if v := s.Status()[0].Version; v != "2002" && v != "2003" {
						t.Fatalf("bookmarks have not moved the version: %s", v)
					}
					a.server.Restore(back)
					if tc.change != nil {
						tc.change(a.server)
					}
					a.server.Skip(2000)
					<-time.After(3 * time.Hour)
					// An audit finds it, unless the newest object was asked for before, after a silent watch.
					if got := a.found(); !strings.Contains(got, "gap: missed") && !strings.Contains(got, "gap: history-changed") {
						t.Errorf("found %s", got)
					}
					if got := cached(t, c, s); got != tc.want {
						t.Errorf("cached %q, want %q", got, tc.want)
					}
					if e := s.Status()[0].Epoch; e != 2 {
						t.Errorf("epoch %d", e)
					}
					if got, want := versions(t, c, s), serverVersions(a.server); got != want {
						t.Errorf("versions %s, the server has %s", got, want)
					}
				})
			})
		})
	}
}

// versions returns what the cache has, as "name@version".
func versions(t *testing.T, c *informer.Cluster, s *informer.Source) string {
	t.Helper()
	i, err := informer.Metadata(c, widgets, informer.On(s))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var all []string
	for o, err := range i.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.Name+"@"+o.ResourceVersion)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func serverVersions(s *informertest.Server) string {
	var all []string
	for _, o := range s.Objects(widgets) {
		u := unstructured.Unstructured{Object: o}
		all = append(all, u.GetName()+"@"+u.GetResourceVersion())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func cached(t *testing.T, c *informer.Cluster, s *informer.Source) string {
	t.Helper()
	i, err := informer.Unstructured(c, widgets, informer.On(s))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var all []string
	for _, name := range []string{"a", "b", "c"} {
		if _, err := i.Get("n", name); err == nil {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// TestAuditWhileBusy: what changes while an audit reads is no finding.
func TestAuditWhileBusy(t *testing.T) {
	audits(t, time.Minute, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			for i := range 3000 {
				<-time.After(time.Second)
				switch i % 3 {
				case 0:
					a.server.Put(widgets, "n", "c", spec(i))
				case 1:
					a.server.Put(widgets, "n", "a", spec(i))
				case 2:
					a.server.Delete(widgets, "n", "c")
				}
			}
			if got := a.found(); strings.Contains(got, "gap") || strings.Contains(got, ":") || !strings.Contains(got, "audit of ") {
				a.Errorf("found %s", got)
			}
			if n := s.Status()[0]; n.Audits < 20 || n.Lists != 1 {
				a.Errorf("%d audits, %d lists", n.Audits, n.Lists)
			}
		})
	})
}

// TestAuditRefused: a server that fails is asked ever more rarely, and nothing else suffers.
func TestAuditRefused(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			asked := 0
			a.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Has("limit") && !r.URL.Query().Has("watch") {
					asked++
					http.Error(w, "no", http.StatusServiceUnavailable)
					return true
				}
				return false
			})
			<-time.After(10 * time.Hour)
			if asked < 4 || asked > 16 {
				a.Errorf("asked %d times in 10 hours", asked)
			}
			if st := s.Status()[0]; !st.Synced || st.State != informer.Watching || st.Lists != 1 {
				a.Errorf("status %+v", st)
			}
			a.server.Intercept(nil)
			a.found()
			<-time.After(3 * time.Hour)
			if got := a.found(); !strings.Contains(got, "audit of 2") {
				a.Errorf("once it answers: %s", got)
			}
		})
	})
}
