package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// receiver is a sink that stores its messages, and acts as a test requires.
type receiver struct {
	// send, if set, decides; the messages that it acknowledges have arrived.
	send func(ctx context.Context, ms []sink.Message) (int, error)

	mu     sync.Mutex
	got    []sink.Message
	calls  []time.Time
	sizes  []int
	closed int
}

func (r *receiver) Send(ctx context.Context, ms []sink.Message) (int, error) {
	r.mu.Lock()
	r.calls = append(r.calls, time.Now())
	r.sizes = append(r.sizes, len(ms))
	r.mu.Unlock()
	acked, err := len(ms), error(nil)
	if r.send != nil {
		acked, err = r.send(ctx, ms)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, ms[:max(0, min(acked, len(ms)))]...)
	return acked, err
}

func (r *receiver) Close(context.Context) error {
	r.closed++
	return nil
}

func (r *receiver) String() string { return "test receiver" }

func (r *receiver) UsesText() bool { return true }

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// numbers returns the sequence numbers of the arrived messages, found by id.
func (r *receiver) numbers() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []int
	for _, m := range r.got {
		for n := range 2000 {
			if m.ID == id(n) {
				out = append(out, n+1)
				break
			}
		}
	}
	return fmt.Sprint(out)
}

var ids sync.Map

func id(n int) string {
	v, ok := ids.Load(n)
	if !ok {
		v, _ = ids.LoadOrStore(n, sinktest.Event(n).ID)
	}
	return v.(string)
}

// rig is a running pump. It lives in a synctest bubble.
type rig struct {
	*testing.T
	store *sinktest.Store
	sink  *receiver
	pump  *deliver.Pump
	stop  func() // ends the pump and waits
	o     deliver.Options
}

// newRig returns a rig whose store has a number of changes, numbered from 1; start runs a pump on it.
func newRig(t *testing.T, changes int, o deliver.Options) *rig {
	r := &rig{T: t, store: &sinktest.Store{}, sink: &receiver{}}
	r.o = o
	r.o.Name, r.o.Sink, r.o.Store = "test", r.sink, r.store
	if o.From == "" {
		r.o.From = deliver.Beginning
	}
	r.append(0, changes)
	return r
}

func (r *rig) append(from, count int) {
	for n := from; n < from+count; n++ {
		r.store.Append(sinktest.Item(n))
	}
}

func (r *rig) start() {
	r.Helper()
	var err error
	if r.pump, err = deliver.New(r.o); err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.pump.Run(ctx) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				r.Errorf("Run: %v", err)
			}
		})
	}
	synctest.Wait()
}

func (r *rig) want(why, numbers string) {
	r.Helper()
	synctest.Wait()
	if got := r.sink.numbers(); got != numbers {
		r.Errorf("%s: got %s, want %s", why, got, numbers)
	}
}

func (r *rig) cursor() int64 {
	r.Helper()
	seq, _, err := r.store.Cursor(r.Context(), "test")
	if err != nil {
		r.Fatal(err)
	}
	return seq
}

var errDown = errors.New("the receiver is down")

func down(context.Context, []sink.Message) (int, error) { return 0, errDown }

// filter is a deliver.Filter whose text does not matter.
type filter func(c *change.Change) (bool, error)

func (f filter) Match(c *change.Change) (bool, error) { return f(c) }
func (f filter) Reads(string) bool                    { return false }
func (f filter) String() string                       { return "after.x == 1" }
