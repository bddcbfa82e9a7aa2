package daemon

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
)

// TestTwoRecordersAgree lets two recorders watch one server. They begin at different times; each is stopped, killed, cut
// off and made unable to verify its state, at random. Sometimes the server forgets its history, and sometimes a backup is restored
// while one of them is down. Then their journals are compared:
//
//   - what both saw has one id, in each of the server's histories,
//   - no id occurs twice in a journal,
//   - a change that is the sum of several is marked as such,
//   - uncertainty has begun no epoch, and each restored backup has begun one in every stream.
//
// A recorder must be able to prove a replacement: its versions must be later than the backup, and the server's not yet, or
// the newest object of each kind that is written to must be lost. AGREE_SEED repeats a run.
func TestTwoRecordersAgree(t *testing.T) {
	seeds := make([]uint64, 6)
	for i := range seeds {
		seeds[i] = rand.Uint64N(1<<60)*3 + uint64(i)%3 // which begins with another kind of restore each
	}
	if s := os.Getenv("AGREE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	var all tally
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("AGREE_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				w.live()
				all.add(w.compare())
			})
		})
	}
	t.Logf("%+v", all)
	if len(seeds) > 1 && (all.Both == 0 || all.Net == 0 || all.Restores == 0 || all.Overtaken == 0 || all.Quiet == 0 || all.Unverified == 0 || all.Deleted == 0) {
		t.Errorf("too little happened: %+v", all)
	}
}

// tally counts what the runs met.
type tally struct{ Both, Deleted, Net, Restores, Overtaken, Quiet, Unverified int }

func (t *tally) add(o tally) {
	t.Both, t.Deleted, t.Net = t.Both+o.Both, t.Deleted+o.Deleted, t.Net+o.Net
	t.Restores, t.Overtaken, t.Quiet, t.Unverified = t.Restores+o.Restores, t.Overtaken+o.Overtaken, t.Quiet+o.Quiet, t.Unverified+o.Unverified
}

var agreeKinds = map[schema.GroupVersionResource]string{
	configMaps: "ConfigMap",
	{Group: "apps", Version: "v1", Resource: "deployments"}:    "Deployment",
	{Group: "example.com", Version: "v1", Resource: "widgets"}: "Widget",
}

// world is a server, what was written to it, and two recorders.
type world struct {
	*testing.T
	*rand.Rand
	tally
	seed    uint64
	server  *informertest.Server
	kinds   []schema.GroupVersionResource
	busy    []schema.GroupVersionResource // the kinds that are written to
	parties [2]*party
	objects map[place]thing
	states  int
	// before is the state that each state followed, and ended the last state of each deleted object, by UID and history.
	before  map[string]string
	ended   map[string]string
	history int64
}

type place struct {
	gvr  schema.GroupVersionResource
	name string
}

// thing is an object of the server. Its state is unique among all that were ever written.
type thing struct{ uid, state, created string }

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, 31)), seed: seed, server: informertest.NewServer(), history: 1,
		objects: map[place]thing{}, before: map[string]string{}, ended: map[string]string{},
	}
	for gvr, kind := range agreeKinds {
		w.kinds = append(w.kinds, gvr)
		w.server.Serve(gvr, kind)
	}
	slices.SortFunc(w.kinds, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.Resource, b.Resource) })
	w.busy = w.kinds
	redactor, err := redact.New(redact.NewRandomKey(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.parties {
		p := &party{T: t, name: string(rune('A' + i)), path: filepath.Join(t.TempDir(), "journal.db"), redactor: redactor, server: w.server}
		w.parties[i] = p
	}
	return w
}

// live lets random things happen, and ends with both recorders running and current.
func (w *world) live() {
	w.write(w.kinds[0], "first") // or there is nothing to watch
	w.parties[0].start()
	for range 40 {
		w.some(1 + w.IntN(4))
		p := w.parties[w.IntN(2)]
		switch w.IntN(9) {
		case 0, 1:
			p.toggle(w.IntN(2) == 0)
		case 2:
			p.link.set(true, false)
			w.some(w.IntN(5))
			w.pass(time.Duration(w.IntN(9000)) * time.Millisecond)
			p.link.set(false, false)
		case 3: // it cannot verify its state, and lists
			w.unverified(p)
		case 4:
			w.server.Compact()
		case 5:
			w.server.Cut()
		case 6:
			if w.IntN(2) == 0 {
				w.restore(p)
			}
		}
		w.pass(time.Duration(w.IntN(4000)) * time.Millisecond)
	}
	if w.unverified(w.parties[0]); w.Restores == 0 {
		w.restore(w.parties[1])
	}
	w.settle()
	w.some(5)
	w.settle()
	for _, p := range w.parties {
		p.stop(false)
	}
}

func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// unverified makes a recorder start from a state that it cannot verify.
func (w *world) unverified(p *party) {
	p.start()
	w.pass(2 * time.Second)
	p.stop(w.IntN(2) == 0)
	w.some(w.IntN(3))
	p.link.set(false, true)
	p.start()
	w.pass(3 * time.Second)
	p.link.set(false, false)
	w.Unverified++
}

// settle lets both recorders become current.
func (w *world) settle() {
	for _, p := range w.parties {
		p.link.set(false, false)
		p.start()
	}
	for range 5 {
		w.pass(30 * time.Second)
		w.server.Bookmark()
	}
	w.pass(2 * time.Second) // so that the versions are in the journals, even after a kill
}

// some writes some changes.
func (w *world) some(n int) {
	for range n {
		gvr, name := w.busy[w.IntN(len(w.busy))], fmt.Sprint("o", w.IntN(4))
		if at := (place{gvr, name}); w.objects[at].uid != "" && w.IntN(4) == 0 {
			w.ended[lifeOf(w.objects[at].uid, w.history)] = w.objects[at].state
			w.server.Delete(gvr, "shop", name)
			delete(w.objects, at)
			continue
		}
		w.write(gvr, name)
	}
}

// lifeOf names an object in a history, which the epoch numbers.
func lifeOf(uid string, epoch int64) string { return fmt.Sprint(uid, " in history ", max(epoch, 1)) }

func (w *world) write(gvr schema.GroupVersionResource, name string) {
	at := place{gvr, name}
	o := w.objects[at]
	if o.uid == "" {
		o.created = time.Now().UTC().Format(time.RFC3339)
	}
	w.states++
	now := fmt.Sprint("state", w.states)
	w.before[now] = o.state
	w.server.Put(gvr, "shop", name, map[string]any{
		"metadata": map[string]any{"creationTimestamp": o.created}, "spec": map[string]any{"is": now},
	})
	o.state = now
	o.uid = w.server.Objects(gvr)["shop/"+name]["metadata"].(map[string]any)["uid"].(string)
	w.objects[at] = o
}

// restore replaces the server's history by that of a backup, while one recorder is down.
func (w *world) restore(down *party) {
	w.settle()
	backup, objects := w.server.Snapshot(), maps.Clone(w.objects)
	overtakes := (w.seed+uint64(w.Restores))%3 > 0
	if (w.seed+uint64(w.Restores))%3 > 1 {
		w.busy = w.kinds[:1] // the others can prove nothing
		w.Quiet++
	}
	w.some(6 + w.IntN(10))
	if overtakes {
		for _, gvr := range w.busy {
			w.write(gvr, fmt.Sprint("lost", w.states))
		}
	}
	w.settle()
	down.stop(w.IntN(2) == 0)
	w.some(w.IntN(10))
	w.server.Restore(backup)
	w.objects = objects
	w.history++
	w.Restores++
	w.pass(time.Minute) // the other one notices
	if w.some(w.IntN(4)); overtakes {
		w.Overtaken++
		w.server.Skip(100)
		w.some(w.IntN(20))
	}
	down.start()
	w.settle()
	w.busy = w.kinds
}

// compare judges the two journals.
func (w *world) compare() tally {
	var ids [2]map[string]map[string]bool // of each state, and of each deleted object in each history
	for i, p := range w.parties {
		ids[i] = map[string]map[string]bool{}
		seen := map[string]bool{}
		for _, r := range p.rows() {
			if seen[r.ID] {
				w.Errorf("%s has id %s twice: %s %s", p.name, r.ID, r.Op, r.after)
			}
			seen[r.ID] = true
			what := r.after
			if r.Op == event.Deleted {
				what = lifeOf(r.UID, r.Epoch)
			}
			if ids[i][what] == nil {
				ids[i][what] = map[string]bool{}
			}
			ids[i][what][r.ID] = true
			if w.check(p, r); r.Net {
				w.Net++
			}
		}
		p.checkHeads(w)
	}
	for what, a := range ids[0] {
		b := ids[1][what]
		switch {
		case b == nil:
			continue
		case strings.HasPrefix(what, "state"):
			w.Both++
		default:
			w.Deleted++
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(id string) bool { return b[id] }) {
			w.Errorf("the recorders have no common id for %s: %v and %v", what, a, b)
		}
	}
	return w.tally
}

// check checks that a row is the very change that was written, or says that it is not.
func (w *world) check(p *party, r rowSeen) {
	switch {
	case r.Op == event.Snapshot, r.Net:
	case r.Op == event.Deleted:
		if life := lifeOf(r.UID, r.Epoch); w.ended[life] != r.before {
			w.Errorf("%s saw the end of %s after %q, not %q, and does not say that something was missed", p.name, life, r.before, w.ended[life])
		}
	case r.before != w.before[r.after]:
		w.Errorf("%s: %s %s follows %q, not %q, and does not say that something was missed", p.name, r.Op, r.after, w.before[r.after], r.before)
	}
}
