package reconstruct

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/managers"
)

// write is one write of the true history.
type write struct {
	at                       time.Time
	manager, subresource, op string
	sets                     map[string]any // paths to the values that the write set; removals are not recorded
	removed                  bool           // it also removed a field
	idle                     bool           // it changed no value, though perhaps the owner of one
}

// world is an object whose managed fields the API server's own code keeps, and its true history.
type world struct {
	t          *testing.T
	rand       *rand.Rand
	main, part *managedfields.FieldManager // of the object, and of its status
	live       *unstructured.Unstructured
	history    []write
}

var things = change.Resource{Group: "example.com", Version: "v1", Resource: "things", Kind: "Thing", Namespaced: true}

// plainScheme converts nothing: there is one version.
type plainScheme struct{}

func (plainScheme) Convert(in, out, _ any) error { return fmt.Errorf("convert %T to %T", in, out) }
func (plainScheme) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (plainScheme) ConvertFieldLabel(_ schema.GroupVersionKind, l, v string) (string, string, error) {
	return l, v, nil
}
func (plainScheme) Default(runtime.Object) {}
func (plainScheme) New(k schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(k)
	return u, nil
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // reproducible
	gvk := schema.GroupVersionKind{Group: things.Group, Version: things.Version, Kind: things.Kind}
	for sub, to := range map[string]**managedfields.FieldManager{"": &w.main, "status": &w.part} {
		m, err := managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), plainScheme{}, plainScheme{}, plainScheme{}, gvk, gvk.GroupVersion(), sub, nil)
		if err != nil {
			t.Fatal(err)
		}
		*to = m
	}
	return w
}

// fields are what the writers write.
var fields = []string{"spec.a", "spec.b", "spec.c", "metadata.labels.x", "metadata.labels.y", "data.k"}

// step makes one random write.
func (w *world) step() {
	manager := []string{"alice", "bob", "kubectl-set", "operator"}[w.rand.IntN(4)]
	next := w.live
	if next == nil {
		next = plainNew()
	} else {
		next = next.DeepCopy()
	}
	wr := write{at: time.Now(), manager: manager, op: "Update", sets: map[string]any{}}
	if w.live != nil && w.rand.IntN(4) == 0 {
		w.apply(wr)
		return
	}
	pick := fields
	if w.live != nil && w.rand.IntN(4) == 0 {
		wr.subresource, pick = "status", []string{"status.ready", "status.seen"}
	}
	for range 1 + w.rand.IntN(3) {
		path := pick[w.rand.IntN(len(pick))]
		p := parse(w.t, path)
		if _, set := wr.sets[path]; !set && w.live != nil && w.rand.IntN(5) == 0 {
			unstructured.RemoveNestedField(next.Object, steps(p)...)
			wr.removed = true
			continue
		}
		value := fmt.Sprint("v", w.rand.IntN(3))
		if parent := steps(p)[:len(p)-1]; jsonmap.Get(next.Object, parent...) == nil { // an apply may leave a null
			unstructured.RemoveNestedField(next.Object, parent...)
		}
		if err := unstructured.SetNestedField(next.Object, value, steps(p)...); err != nil {
			w.t.Fatal(err)
		}
		wr.sets[path] = value
	}
	w.commit(next, wr)
}

// commit passes a write through the server's field manager. What did not change the object is not part of the history.
func (w *world) commit(next *unstructured.Unstructured, wr write) {
	for path, v := range wr.sets {
		if w.live != nil && jsonmap.Get(w.live.Object, steps(parse(w.t, path))...) == v {
			delete(wr.sets, path)
		}
	}
	if w.live != nil && len(wr.sets) == 0 && !wr.removed {
		return
	}
	before := runtime.Object(w.live)
	if w.live == nil {
		next.SetCreationTimestamp(metaNow())
		empty := plainNew()
		empty.SetUID("") // as on a server: a creation
		before = empty
	}
	m := w.main
	if wr.subresource != "" {
		m = w.part
	}
	out, err := m.Update(before, next, wr.manager)
	if err != nil {
		w.t.Fatal(err)
	}
	w.live = out.(*unstructured.Unstructured)
	w.history = append(w.history, wr)
}

// apply makes one server-side apply, which also removes what the manager applied before. One that changes nothing is not
// part of the history.
func (w *world) apply(wr write) {
	wr.op = "Apply"
	applied := plainNew()
	for range 1 + w.rand.IntN(3) {
		path := fields[w.rand.IntN(len(fields))]
		wr.sets[path] = fmt.Sprint("v", w.rand.IntN(3))
		if err := unstructured.SetNestedField(applied.Object, wr.sets[path], steps(parse(w.t, path))...); err != nil {
			w.t.Fatal(err)
		}
	}
	out, err := w.main.Apply(w.live, applied, wr.manager, true)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff.Equal(out.(*unstructured.Unstructured).Object, w.live.Object) {
		return
	}
	wr.idle = diff.Equal(unmanaged(out), unmanaged(w.live))
	w.live = out.(*unstructured.Unstructured)
	w.history = append(w.history, wr)
}

// unmanaged returns an object without its managed fields.
func unmanaged(o runtime.Object) map[string]any {
	u := o.(*unstructured.Unstructured).DeepCopy()
	u.SetManagedFields(nil)
	return u.Object
}

// served returns the object as a list serves it.
func (w *world) served() map[string]any {
	raw, err := json.Marshal(w.live.Object)
	if err != nil {
		w.t.Fatal(err)
	}
	obj, _, err := jsonmap.DecodeObject(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// judge compares a claim with the true history.
func (w *world) judge(e Entry) error {
	var last *write
	for i := range w.history {
		h := &w.history[i]
		if h.manager == e.Data.Manager && h.subresource == e.Data.Subresource && h.op == e.Data.Operation && len(h.sets) > 0 {
			last = h
		}
	}
	for i := len(w.history) - 1; i >= 0 && last != nil; i-- { // whether an idle apply renews the time is up to the server
		h := &w.history[i]
		if h.manager != last.manager || h.subresource != last.subresource || h.op != last.op || len(h.sets) == 0 {
			continue
		}
		if last = h; !h.idle || second(h.at).Equal(e.Time) {
			break
		}
	}
	switch e.Data.Fact {
	case event.FactCreated:
		if !second(w.history[0].at).Equal(e.Time) {
			return fmt.Errorf("created at %v, in truth %v", e.Time, w.history[0].at)
		}
		if e.Data.Manager == managers.Unknown {
			return nil
		}
		if err := w.judgeCreator(e); err != nil {
			return err
		}
		return w.judgeFields(e)
	case event.FactWritten:
		if last == nil {
			return fmt.Errorf("%s never wrote", e.Data.Manager)
		}
		if !second(last.at).Equal(e.Time) {
			return fmt.Errorf("last write of %s at %v, in truth %v", e.Data.Manager, e.Time, last.at)
		}
		return w.judgeFields(e)
	}
	return fmt.Errorf("unexpected fact %s", e.Data.Fact)
}

// judgeCreator: the named manager wrote in the second of the creation, and nothing that others wrote is left.
func (w *world) judgeCreator(e Entry) error {
	wrote := false
	for _, h := range w.history {
		if h.manager == e.Data.Manager {
			wrote = wrote || second(h.at).Equal(e.Time)
			continue
		}
		for path, v := range h.sets {
			if h.subresource == "" && jsonmap.Get(w.live.Object, steps(parse(w.t, path))...) == v && w.setLast(path).manager == h.manager {
				return fmt.Errorf("created by %s alone, but %s wrote %s", e.Data.Manager, h.manager, path)
			}
		}
	}
	if !wrote {
		return fmt.Errorf("%s did not write in the second of the creation", e.Data.Manager)
	}
	return nil
}

// judgeFields: the manager wrote each owned field to its present value at some time, and that is the object's value.
func (w *world) judgeFields(e Entry) error {
	for _, f := range e.Fields {
		path := f.Path.String()
		if have := jsonmap.Get(w.live.Object, steps(f.Path)...); !diff.Equal(have, f.To) {
			return fmt.Errorf("%s is %v, in truth %v", path, f.To, have)
		}
		if m, ok := f.To.(map[string]any); ok && len(m) == 0 {
			continue // it was emptied by others, and is still owned
		}
		found := false
		for _, h := range w.history {
			found = found || h.manager == e.Data.Manager && h.subresource == e.Data.Subresource && h.op == e.Data.Operation && diff.Equal(h.sets[path], f.To)
		}
		if !found {
			return fmt.Errorf("%s never set %s to %v\n%s", e.Data.Manager, path, f.To, w.dump())
		}
	}
	return nil
}

func (w *world) setLast(path string) (last write) {
	for _, h := range w.history {
		if _, ok := h.sets[path]; ok && !h.idle {
			last = h
		}
	}
	return last
}

// TestTruth: each claim about a random history is true, whatever was written, and each last write within the window whose
// fields are left is claimed. The API server's own code keeps the managed fields.
func TestTruth(t *testing.T) {
	claims := map[event.Fact]int{}
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			for range 2 + w.rand.IntN(14) {
				w.step()
				<-time.After(time.Duration(1+w.rand.IntN(20_000)) * time.Millisecond)
			}
			since := time.Now().Add(-time.Duration(w.rand.IntN(200)) * time.Second)
			obj := w.served()
			before := fmt.Sprint(obj)
			entries := Of(things, obj, since, nil)
			for _, e := range entries {
				claims[e.Data.Fact]++
				if err := w.judge(e); err != nil {
					t.Errorf("seed %d: %s by %s: %v", seed, e.Data.Fact, e.Data.Manager, err)
				}
				if e.Time.Before(second(since)) {
					t.Errorf("seed %d: %v is before %v", seed, e.Time, since)
				}
			}
			w.complete(seed, since, entries)
			if fmt.Sprint(obj) != before {
				t.Errorf("seed %d: the object was modified", seed)
			}
		})
	}
	if claims[event.FactCreated] < 50 || claims[event.FactWritten] < 300 {
		t.Errorf("too few claims to judge: %v", claims)
	}
}

// complete reports writes within the window that left a trace but are not claimed.
func (w *world) complete(seed uint64, since time.Time, entries []Entry) {
	for _, path := range append([]string{"status.ready", "status.seen"}, fields...) {
		h := w.setLast(path)
		if h.at.IsZero() || jsonmap.Get(w.live.Object, steps(parse(w.t, path))...) != h.sets[path] || second(h.at).Before(second(since)) {
			continue
		}
		claimed := false
		for _, e := range entries {
			claimed = claimed || e.Data.Manager == h.manager && !e.Time.Before(second(h.at))
		}
		if !claimed {
			w.t.Errorf("seed %d: %s wrote %s at %v, and no entry names it\n%s %v", seed, h.manager, path, h.at, w.dump(), since)
		}
	}
}

func parse(t *testing.T, path string) diff.Path {
	t.Helper()
	p, err := diff.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func steps(p diff.Path) (names []string) {
	for _, e := range p {
		names = append(names, e.Name)
	}
	return names
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func (w *world) dump() string {
	raw, _ := json.MarshalIndent(w.live.Object, "", " ")
	s := string(raw)
	for _, h := range w.history {
		s += fmt.Sprintf("\n%+v", h)
	}
	return s
}
