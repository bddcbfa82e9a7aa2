package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/sink"
)

// follower is a sink whose receiver has the objects by their creations, patches and deletions alone.
type follower struct {
	wait time.Duration // for each call of Send

	mu      sync.Mutex
	objects map[string][]byte
	patched int
	failed  []string
}

func (*follower) String() string              { return "follower" }
func (*follower) Close(context.Context) error { return nil }

func (f *follower) Send(_ context.Context, ms []sink.Message) (int, error) {
	<-time.After(f.wait)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range ms {
		var e struct {
			Subject string
			Data    struct {
				Op    event.Op
				After json.RawMessage
				Patch jsonpatch.Patch
			}
		}
		if err := json.Unmarshal(m.Body, &e); err != nil {
			f.failed = append(f.failed, err.Error())
			continue
		}
		switch d := &e.Data; d.Op {
		case event.Snapshot, event.Created:
			f.objects[e.Subject] = d.After
		case event.Deleted:
			delete(f.objects, e.Subject)
		case event.Updated:
			now, err := d.Patch.Apply(f.objects[e.Subject])
			if err != nil {
				f.failed = append(f.failed, fmt.Sprintf("%s: %v: %s", e.Subject, err, m.Body))
				continue
			}
			f.objects[e.Subject] = now
			f.patched++
		}
	}
	return len(ms), nil
}

// editor writes ConfigMaps at random: values, list elements in any place and order, and quiet fields.
type editor struct {
	*rand.Rand
	r *rig
}

// keyed serves the schema of a ConfigMap with lists that have merge keys.
func (e editor) keyed(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/openapi/v3/api/v1" {
		return false
	}
	lists := `{"properties":{"list":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"properties":{"name":{}}}}}}`
	_, _ = fmt.Fprintf(w, `{"components":{"schemas":{"cm":{"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"ConfigMap"}],
		"properties":{"spec":%s,"status":%[1]s}}}}}`, lists)
	return true
}

func (e editor) list() []any {
	list := []any{}
	for _, i := range e.Perm(5)[:2+e.IntN(3)] {
		list = append(list, map[string]any{"name": fmt.Sprint("n", i), "value": int64(e.IntN(2))})
	}
	return list
}

// copyOf copies an object as JSON.
func copyOf(t *testing.T, o map[string]any) (c map[string]any) {
	t.Helper()
	b, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write changes a field of an object.
func (e editor) write() {
	name := fmt.Sprint("c", e.IntN(3))
	o := e.r.server.Objects(configMaps)["shop/"+name]
	if o == nil || e.IntN(30) == 0 {
		e.r.server.Delete(configMaps, "shop", name)
		e.r.server.Put(configMaps, "shop", name, map[string]any{"spec": map[string]any{"list": e.list()}, "status": map[string]any{"list": e.list()}})
		return
	}
	o = copyOf(e.r.T, o)
	spec, status, meta := o["spec"].(map[string]any), o["status"].(map[string]any), o["metadata"].(map[string]any)
	shuffle := func(of map[string]any) {
		list := of["list"].([]any)
		e.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	}
	switch e.IntN(8) {
	case 0:
		spec["list"] = e.list()
	case 1:
		shuffle(spec)
	case 2:
		list := spec["list"].([]any)
		list[e.IntN(len(list))].(map[string]any)["value"] = int64(e.IntN(9))
	case 3:
		spec["plain"] = []any{e.IntN(3), e.IntN(3)}
	case 4, 5: // quiet
		shuffle(status)
	case 6: // quiet
		meta["annotations"] = map[string]any{"control-plane.alpha.kubernetes.io/leader": fmt.Sprint(e.IntN(9))}
	case 7: // quiet
		status["observedGeneration"] = int64(e.IntN(9))
	}
	e.r.server.Put(configMaps, "shop", name, o)
}

// TestPatchesMakeTheObject: who applies every patch has the objects, although quiet changes are not delivered; whether the
// sink keeps up, lags, or reads the journal later; through restarts and missed versions.
func TestPatchesMakeTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		e := editor{rand.New(rand.NewPCG(1, 2)), r}
		r.server.Intercept(e.keyed)
		sinks := map[string]*follower{"live": {}, "slow": {wait: 10 * time.Second}, "late": {}}
		run := func(names ...string) *running {
			var o Options
			for _, name := range names {
				if sinks[name].objects == nil {
					sinks[name].objects = map[string][]byte{}
				}
				o.Sinks = append(o.Sinks, deliver.Options{Name: name, Sink: sinks[name], Snapshots: true, From: deliver.Beginning, Include: []deliver.Include{deliver.Patch}})
			}
			return r.daemon(dir, o)
		}
		for range 3 {
			e.write()
		}
		for round := range 4 {
			names := []string{"live", "slow"}
			if round == 3 {
				names = append(names, "late")
			}
			d := run(names...)
			for range 60 {
				e.write()
				if e.IntN(3) == 0 {
					d.pass(time.Second)
				}
			}
			d.pass(time.Hour)
			d.stop()
			for range 2 * round { // missed
				e.write()
			}
			if round == 1 {
				r.server.Compact()
			}
		}
		d := run("live", "slow", "late")
		for key, o := range r.server.Objects(configMaps) { // quiet changes at the end would not be delivered
			o = copyOf(t, o)
			o["spec"].(map[string]any)["end"] = true
			r.server.Put(configMaps, "shop", strings.TrimPrefix(key, "shop/"), o)
		}
		d.pass(time.Hour)
		d.stop()
		compareFollowers(t, r, sinks)
	})
}

func compareFollowers(t *testing.T, r *rig, sinks map[string]*follower) {
	t.Helper()
	for name, f := range sinks {
		if f.patched < 50 || len(f.failed) > 0 {
			t.Errorf("%s: %d patches were applied, and %d not: %s", name, f.patched, len(f.failed), strings.Join(f.failed[:min(1, len(f.failed))], ""))
		}
		for key, want := range r.server.Objects(configMaps) {
			var got map[string]any
			if err := json.Unmarshal(f.objects["/api/v1/namespaces/shop/configmaps/"+strings.TrimPrefix(key, "shop/")], &got); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
				continue
			}
			if d := cmp.Diff(copyOf(t, want), got); d != "" {
				t.Errorf("%s: %s (-server +receiver):\n%s", name, key, d)
			}
		}
	}
}
