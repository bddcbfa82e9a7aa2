package capture

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
)

// memory keeps batches as a journal does. It survives the end of its watcher.
type memory struct {
	mu      sync.Mutex
	fail    error // of State
	asked   int   // calls of State
	streams map[string]*remembered
	since   time.Time
	sumKey  string
}

// sums drops the sums made with another key.
func (m *memory) sums(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, st := range m.streams {
		for k, o := range st.objects {
			if m.sumKey != key {
				o.Sum = 0
				st.objects[k] = o
			}
		}
	}
	m.sumKey = key
}

type remembered struct {
	State
	kind    Resource
	objects map[informer.Key]feed.RestoredObject
}

func nameOf(s Stream) string {
	return s.Resource.GroupResource() + "|" + s.Namespace + "|" + s.Selection
}

func (m *memory) Since() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since
}

func (m *memory) Kinds() (kinds []KeptKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, st := range m.streams {
		if !slices.ContainsFunc(kinds, func(k KeptKind) bool { return k.GroupResource() == st.kind.GroupResource() }) {
			kinds = append(kinds, KeptKind{Resource: st.kind, Held: true})
		}
	}
	return kinds
}

func (m *memory) Epochs() map[schema.GroupResource]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	epochs := map[schema.GroupResource]int64{}
	for name, st := range m.streams {
		resource, _, _ := strings.Cut(name, "|")
		gr := schema.ParseGroupResource(resource)
		epochs[gr] = max(epochs[gr], st.Epoch)
	}
	return epochs
}

func (m *memory) State(_ context.Context, s Stream) (*State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	st := m.streams[nameOf(s)]
	if m.fail != nil || st == nil {
		return nil, m.fail
	}
	out, objects := st.State, maps.Clone(st.objects)
	if objects == nil { // no objects are known
		return &out, nil
	}
	out.Objects = iter.Seq2[feed.RestoredObject, error](func(yield func(feed.RestoredObject, error) bool) {
		for _, o := range objects {
			if !yield(o, nil) {
				return
			}
		}
	})
	return &out, nil
}

func (m *memory) keep(b *Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams == nil {
		m.streams = map[string]*remembered{}
	}
	if b.Ended {
		delete(m.streams, nameOf(b.Stream))
		return
	}
	st := m.streams[nameOf(b.Stream)]
	if st == nil {
		st = &remembered{kind: b.Stream.Resource}
		m.streams[nameOf(b.Stream)] = st
	}
	if st.objects == nil {
		st.objects = map[informer.Key]feed.RestoredObject{}
	}
	st.Epoch, st.Version, st.Pipeline, st.Identity, st.At = b.Epoch, "", b.Pipeline, b.Identity, b.At
	st.WasLive, st.Served = b.EverLive, b.Served
	if b.Live {
		st.Version = b.Version
	}
	m.since = b.At
	for _, v := range b.Changes {
		k := informer.Key{Namespace: v.Namespace, Name: v.Name}
		switch {
		case v.Op == event.Gap:
		case v.Gone():
			delete(st.objects, k)
		default:
			st.objects[k] = feed.RestoredObject{Key: k, UID: v.UID, ResourceVersion: v.ResourceVersion, Sum: v.Sum, JSON: v.AfterJSON}
		}
	}
}

// keeping is a scenario whose watcher sends batches. again stops it, changes the server, and starts another
// watcher from the kept state.
func keeping(t *testing.T, o Options, before func(*informertest.Server), test func(r *rig, again func(meanwhile func()))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Kept = &memory{}
		var err error
		if o.Redactor == nil {
			o.Redactor, err = redact.New(redact.NewRandomKey(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, o, before)
		test(r, func(meanwhile func()) {
			r.stop()
			meanwhile()
			r.begin(o)
		})
		r.stop()
	})
}

func TestKept(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(cmGVR, "shop", "a", data("k", "1"))
		s.Put(cmGVR, "shop", "b", data("k", "1"))
	}
	o := Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}
	t.Run("a restart reports only the changes since then", func(t *testing.T) {
		keeping(t, o, before, func(r *rig, again func(func())) {
			r.want("the first start", "snapshot configmaps/a", "snapshot configmaps/b", "ready: 1 kinds, 2 objects")
			r.server.Put(cmGVR, "shop", "a", data("k", "2"))
			r.inOrder("live", "updated configmaps/a data.k by ?")
			again(func() {
				r.server.Put(cmGVR, "shop", "a", data("k", "3"))
				r.server.Put(cmGVR, "shop", "a", data("k", "4"))
				r.server.Delete(cmGVR, "shop", "b")
				r.server.Put(cmGVR, "shop", "c", data("k", "1"))
			})
			r.want("every version", "updated configmaps/a data.k by ?", "updated configmaps/a data.k by ?",
				"deleted configmaps/b", "created configmaps/c", "ready: 1 kinds, 2 objects")
			again(func() {})
			r.want("nothing happened", "ready: 1 kinds, 2 objects")
		})
	})
	t.Run("expired changes give a gap and net changes", func(t *testing.T) {
		keeping(t, o, before, func(r *rig, again func(func())) {
			r.take()
			again(func() {
				r.server.Put(cmGVR, "shop", "a", data("k", "3"))
				r.server.Put(cmGVR, "shop", "a", data("k", "4"))
				r.server.Delete(cmGVR, "shop", "b")
				r.server.Compact()
			})
			r.want("net", "gap configmaps expired", "updated configmaps/a data.k by ?", "deleted configmaps/b",
				"ready: 1 kinds, 1 objects")
		})
	})
	t.Run("an unreadable state is requested again, and nothing is listed meanwhile", func(t *testing.T) {
		keeping(t, o, before, func(r *rig, again func(func())) {
			r.take()
			again(func() { r.memory.fail = errors.New("the disk is gone") })
			r.pass(10 * time.Second)
			r.memory.mu.Lock()
			if r.memory.fail = nil; r.memory.asked < 4 {
				r.Errorf("asked %d times", r.memory.asked)
			}
			r.memory.mu.Unlock()
			r.pass(10 * time.Second)
			for _, line := range r.take() {
				if line != "ready: 1 kinds, 2 objects" && line != "ready: 0 kinds, 0 objects" && line != "failing: configmaps" {
					r.Error(line)
				}
			}
			r.server.Put(cmGVR, "shop", "a", data("k", "2"))
			r.inOrder("it goes on", "updated configmaps/a data.k by ?")
		})
	})
	t.Run("other redaction shows in bytes, which are compared", func(t *testing.T) {
		keeping(t, Options{Scopes: []Scope{{Types: []string{"secrets"}}}}, func(s *informertest.Server) {
			s.Put(secretGVR, "shop", "a", data("k", "MQ=="))
		}, func(r *rig, again func(func())) {
			r.take()
			r.stop()
			r.begin(Options{Scopes: []Scope{{Types: []string{"secrets"}}}, Kept: r.memory}) // with its own key
			r.want("the markers differ, but nothing has changed", "rewritten secrets/a", "ready: 1 kinds, 1 objects")
		})
	})
}

// TestKeptFirstList ends a watcher during its first list: objects that the next one finds existed before.
func TestKeptFirstList(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("k", "1")) }
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
		r.take()
		again(func() {
			st := r.memory.streams["configmaps||"]
			st.WasLive, st.Version = false, ""
			r.server.Put(cmGVR, "shop", "b", data("k", "1"))
		})
		r.want("b is old for all we know", "gap configmaps a list was interrupted", "snapshot configmaps/b", "ready: 1 kinds, 2 objects")
	})
}

// TestKeptNothing starts a watcher on a state without objects: it finds a first list, with a gap only if some
// of it was watched before.
func TestKeptNothing(t *testing.T) {
	for _, c := range []struct {
		why   string
		state State
		want  []string
	}{
		{"only in which history the others are", State{}, nil},
		{"it was watched once", State{Reason: "nothing recorded since then", Restored: feed.Restored{At: time.Now()}}, []string{"gap configmaps nothing recorded since then"}},
	} {
		c.state.Epoch = 5
		o := Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}
		keeping(t, o, func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("k", "1")) }, func(r *rig, again func(func())) {
			r.take()
			again(func() { r.memory.streams = map[string]*remembered{"configmaps||": {State: c.state}} })
			r.want(c.why, append(c.want, "snapshot configmaps/a", "ready: 1 kinds, 1 objects")...)
			if st := r.memory.streams["configmaps||"]; st.Epoch != 5 || st.Pipeline == "" || !st.WasLive {
				t.Errorf("%s: %+v", c.why, st.State)
			}
			again(func() {})
			r.want("it goes on", "ready: 1 kinds, 1 objects")
		})
	}
}

// TestKeptNothingOfAKindThatAppears: the objects of its first list were created, even if other streams are in a
// later epoch.
func TestKeptNothingOfAKindThatAppears(t *testing.T) {
	o := Options{Scopes: []Scope{{Types: []string{"*.example.com"}, Labels: "app=web"}}}
	keeping(t, o, nil, func(r *rig, _ func(func())) {
		r.take()
		r.memory.mu.Lock()
		r.memory.streams = map[string]*remembered{`widgets.example.com||labels="app=web" fields=""`: {State: State{Restored: feed.Restored{Epoch: 5}}}}
		r.memory.mu.Unlock()
		define(r.server)
		o := labelled("web")
		o["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "x", "time": "2000-01-01T00:00:09Z"}}
		r.server.Put(widgetsGVR, "shop", "a", o)
		r.pass(5 * time.Second)
		r.want("it appears", "created widgets/a")
	})
}

// TestKeptGapAndAnother: the gap after the kept state and one of the first batch become one, with both reasons.
func TestKeptGapAndAnother(t *testing.T) {
	before := func(s *informertest.Server) { s.Skip(5) }
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
		r.take()
		again(func() {
			r.memory.streams["configmaps||"].Version = ""
			r.server.Intercept(oneUnreadable)
		})
		got := r.take()
		if len(got) != 4 || !strings.HasPrefix(got[0], "problem: ") ||
			strings.Join(got[1:], "; ") != "gap configmaps a list was interrupted, unreadable; created configmaps/b; ready: 1 kinds, 1 objects" {
			r.Errorf("%q", got)
		}
	})
}

// TestNewest: a gap after an interrupted list starts at the newest kept version.
func TestNewest(t *testing.T) {
	var from string
	versions := []string{"9", "12", "", "101", "99"}
	passed := 0
	for _, err := range newest(func(yield func(feed.RestoredObject, error) bool) {
		for _, v := range versions {
			if !yield(feed.RestoredObject{ResourceVersion: v}, nil) {
				return
			}
		}
	}, &from) {
		if err != nil {
			t.Error(err)
		}
		passed++
	}
	if from != "101" || passed != len(versions) {
		t.Errorf("the newest of %q is %q, want 101; %d passed", versions, from, passed)
	}
	if newest(nil, &from) != nil {
		t.Error("no objects became some")
	}
}

// TestBatches checks the fields of a batch other than its changes.
func TestBatches(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("k", "1")) }
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}, Labels: "x!=y"}}}, before, func(r *rig, _ func(func())) {
		synctest.Wait()
		st := r.memory.streams[`configmaps||labels="x!=y" fields=""`]
		if st == nil || st.Version == "" || st.Epoch != 1 || st.Pipeline == "" || st.At.IsZero() {
			r.Fatalf("%+v", st)
		}
		var o map[string]any
		if err := json.Unmarshal(st.objects[informer.Key{Namespace: "shop", Name: "a"}].JSON, &o); err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"k": "1"}, o["data"]); diff != "" {
			r.Error(diff)
		}
	})
}

// TestBehind stops a consumer until a feed exceeds its budget: the stream is resumed from the kept state, and
// no change is missing or repeated.
func TestBehind(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("k", "0")) }
	keeping(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}}, before, func(r *rig, again func(func())) {
		r.take()
		again(func() { r.budget = 4 << 10 })
		r.take()
		release := r.hold()
		const versions = 500
		for i := range versions {
			r.server.Put(cmGVR, "shop", "a", data("k", strconv.Itoa(i+1)))
			synctest.Wait()
		}
		r.watcher.budget = 0 // a single burst fits
		release()
		r.pass(time.Minute)
		got := r.take()
		if len(got) != versions {
			r.Errorf("got %d changes of %d:\n%s", len(got), versions, strings.Join(got, "\n"))
		}
		r.memory.mu.Lock()
		defer r.memory.mu.Unlock()
		if r.memory.asked < 3 {
			r.Errorf("the state was asked for %d times: the feed never fell behind", r.memory.asked)
		}
	})
}
