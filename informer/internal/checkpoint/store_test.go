package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// process is a store and its checkpoint, in successive processes.
type process struct {
	*bench
	rng   *rand.Rand
	store *store.Store
	rv    int
}

// TestWithStore drives the real store and queue through events, bursts, relists, new epochs and restarts. The
// state that a process leaves must equal its store's.
func TestWithStore(t *testing.T) {
	for _, seed := range seeds(t, 8) {
		synctest.Test(t, func(t *testing.T) {
			p := &process{bench: newBench(t), rng: rand.New(rand.NewPCG(seed, 5)), rv: 1000}
			p.stream.minFile = 4000
			p.opts.Subscribe = func() (Queue, error) {
				q := store.NewQueue(1, store.QueueOptions{Latest: true})
				p.store.Subscribe(q, time.Now())
				p.opened++
				return q, nil
			}
			p.boot(nil)
			p.list(false)
			for range 6 {
				for range 10 + p.rng.IntN(20) {
					p.step()
				}
				p.restart()
			}
			if t.Failed() {
				t.Fatalf("replay with CHECKPOINT_SEED=%d", seed)
			}
		})
	}
}

// boot starts a process with the state of an earlier one.
func (p *process) boot(st *State) {
	p.store = store.New(0)
	router := compact.NewRouter(compact.Options{})
	p.packer = compact.Packer{Router: router}
	if st != nil {
		for d, f := range st.Dicts() {
			if p.rng.IntN(2) == 0 { // otherwise new applications enter the file
				router.Adopt(f, d)
			}
		}
		p.store.Load(st.Items, st.Head, st.Trusted)
	}
	p.start()
}

// restart stops the process and starts the next one, which resumes or lists.
func (p *process) restart() {
	_, version := p.store.Stat()
	want := p.snapshot(p.store.Snapshot(""))
	st := p.end()
	if st.Head.Phase != store.Live || st.Head.Version != version {
		p.t.Errorf("loaded %+v, want %s", st.Head, version)
	}
	got := p.snapshot(st.Items)
	for k, v := range want {
		if got[k] != v {
			p.t.Errorf("%v: loaded %s, want %s", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		p.t.Errorf("loaded %d objects, want %d", len(got), len(want))
	}
	p.boot(st)
	switch p.rng.IntN(3) {
	case 0:
		p.list(false)
	case 1:
		p.events(3)
		p.commit(store.Commit{Live: true})
	default:
		p.commit(store.Commit{Live: true})
	}
}

func (p *process) snapshot(items []store.Item) map[store.Key]string {
	all := map[store.Key]string{}
	for _, it := range items {
		raw, err := it.V.Append(nil)
		if err != nil {
			p.t.Fatal(err)
		}
		all[it.Key] = fmt.Sprint(it.V.UID(), " ", it.V.RV(), " ", it.V.Format(), string(raw))
	}
	return all
}

func (p *process) step() {
	switch n := p.rng.IntN(12); n {
	case 0:
		p.list(false)
	case 1:
		p.list(true)
	case 2:
		p.commit(store.Commit{})
	case 3:
		p.events(700) // more than one batch of the queue
	default:
		p.events(1 + p.rng.IntN(4))
	}
	if p.rng.IntN(2) == 0 {
		p.wait(time.Duration(p.rng.IntN(1500)) * time.Millisecond)
	}
}

// list lists everything, in two parts, with fewer or more objects than before.
func (p *process) list(newEpoch bool) {
	epoch := p.store.Epoch()
	if newEpoch {
		epoch++
	}
	p.store.Begin(false, epoch)
	if newEpoch {
		p.rv -= p.rng.IntN(100)
	}
	for range 2 {
		var c store.Commit
		for i := range 40 {
			if p.rng.IntN(4) > 0 {
				c.Changes = append(c.Changes, p.change(i))
			}
		}
		c.At = time.Now()
		p.store.Commit(c)
		p.wait(time.Duration(p.rng.IntN(2)) * time.Second)
	}
	p.commit(store.Commit{Sweep: true})
}

func (p *process) events(n int) {
	for range n {
		c := p.change(p.rng.IntN(400))
		if p.rng.IntN(3) == 0 {
			c.Delete = true
		}
		p.commit(store.Commit{Changes: []store.Change{c}})
	}
}

func (p *process) commit(c store.Commit) {
	p.rv++
	c.Version, c.At = fmt.Sprint(p.rv), time.Now()
	p.store.Commit(c)
}

// change is a new version of an object, or a new object of the same name.
func (p *process) change(i int) store.Change {
	p.rv++
	app := i % 3
	raw := fmt.Sprintf(`{"kind":"Pod","metadata":{"name":"p%d","labels":{"app":"app-%d"}},"spec":%q,"n":%d}`,
		i, app, strings.Repeat(fmt.Sprint("some of app ", app), 10), p.rng.Uint32())
	uid, rv := fmt.Sprint(i, "-", p.rng.IntN(10)/9), fmt.Sprint(p.rv)
	return store.Change{Key: store.Key{Namespace: fmt.Sprint("n", i%5), Name: fmt.Sprint("p", i)},
		V: p.packer.Pack(wire.JSON, uid, rv, []byte(raw))}
}
