package informer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestModel causes random writes and faults, and checks subscribers against the server's state at the end and against
// the promises on the way. INFORMER_SEED replays one run; INFORMER_FAULTS, names of modelFaults separated by commas,
// selects the faults.
func TestModel(t *testing.T) {
	first, runs := uint64(time.Now().UnixNano()), 40
	if v := os.Getenv("INFORMER_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, runs = seed, 1
	} else if testing.Short() {
		runs = 10
	}
	for i := range uint64(runs) {
		if !t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { model(t, first+i) })
		}) {
			t.Fatalf("replay with INFORMER_SEED=%d", first+i)
		}
	}
}

func model(t *testing.T, seed uint64) {
	w := &world{T: t, rand: rand.New(rand.NewPCG(seed, seed)), server: informertest.NewServer()}
	w.server.Serve(widgets, "Widget")
	for range w.rand.IntN(30) {
		w.write()
	}
	w.backup = w.server.Snapshot()
	w.chooseFaults()
	w.options.Paged = w.rand.IntN(2) == 0
	if w.rand.IntN(3) == 0 {
		w.options.Selection.Namespaces = []string{"n1", "n2"}
	}
	if w.rand.IntN(2) == 0 {
		w.dir = t.TempDir()
	}
	w.begin()
	for i := range 150 {
		w.act()
		if i == 75 {
			w.follow(w.source, 0, 0) // comes late
		}
	}
	w.calm()
	for i, c := range w.consumers {
		c.compare(i, w.server.Objects(widgets))
	}
	w.compareCache()
	w.end()
}

// world is the server and its clients.
type world struct {
	*testing.T
	rand      *rand.Rand
	server    *informertest.Server
	backup    informertest.Snapshot
	consumers []*consumer

	// The current process.
	options informer.SourceOptions
	dir     string // of its checkpoint; empty: none
	source  *informer.Source
	view    *informer.Informer[*unstructured.Unstructured]
	values  *informer.Index[*unstructured.Unstructured, string] // of spec.v
	end     func()

	faults    []*modelFault // of this run
	plain     bool          // the run has no other fault that makes a gap
	ends      []func()
	heals     healing
	forked    atomic.Bool // until an audit notices it, versions may come again, or go back
	reasons   sync.Mutex
	necessary string // the reasons of gaps that were caused
}

// act does one random thing.
func (w *world) act() {
	n := w.rand.IntN(32)
	w.Logf("%s version %s: act %d", time.Now().Format(time.TimeOnly), w.server.Version(), n)
	switch n {
	case 0:
		w.server.Cut()
	case 1:
		w.server.CloseWatches()
	case 2:
		w.compact()
	case 3:
		w.server.SetDown(true)
		w.write()
		w.sleep(20 * time.Second)
		if w.rand.IntN(2) == 0 {
			w.compact() // as a restart does
		}
		w.server.SetDown(false)
	case 4:
		w.server.Bookmark()
	case 5:
		if w.rand.IntN(4) == 0 && !w.plain {
			w.caused(informer.ReasonHistoryChanged + informer.ReasonExpired)
			if len(w.faults) > 0 { // they may delay a stream's probe by a minute: an audit finds it
				w.caused(informer.ReasonMissed)
				w.forked.Store(true)
				w.heals = max(w.heals, byAudit)
			}
			w.server.SetDown(true)
			w.sleep(20 * time.Second)
			w.server.Restore(w.backup)
			w.server.SetDown(false)
			// a history that overtakes ours before the next probe has no suspicious version
			<-time.After(time.Minute)
		} else {
			w.backup = w.server.Snapshot()
		}
	case 6:
		if w.plain {
			return
		}
		w.caused(informer.ReasonUnreadable)
		w.server.Send(widgets, `{"type":"MODIFIED","object":{"metadata":`+"\n")
	case 7:
		w.server.Mute(true)
		w.write()
		w.sleep(4 * time.Minute)
		w.server.Mute(false)
	case 8:
		w.server.Skip(uint64(w.rand.IntN(100)))
	case 9, 10:
		w.sleep(2 * time.Minute)
	case 11, 12, 13:
		w.sleep(time.Second)
	case 14:
		synctest.Wait()
		w.list()
	case 15, 16, 17:
		w.fail()
	default:
		w.write()
	}
}

// compact makes the server drop its history.
func (w *world) compact() {
	if !w.plain {
		w.caused(informer.ReasonExpired)
		w.server.Compact()
	}
}

func (w *world) sleep(limit time.Duration) { <-time.After(time.Duration(w.rand.Int64N(int64(limit)))) }

func (w *world) write() {
	ns, name := fmt.Sprintf("n%d", 1+w.rand.IntN(2)), fmt.Sprintf("o%d", w.rand.IntN(12))
	if w.rand.IntN(4) == 0 {
		w.server.Delete(widgets, ns, name)
		return
	}
	fields := spec(strconv.Itoa(w.rand.IntN(1e9)))
	if w.rand.IntN(4) > 0 {
		fields["metadata"] = map[string]any{"labels": map[string]any{"app": fmt.Sprint("a", w.rand.IntN(3)), "tier": fmt.Sprint("t", w.rand.IntN(2))}}
	}
	w.server.Put(widgets, ns, name, fields)
}

// consumer applies deltas to its own state, strictly.
type consumer struct {
	*testing.T
	world *world
	state map[informer.Key]held
	epoch map[informer.Stream]int64
	seen  map[seen]bool
	live  map[informer.Stream]bool
	// liveEpoch is the epoch of the last live batch: everything held belongs to it.
	liveEpoch map[informer.Stream]int64
	done      chan struct{}
	first     bool // its changes are logged
}

type held struct {
	uid types.UID
	v   feed.Version
}

type seen struct {
	epoch int64
	uid   types.UID
	rv    string
	json  string // differs if the form changed
}

func (w *world) follow(s *informer.Source, budget int64, pause time.Duration) {
	f, err := feed.Join(s, "model", budget)
	if err != nil {
		w.Fatal(err)
	}
	c := &consumer{T: w.T, world: w, state: map[informer.Key]held{}, epoch: map[informer.Stream]int64{},
		seen: map[seen]bool{}, live: map[informer.Stream]bool{}, liveEpoch: map[informer.Stream]int64{}, done: make(chan struct{})}
	c.first = len(w.consumers) == 0
	w.consumers = append(w.consumers, c)
	pauses := rand.New(rand.NewPCG(w.rand.Uint64(), 0))
	go func() {
		defer close(c.done)
		for {
			b, err := f.Next(context.Background())
			if err != nil {
				return
			}
			c.take(b)
			if pause > 0 {
				<-time.After(time.Duration(pauses.Int64N(int64(pause))))
			}
		}
	}()
}

func (c *consumer) take(b feed.Batch) {
	if c.first {
		c.Logf("%s %q: %q", time.Now().Format(time.TimeOnly), b.Stream.Namespace, describe(b))
	}
	if b.Gap != nil && c.world.unnecessary(b.Gap) {
		c.Errorf("a gap that nothing caused: %+v", *b.Gap)
	}
	if b.Epoch < c.epoch[b.Stream] {
		c.Errorf("epoch %d after %d", b.Epoch, c.epoch[b.Stream])
	}
	if b.Epoch > c.epoch[b.Stream] && c.epoch[b.Stream] != 0 && b.Gap == nil {
		c.Errorf("epoch %d begins without a gap", b.Epoch)
	}
	c.epoch[b.Stream] = b.Epoch
	c.live[b.Stream] = b.Phase == feed.Live
	if outdated := strings.Contains(c.world.causes(), informer.ReasonUnreadable); b.Phase == feed.Listing && b.Version != "" ||
		b.Phase != feed.Listing && b.Version == "" && !outdated {
		c.Errorf("phase %d with version %q", b.Phase, b.Version)
	}
	for _, d := range b.Deltas {
		c.apply(b, d)
	}
	if b.Phase == feed.Live {
		c.liveEpoch[b.Stream] = b.Epoch
	}
}

func (c *consumer) apply(b feed.Batch, d feed.Delta) {
	was, known := c.state[d.Key]
	if d.Op == informer.Added {
		if known || !d.Old.IsZero() {
			c.Errorf("added %v, but it is known", d.Key)
		}
	} else if !known || !same(was.v, d.Old) || was.uid != d.UID {
		c.Errorf("op %d of %v: old is %s, the consumer has %s", d.Op, d.Key, d.Old.ResourceVersion, was.v.ResourceVersion)
	}
	if d.Op == informer.Deleted {
		if !d.New.IsZero() {
			c.Errorf("deleted %v with a new version", d.Key)
		}
		delete(c.state, d.Key)
		return
	}
	if d.Op == informer.Updated && !c.world.forked.Load() && c.liveEpoch[b.Stream] == b.Epoch && older(d.New, d.Old) {
		c.Errorf("%v goes back from %s to %s", d.Key, d.Old.ResourceVersion, d.New.ResourceVersion)
	}
	raw, err := d.New.JSON()
	if err != nil {
		c.Errorf("%v: %v", d.Key, err)
	}
	k := seen{b.Epoch, d.UID, d.New.ResourceVersion, string(raw)}
	if c.seen[k] && !c.world.forked.Load() {
		c.Errorf("version %v twice", k)
	}
	c.seen[k] = true
	c.state[d.Key] = held{d.UID, d.New}
}

func older(a, b feed.Version) bool {
	x, _ := strconv.Atoi(a.ResourceVersion)
	y, _ := strconv.Atoi(b.ResourceVersion)
	return x < y
}

func same(a, b feed.Version) bool {
	x, errX := a.JSON()
	y, errY := b.JSON()
	return errX == nil && errY == nil && a.ResourceVersion == b.ResourceVersion && string(x) == string(y)
}

// compare compares the consumer's state with the server's.
func (c *consumer) compare(i int, server map[string]map[string]any) {
	have := map[string]any{}
	for k, h := range c.state {
		o, err := h.v.Object()
		if err != nil {
			c.Fatal(err)
		}
		have[k.Namespace+"/"+k.Name] = o
	}
	want := map[string]any{}
	raw, err := json.Marshal(server)
	if err != nil {
		c.Fatal(err)
	}
	if err := utiljson.Unmarshal(raw, &want); err != nil { // integers stay integers
		c.Fatal(err)
	}
	if !reflect.DeepEqual(have, want) {
		c.Errorf("consumer %d has %v, the server has %v", i, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
		for k, v := range want {
			if !reflect.DeepEqual(have[k], v) {
				c.Errorf("%s: have %v, want %v", k, have[k], v)
			}
		}
	}
	for s, live := range c.live {
		if !live {
			c.Errorf("consumer %d: stream %v is not live", i, s)
		}
	}
}

// jsonOf returns a value's JSON, with sorted fields.
func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
