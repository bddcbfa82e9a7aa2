package informer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	events     = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	routes     = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// past is a server with a feed of each of some kinds, in a synctest bubble. Requests for widgets go to a server of their
// own, as to an aggregated one.
type past struct {
	*testing.T
	server, aggregated *informertest.Server
	cluster            *informer.Cluster
	feeds              map[string]*feedLog
	sources            map[string]*informer.Source
	unavailable        atomic.Pointer[string] // the resource that the server refuses to serve for now
}

var pastKinds = []schema.GroupVersionResource{pods, configMaps, routes, events, widgets}

func inPast(t *testing.T, epochs map[schema.GroupResource]int64, test func(*past)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &past{T: t, server: informertest.NewServer(), aggregated: informertest.NewServer(),
			feeds: map[string]*feedLog{}, sources: map[string]*informer.Source{}}
		for _, gvr := range pastKinds {
			p.at(gvr).Serve(gvr, strings.ToUpper(gvr.Resource[:1])+gvr.Resource[1:])
			p.at(gvr).Put(gvr, "n", "a", spec("a"))
		}
		p.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if u := p.unavailable.Load(); u != nil && strings.HasSuffix(r.URL.Path, *u) {
				http.Error(w, "", http.StatusServiceUnavailable)
				return true
			}
			if strings.HasPrefix(r.URL.Path, "/apis/example.com/") {
				p.aggregated.ServeHTTP(w, r)
				return true
			}
			return false
		})
		var err error
		if p.cluster, err = informer.NewCluster(p.server.Config(), informer.Options{AuditEvery: -1, Epochs: epochs}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.cluster.Run(ctx) }()
		for _, gvr := range pastKinds[:4] {
			p.open(gvr, feed.Options{})
		}
		p.open(widgets, feed.Options{})
		p.pass(time.Second)
		test(p)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		for _, f := range p.feeds {
			f.wait()
		}
	})
}

// at returns the server of a kind.
func (p *past) at(gvr schema.GroupVersionResource) *informertest.Server {
	if gvr == widgets {
		return p.aggregated
	}
	return p.server
}

func (p *past) open(gvr schema.GroupVersionResource, o feed.Options) {
	p.Helper()
	o.Paged = true
	f, err := feed.Open(p.cluster, gvr, "test", o)
	if err != nil {
		p.Fatal(err)
	}
	p.feeds[gvr.Resource], p.sources[gvr.Resource] = follow(f), f.Source()
}

func (p *past) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// fork restores a backup behind the backs of all kinds but the named ones, of which an object is lost. The new history
// overtakes the old one before anyone looks.
func (p *past) fork(losing ...schema.GroupVersionResource) {
	p.server.Bookmark() // otherwise the backup has no history for a quiet kind's version
	p.pass(time.Second)
	back := p.server.Snapshot()
	for _, gvr := range losing {
		p.server.Put(gvr, "n", fmt.Sprint("lost-", p.server.Version()), spec("lost"))
	}
	p.pass(time.Second)
	p.server.Fork(back, func() {})
}

// want compares the kinds' epochs, and says how often each was listed.
func (p *past) want(why, want string) {
	p.Helper()
	synctest.Wait()
	var got []string
	for _, gvr := range pastKinds {
		if s := p.sources[gvr.Resource]; s != nil {
			st := s.Status()[0]
			got = append(got, fmt.Sprintf("%s %d/%d", gvr.Resource, st.Epoch, st.Lists))
		}
	}
	if got := strings.Join(got, " "); got != want {
		p.Errorf("%s:\ngot  %s\nwant %s", why, got, want)
	}
}

// TestOneProofForAll: what one kind of Kubernetes proves counts for all kinds, whether they can prove it or not.
func TestOneProofForAll(t *testing.T) {
	inPast(t, nil, func(p *past) {
		p.want("at first", "pods 1/1 configmaps 1/1 httproutes 1/1 events 1/1 widgets 1/1")
		p.fork(pods)
		p.server.Bookmark()
		p.pass(30 * time.Second)
		p.server.Bookmark()
		p.pass(30 * time.Second)
		p.want("pods have lost an object", "pods 2/2 configmaps 2/2 httproutes 2/2 events 2/2 widgets 2/2")
		for resource, f := range p.feeds {
			if got := f.take(); strings.Count(got, "! history-changed") != 1 {
				p.Errorf("%s: want one gap in\n%s", resource, got)
			}
		}
		p.server.Put(configMaps, "n", "a", spec("new"))
		if got := p.feeds["configmaps"].take(); !strings.HasSuffix(got, "epoch 2") {
			p.Errorf("the next change: %s", got)
		}
		p.fork(configMaps, pods)
		p.pass(2 * time.Minute)
		p.want("two have lost one", "pods 3/3 configmaps 3/3 httproutes 3/3 events 3/3 widgets 3/3")
		secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
		p.server.Serve(secrets, "Secret")
		p.server.Put(secrets, "n", "a", spec("a"))
		p.open(secrets, feed.Options{})
		p.pass(time.Second)
		if got := p.feeds["secrets"].take(); !strings.HasPrefix(got, "+ a ") || !strings.HasSuffix(got, "epoch 3") {
			p.Errorf("a new kind: %s", got)
		}
	})
}

// TestInAnyOrder: the epochs do not depend on which kind notices first.
func TestInAnyOrder(t *testing.T) {
	for _, late := range pastKinds[:4] {
		inPast(t, nil, func(p *past) {
			path := "/" + late.Resource
			p.unavailable.Store(&path)
			p.fork(pastKinds[:4]...)
			p.pass(2 * time.Minute)
			p.unavailable.Store(nil)
			p.pass(2 * time.Minute)
			for resource, s := range p.sources {
				if st := s.Status()[0]; st.Epoch != 2 || st.State != informer.Watching {
					p.Errorf("%s are late: %s are %s in epoch %d", late.Resource, resource, stateNames[st.State], st.Epoch)
				}
			}
		})
	}
}

// TestOtherStorage: an aggregated API server that begins anew, and Events that do, disturb no other kind, and do not
// make later epochs of others depend on it.
func TestOtherStorage(t *testing.T) {
	inPast(t, nil, func(p *past) {
		for range 2 {
			p.aggregated.SetVersion(500)
			p.aggregated.SetDown(true)
			p.pass(time.Second)
			p.aggregated.SetDown(false)
			p.pass(2 * time.Minute)
			p.aggregated.Skip(1000)
			p.aggregated.Bookmark()
			p.pass(time.Minute)
		}
		p.want("widgets began anew twice", "pods 1/1 configmaps 1/1 httproutes 1/1 events 1/1 widgets 3/3")
		p.fork(events)
		p.pass(2 * time.Minute)
		p.want("events were lost", "pods 1/1 configmaps 1/1 httproutes 1/1 events 2/2 widgets 3/3")
		p.fork(routes)
		p.pass(2 * time.Minute)
		p.want("the cluster was restored: events have counted it", "pods 2/2 configmaps 2/2 httproutes 2/2 events 2/2 widgets 3/3")
	})
}

// TestEpochsOfEarlierRuns: streams begin in the highest epoch of their storage. A kept state of an older one is listed
// against, behind a gap.
func TestEpochsOfEarlierRuns(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	epochs := map[schema.GroupResource]int64{secrets.GroupResource(): 4, widgets.GroupResource(): 7, pods.GroupResource(): 2}
	inPast(t, epochs, func(p *past) {
		p.want("at first", "pods 4/1 configmaps 4/1 httproutes 4/1 events 4/1 widgets 7/1")
		for resource, f := range p.feeds {
			if got := f.take(); strings.Contains(got, "!") {
				p.Errorf("%s: a gap although nothing was missed:\n%s", resource, got)
			}
		}
		p.server.Serve(secrets, "Secret")
		v := p.server.Put(secrets, "n", "a", spec("a"))
		for _, tc := range []struct {
			why string
			feed.Restored
			want string
		}{
			{"an older epoch, resumable", feed.Restored{Epoch: 3, Version: v, Trusted: true}, "! history-changed " + v + ".." + v + "\n+ a " + v + " relisted\n= " + v + " epoch 4"},
			{"an older epoch, amid a list", feed.Restored{Epoch: 3}, "! history-changed .." + v + "\n+ a " + v + " relisted\n= " + v + " epoch 4"},
			{"the same epoch", feed.Restored{Epoch: 4}, "+ a " + v + " relisted\n= " + v + " epoch 4"},
			{"none", feed.Restored{}, "+ a " + v + " relisted\n= " + v + " epoch 4"},
			{"a later one", feed.Restored{Epoch: 5, Version: v, Trusted: true}, "= " + v + " epoch 5"},
		} {
			p.open(secrets, feed.Options{Restore: func(context.Context, informer.Stream) (*feed.Restored, error) { return &tc.Restored, nil }})
			p.pass(time.Second)
			p.server.Bookmark()
			p.pass(time.Minute)
			got := p.feeds["secrets"].take()
			if got != tc.want {
				p.Errorf("%s:\n%s\nwant\n%s", tc.why, got, tc.want)
			}
			p.sources["secrets"].Close()
			p.feeds["secrets"].wait()
			delete(p.feeds, "secrets")
			delete(p.sources, "secrets")
		}
		p.want("all have joined it", "pods 5/2 configmaps 5/2 httproutes 5/2 events 5/2 widgets 7/1")
	})
}
