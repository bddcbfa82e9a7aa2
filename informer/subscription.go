package informer

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Mode says which changes a Subscription hands on.
type Mode uint8

const (
	// Latest hands on what an object is now against what the consumer knows. A slow consumer misses
	// versions in between, and costs nothing for each. One that also reads the cache may see there
	// what it then gets no change for, such as an object that is deleted before its addition was
	// taken: informer/controller uses Every.
	Latest Mode = iota
	// Every hands on every version that the server showed, while the consumer keeps within its
	// budget; else a Gapped change, and then what Latest would.
	Every
)

// SubscribeOptions tune a Subscription. The zero value is usable.
type SubscribeOptions struct {
	Mode Mode
	// Budget bounds what mode Every queues, in compressed bytes; 0 means 32 MiB.
	Budget int64
	// SkipInitial leaves out what was there when a stream's first list was complete, or, later, at
	// the start of the subscription. Changes since then are never left out.
	SkipInitial bool
	// FromCheckpoint hands out the state of a checkpoint as soon as it is loaded, as it was when it was
	// saved, and then what differs from it. Otherwise a stream that starts from a checkpoint is handed
	// out once it is synced: verified and current. It is for subscriptions that are there before the source
	// starts: see Cluster.Hold.
	FromCheckpoint bool
}

// Change is one change of one object.
type Change[T Object] struct {
	Op  Op
	Key Key
	UID types.UID
	// Initial is true for the state that a subscription starts with.
	Initial bool
	// Relisted is true for a difference found by comparing a list with what was known.
	Relisted bool
	// At is when this process saw it.
	At time.Time
	// Stream is where it came from. Gap is set where Op is Gapped, and nothing else then.
	Stream Stream
	Gap    *Gap

	informer   *Informer[T]
	stream     *stream
	oldV, newV *compact.Version
}

// Old decodes the object as the consumer knew it: nil for Added; for Deleted the last known one.
func (c *Change[T]) Old() (T, error) { return c.decode(c.oldV, c.newV) }

// New decodes the object as it is: nil for Deleted. Where the subscription was made on Informer.Shared, Old and New are
// decoded once for all who ask, unless one of them lags far behind.
func (c *Change[T]) New() (T, error) { return c.decode(c.newV, c.oldV) }

// OldResourceVersion is the resource version of Old; empty for Added.
func (c *Change[T]) OldResourceVersion() string { return strings.Clone(c.oldV.RV()) }

// ResourceVersion is the resource version of New; empty for Deleted.
func (c *Change[T]) ResourceVersion() string { return strings.Clone(c.newV.RV()) }

// decode decodes one version of the object; near is the other one, or nil.
func (c *Change[T]) decode(v, near *compact.Version) (obj T, err error) {
	if v == nil {
		return obj, nil
	}
	u := passing
	if c.informer.shared {
		u = keeping
	}
	return decodeNear(c.informer, c.stream, store.Item{Key: store.Key(c.Key), V: v}, near, u)
}

// Subscription hands an Informer's changes to one consumer. Next, All and Handle serve one goroutine
// at a time; the rest is safe for concurrent use.
type Subscription[T Object] struct {
	informer *Informer[T]
	consumer *consumer
	batch    store.Batch // what was taken and not handed on yet
	next     int         // in batch.Deltas
	has      []bool      // by stream: the consumer is done with the state that it starts with
	missing  int         // of has
	synced   chan struct{}
	onSynced func() // of who handles the changes
}

// Subscribe starts a subscription: first the current state, then every change. The name shows up in
// what is told about it. On Informer.Shared, what comes in is decoded once for all subscribers, and
// 24 MiB are added to the room for decoded objects.
func (i *Informer[T]) Subscribe(name string, o SubscribeOptions) (*Subscription[T], error) {
	n := len(i.source.streams)
	s := &Subscription[T]{informer: i.as("subscription " + strconv.Quote(name)), has: make([]bool, n), missing: n, synced: make(chan struct{})}
	var shared *codec
	if i.shared {
		shared = i.codec
	}
	var err error
	s.consumer, err = i.source.consume(name, shared, store.QueueOptions{
		Latest: o.Mode == Latest, Budget: o.Budget, SkipInitial: o.SkipInitial, AwaitSynced: !o.FromCheckpoint,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Changes is a subscription for a loop: in mode Latest, until ctx ends or the loop is left. The last
// pair has no change and says how the loop ended: ErrClosed, or the error of ctx.
func (i *Informer[T]) Changes(ctx context.Context, name string) iter.Seq2[*Change[T], error] {
	return func(yield func(*Change[T], error) bool) {
		s, err := i.Subscribe(name, SubscribeOptions{})
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.Stop()
		s.All(ctx)(yield)
	}
}

// All hands changes to a loop until ctx ends, the loop is left or the subscription is over. The last
// pair has no change and says how the loop ended: the error of Next.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq2[*Change[T], error] {
	return func(yield func(*Change[T], error) bool) {
		for {
			if c, err := s.Next(ctx); !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// Next waits for the next change. By asking for it the consumer says that it is done with the last
// one. Its errors are ErrClosed and those of ctx; once ctx has ended there is nothing else.
func (s *Subscription[T]) Next(ctx context.Context) (*Change[T], error) {
	for {
		if err := s.over(ctx); err != nil {
			return nil, err
		}
		if c := s.take(); c != nil {
			return c, nil
		}
		if err := s.refill(ctx); err != nil {
			return nil, err
		}
	}
}

// over tells why nothing more is handed on, whatever is queued.
func (s *Subscription[T]) over(ctx context.Context) error {
	if s.consumer.stopped.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// take returns the next change of the batch, or nil.
func (s *Subscription[T]) take() *Change[T] {
	st := s.informer.source.streams[s.batch.Stream]
	if g := s.batch.Gap; g != nil && s.consumer.every {
		s.batch.Gap = nil
		return &Change[T]{Op: Gapped, Stream: st.id, Gap: gapOf(g), At: g.Until, informer: s.informer, stream: st}
	}
	if s.next == len(s.batch.Deltas) {
		return nil
	}
	d := &s.batch.Deltas[s.next]
	s.next++
	return &Change[T]{
		Op: Op(d.Op), Key: Key(d.Key), UID: uidOf(d), Initial: d.Initial, Relisted: d.Relisted, At: d.At, Stream: st.id,
		informer: s.informer, stream: st, oldV: d.Old, newV: d.New,
	}
}

// refill takes the next batch; the one before is done with.
func (s *Subscription[T]) refill(ctx context.Context) error {
	if s.batch.Synced && !s.has[s.batch.Stream] {
		s.has[s.batch.Stream] = true
		if s.missing--; s.missing == 0 {
			close(s.synced)
			if s.onSynced != nil {
				s.onSynced()
			}
		}
	}
	s.batch, s.next = store.Batch{}, 0
	b, err := s.consumer.queue.Next(ctx)
	if errors.Is(err, store.ErrClosed) {
		s.informer.source.forget(s.consumer) // a drained one is over
		return ErrClosed
	}
	if err != nil {
		return err
	}
	s.batch = b
	s.informer.source.hooks().lag(s.informer.source.gvr, s.consumer)
	return nil
}

// Synced is closed once the consumer is done with the state that every stream started with.
func (s *Subscription[T]) Synced() <-chan struct{} { return s.synced }

// Lag tells how far behind the consumer is.
func (s *Subscription[T]) Lag() Lag { return s.consumer.lag() }

// Stop ends the subscription and drops what it holds.
func (s *Subscription[T]) Stop() { s.consumer.stop() }

// Drain takes nothing more in: what is queued is still handed on, then Next returns ErrClosed.
func (s *Subscription[T]) Drain() { s.consumer.queue.Finish() }

func gapOf(g *store.Gap) *Gap {
	out := Gap(*g)
	return &out
}

// uidOf copies the UID: within the version it would keep the whole object in memory.
func uidOf(d *store.Delta) types.UID { return types.UID(strings.Clone(d.UID())) }
