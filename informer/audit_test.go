package informer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// roundTrips is a function that is an http.RoundTripper.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// red gives every widget a default: spec.color.
func (a *audited) red(n int) {
	a.server.ChangeForm(widgets, func(o map[string]any) { o["spec"].(map[string]any)["color"] = fmt.Sprint("red", n) })
}

// audited is a server and a cluster that audits at an interval, in a bubble. It records gaps and the audits' findings.
type audited struct {
	*testing.T
	server *informertest.Server
	every  time.Duration
	dir    string
	// instead, if set, answers the cluster's requests; ask sends them to the server.
	instead func(r *http.Request, ask roundTrips) (*http.Response, error)

	mu     sync.Mutex
	audits []informer.AuditInfo
	gaps   []string
}

func audits(t *testing.T, every time.Duration, test func(*audited)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &audited{T: t, server: informertest.NewServer(), every: every, dir: t.TempDir()}
		a.server.Serve(widgets, "Widget")
		two(a.server)
		test(a)
	})
}

// run runs a cluster while f runs.
func (a *audited) run(o informer.SourceOptions, f func(*informer.Cluster, *informer.Source)) {
	a.Helper()
	cfg := a.server.Config()
	if a.instead != nil {
		cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTrips(func(r *http.Request) (*http.Response, error) { return a.instead(r, rt.RoundTrip) })
		})
	}
	c, err := informer.NewCluster(cfg, informer.Options{Checkpoint: a.dir, AuditEvery: a.every, Hooks: informer.Hooks{
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

// expire ends the watch and makes the server lose the versions after it.
func (a *audited) expire() {
	a.server.Skip(10)
	a.server.Compact()
	a.server.CloseWatches()
}

// found returns the audits and gaps since the last call.
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

// expect checks the audits and gaps since the last call.
func (a *audited) expect(why, want string) {
	a.Helper()
	if got := a.found(); got != want {
		a.Errorf("%s: found %q, want %q", why, got, want)
	}
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

// TestServedForm: a CRD gets a default. Its objects keep their versions, but not their content.
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
			a.red(1)
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
			a.red(2)
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
		a.red(3)
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

// TestSameVersionInAList: a change of form goes unnoticed, but every list compares contents.
func TestSameVersionInAList(t *testing.T) {
	audits(t, -1, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			a.red(1)
			a.expire()
			<-time.After(5 * time.Second)
			if got := colors(a.T, c, s); got != "red1 red1" {
				a.Errorf("the default is in %q", got)
			}
		})
	})
}

// TestForkOvertaken: etcd was restored and objects changed, but the new history has overtaken our version, which
// bookmarks had advanced. No version reveals it; an audit does.
// Only what cannot be a fault of the watch begins an epoch.
func TestForkOvertaken(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*informertest.Server)
		want   string
		epoch  int64
	}{
		{"changed", func(s *informertest.Server) { s.Put(widgets, "n", "a", spec("forked")) }, "a b", 1},
		{"set back", nil, "a b", 2},
		{"deleted", func(s *informertest.Server) { s.Delete(widgets, "n", "a") }, "b", 2},
		{"created", func(s *informertest.Server) { s.Put(widgets, "n", "c", spec("forked")) }, "a b c", 1},
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
					// An audit finds it, unless the history check after a silent watch did before.
					if got := a.found(); !strings.Contains(got, "gap: missed") && !strings.Contains(got, "gap: history-changed") {
						t.Errorf("found %s", got)
					}
					if got := cached(t, c, s); got != tc.want {
						t.Errorf("cached %q, want %q", got, tc.want)
					}
					if e := s.Status()[0].Epoch; e != tc.epoch {
						t.Errorf("epoch %d, want %d", e, tc.epoch)
					}
					if got, want := versions(t, c, s), serverVersions(a.server); got != want {
						t.Errorf("versions %s, the server has %s", got, want)
					}
				})
			})
		})
	}
}

// versions returns the cache's objects as "name@version".
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

// TestAuditWhileBusy: changes during an audit are not findings.
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

// TestAuditRefused: audits of a failing server back off, and nothing else suffers.
func TestAuditRefused(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			var asked atomic.Int32
			a.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Has("limit") && !r.URL.Query().Has("watch") {
					asked.Add(1)
					http.Error(w, "no", http.StatusServiceUnavailable)
					return true
				}
				return false
			})
			<-time.After(10 * time.Hour)
			if n := asked.Load(); n < 4 || n > 16 {
				a.Errorf("asked %d times in 10 hours", n)
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

// TestAuditReadsAgain: the watch could not read a version of an object. An audit reads it soon, without a relist; then
// the state can be resumed again.
func TestAuditReadsAgain(t *testing.T) {
	for _, tc := range []struct{ why, name string }{
		{"an object that is known", "a"},
		{"a new one", "c"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			audits(t, 6*time.Hour, func(a *audited) {
				a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
					<-time.After(time.Hour)
					a.expect("before", "")
					a.server.Misbehave(informertest.Fault{Effect: informertest.GarbleObject, Resource: widgets, Times: 2})
					a.server.Put(widgets, "n", tc.name, spec("garbled"))
					<-time.After(3 * time.Second)
					a.expect("the watch", "gap: unreadable")
					view, err := informer.Unstructured(c, widgets, informer.On(s))
					if err != nil {
						a.Fatal(err)
					}
					sub, err := view.Subscribe("test", informer.SubscribeOptions{SkipInitial: true})
					if err != nil {
						a.Fatal(err)
					}
					<-time.After(10 * time.Minute)
					if got := a.found(); !strings.HasPrefix(got, "audit of ") || strings.Contains(got, ":") {
						a.Errorf("found %s", got)
					}
					change, err := sub.Next(a.Context())
					if err != nil || change.Key.Name != tc.name || !change.Relisted {
						a.Errorf("the change: %+v, %v", change, err)
					}
					if got, want := versions(a.T, c, s), serverVersions(a.server); got != want {
						a.Errorf("versions %s, the server has %s", got, want)
					}
					if st := s.Status()[0]; st.Epoch != 1 || st.Lists != 1 {
						a.Errorf("status %+v", st)
					}
				})
				a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
					if n := s.Status()[0].Lists; n != 0 {
						a.Errorf("%d lists: it was not resumed", n)
					}
				})
			})
		})
	}
}

// TestAuditWithoutProtobuf: an aggregated API server may not support protobuf, which metadata audits request.
func TestAuditWithoutProtobuf(t *testing.T) {
	for _, code := range []int{http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusInternalServerError} {
		audits(t, time.Hour, func(a *audited) {
			a.server.Misbehave(informertest.Fault{Protobuf: true, Code: code, Resource: widgets})
			a.run(informer.SourceOptions{}, func(*informer.Cluster, *informer.Source) {
				<-time.After(3 * time.Hour)
				if got := a.found(); !strings.HasPrefix(got, "audit of 2") || strings.Contains(got, ":") {
					a.Errorf("%d: found %q", code, got)
				}
			})
		})
	}
}

// TestFormsForbidden: a client that may not read the OpenAPI documents requests them rarely, and still audits.
func TestFormsForbidden(t *testing.T) {
	audits(t, time.Hour, func(a *audited) {
		var asked atomic.Int32
		a.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/openapi/v3" {
				return false
			}
			asked.Add(1)
			informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "not for you")
			return true
		})
		a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
			<-time.After(10 * time.Hour)
			if n := asked.Load(); n < 8 || n > 11 {
				a.Errorf("asked %d times in 10 hours", n)
			}
			if got := a.found(); !strings.HasPrefix(got, "audit of 2") || strings.Contains(got, ":") {
				a.Errorf("found %q", got)
			}
			if err := c.RefreshForms(a.Context()); !apierrors.IsForbidden(err) {
				a.Errorf("RefreshForms: %v", err)
			}
			a.red(1)
			a.expire()
			<-time.After(time.Minute)
			if got := colors(a.T, c, s); got != "red1 red1" {
				a.Errorf("after a list the default is in %q", got)
			}
		})
	})
}

// TestFormAnsweredLate: the server answers with its forms only after the first list. Changes in between are still
// noticed.
func TestFormAnsweredLate(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 5 * time.Second} {
		audits(t, time.Hour, func(a *audited) {
			var asked atomic.Bool
			a.instead = func(r *http.Request, ask roundTrips) (*http.Response, error) {
				if r.URL.Path == "/openapi/v3" && !asked.Swap(true) {
					<-time.After(late)
				}
				return ask(r)
			}
			a.run(informer.SourceOptions{}, func(c *informer.Cluster, s *informer.Source) {
				<-time.After(late / 10)
				a.red(1)
				<-time.After(15 * time.Minute)
				if got := colors(a.T, c, s); got != "red1 red1" {
					a.Errorf("an answer after %v: the default is in %q; %s", late, got, a.found())
				}
			})
		})
	}
}
