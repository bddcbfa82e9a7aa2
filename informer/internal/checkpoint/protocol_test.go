package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// TestCommitProtocol runs random histories of a stream, in successive processes, on a disk that crashes or
// fails at every single operation. It checks that the loaded state is always one that the stream had. Replay
// with CHECKPOINT_SEED; CHECKPOINT_SEEDS=10000 is the soak.
func TestCommitProtocol(t *testing.T) {
	for i, seed := range seeds(t, 200) {
		ops := (&protocol{seed: seed}).run(t)
		every := 1
		if i > 10 && os.Getenv("CHECKPOINT_SEEDS") == "" {
			every = 13
		}
		for at := 1 + i%every; at <= ops; at += every {
			(&protocol{seed: seed, crashAt: at, half: at%2 == 0}).run(t)
			(&protocol{seed: seed, failAt: at, half: at%2 == 0}).run(t)
		}
		if t.Failed() {
			t.Fatalf("replay with CHECKPOINT_SEED=%d", seed)
		}
	}
}

// seeds returns n random seeds, or those from the environment.
func seeds(t *testing.T, n int) []uint64 {
	if v := os.Getenv("CHECKPOINT_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	if v := os.Getenv("CHECKPOINT_SEEDS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = rand.Uint64()
	}
	return all
}

// protocol is a history on a disk with one fault.
type protocol struct {
	seed            uint64
	crashAt, failAt int
	half            bool

	t       *testing.T
	rng     *rand.Rand // of the disk
	model   *model
	disk    *memDisk
	current error // the last Report
	reports int
	fp      string
}

// run returns the number of operations of the first process.
func (p *protocol) run(t *testing.T) (ops int) {
	synctest.Test(t, func(t *testing.T) {
		p.t = t
		p.rng = rand.New(rand.NewPCG(p.seed, uint64(p.crashAt<<16|p.failAt)))
		p.model = newModel(t, p.seed, 14)
		p.disk = newMemDisk()
		p.disk.crashAt, p.disk.failAt, p.disk.half = p.crashAt, p.failAt, p.half
		p.fp = "one"
		ops = p.lives()
		if t.Failed() {
			t.Logf("seed %d, crash at %d, failure at %d, half %v", p.seed, p.crashAt, p.failAt, p.half)
		}
	})
	return ops
}

// lives runs three processes: the first with the fault, the second with a crash anywhere, the third to its
// regular end.
func (p *protocol) lives() (ops int) {
	p.process(false)
	ops = p.disk.ops
	p.reboot()
	p.disk.crashAt, p.disk.half = 1+p.rng.IntN(ops+1), p.rng.IntN(2) == 0
	p.process(false)
	p.reboot()
	p.process(true)
	if p.t.Failed() {
		return ops
	}
	st, err := p.stream().Load(p.fp)
	switch {
	case err != nil:
		p.t.Errorf("after the regular end: %v", err)
	case st.Head != p.model.head || st.Torn != 0:
		p.t.Errorf("after the regular end: got %+v and %d torn bytes, want %+v", st.Head, st.Torn, p.model.head)
	case p.current != nil || p.reports == 0:
		p.t.Errorf("after the regular end: reported %v, in %d reports", p.current, p.reports)
	}
	return ops
}

func (p *protocol) stream() *Stream {
	return &Stream{
		dir: &Dir{path: "mem", disk: p.disk, names: map[string]bool{}}, name: "pods", file: fileName("pods"),
		minFile: 600, maxBuffer: 40,
	}
}

// process loads the file and writes changes until the stream ends, the machine crashes, or, unless it is the
// last process, it is stopped.
func (p *protocol) process(last bool) {
	s := p.stream()
	st, err := s.Load(p.fp)
	if err == nil {
		p.verify(st)
		p.model.resumed(st, 14)
	} else {
		p.model.steps = 14
	}
	if p.rng.IntN(4) == 0 {
		p.fp += "+" // a new program version, which cannot continue the file
	}
	p.reports = 0
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	err = s.Run(ctx, Options{
		Fingerprint: p.fp,
		Subscribe: func() (Queue, error) {
			if p.disk.crashed {
				return nil, errCrashed
			}
			q := p.model.subscribe()
			q.gone = func() bool {
				if !last && p.rng.IntN(30) == 0 {
					stop()
				}
				p.distrusted(q.epoch)
				return p.disk.crashed
			}
			q.end = func() error {
				if p.rng.IntN(2) == 0 {
					return store.ErrClosed
				}
				stop()
				return ctx.Err()
			}
			return q, nil
		},
		Report: func(err error) {
			p.current = err
			p.reports++
			p.reported(err)
		},
	})
	if err != nil && !errors.Is(err, errCrashed) && !(errors.Is(err, errInjected) && ctx.Err() != nil) {
		p.t.Errorf("Run: %v", err)
	}
	if p.disk.handles != 0 || p.model.queues != 0 {
		p.t.Errorf("%d files and %d queues are still open", p.disk.handles, p.model.queues)
	}
}

// reported checks the reports.
func (p *protocol) reported(failure error) {
	if p.disk.crashed {
		return
	}
	if failure == nil {
		st, err := p.durable()
		if err != nil || st.Head.Phase != store.Live {
			p.t.Errorf("reported to be current, and %+v, %v is durable", st, err)
		}
	} else if _, err := p.stream().Load(p.fp); !errors.Is(err, fs.ErrNotExist) {
		p.t.Errorf("after a failed write there is still a file: %v", err)
	}
}

// distrusted checks that there is no resumable state from before the epoch that the writer knows.
func (p *protocol) distrusted(epoch int64) {
	if p.disk.crashed {
		return
	}
	if st, err := p.durable(); err == nil && st.Head.Phase == store.Live && st.Head.Epoch < epoch {
		p.t.Errorf("%+v is durable in epoch %d", st.Head, epoch)
	}
}

// durable returns the state guaranteed to survive a crash.
func (p *protocol) durable() (*State, error) {
	after := protocol{disk: p.disk.reboot(loseAll, p.rng)}
	return after.stream().Load(p.fp)
}

func (p *protocol) verify(st *State) {
	p.t.Helper()
	if err := p.model.check(st); err != nil {
		p.t.Errorf("%v", err)
	}
	if st.Trusted != (st.Fingerprint == p.fp) {
		p.t.Errorf("trusted is %v, fingerprint %q", st.Trusted, st.Fingerprint)
	}
}

// reboot crashes the machine in every way. Each must leave at least the state guaranteed to survive.
func (p *protocol) reboot() {
	before := p.disk
	p.disk = before.reboot(loseAll, p.rng)
	least, err := p.load()
	sure := err == nil && before.removes == 0
	for range 2 {
		for how := range losses {
			p.disk = before.reboot(how, p.rng)
			st, err := p.load()
			switch {
			case err != nil && sure:
				p.t.Errorf("durable state is lost: %v", err)
			case err == nil && sure && p.older(st.Head, least.Head):
				p.t.Errorf("loaded %+v, where %+v was durable", st.Head, least.Head)
			}
		}
	}
	p.disk = before.reboot(loss(p.rng.IntN(int(losses))), p.rng)
}

func (p *protocol) load() (*State, error) {
	st, err := p.stream().Load(p.fp)
	if err == nil {
		p.verify(st)
	} else if !errors.Is(err, fs.ErrNotExist) {
		p.t.Errorf("a crash looks like damage: %v", err)
	}
	return st, err
}

func (p *protocol) older(a, b store.Head) bool {
	return a.Phase == store.Live && b.Phase == store.Live && p.model.order[a] < p.model.order[b]
}

var _ Queue = (*store.Queue)(nil)
