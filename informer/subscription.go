package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Mode selects which changes a Subscription delivers.
type Mode uint8

const (
	// Latest delivers the difference between an object's current state and the state that the subscriber knows. A slow
	// subscriber misses intermediate versions, and they cost nothing. A subscriber that also reads the cache may see
	// states there that it never receives as a change, such as an object deleted before its addition was taken; that is
	// why informer/controller uses Every.
	Latest Mode = iota
	// Every delivers every version that the server sent while the subscriber stays within its budget; beyond it, a
	// Gapped change, followed by the changes that Latest would deliver.
	Every
)

// SubscribeOptions tune a Subscription. The zero value is usable.
type SubscribeOptions struct {
	Mode Mode
	// Budget limits the queue of mode Every, in compressed bytes; 0 means 32 MiB.
	Budget int64
	// SkipInitial leaves out the objects of a stream's first list or, if that is complete already, the objects that
	// exist when the subscription starts. Later changes are never left out.
	SkipInitial bool
	// FromCheckpoint delivers a checkpoint's state as soon as it is loaded, as it was saved, and then the
	// differences from it. Without it, a stream that starts from a checkpoint is delivered once it is synced: verified
	// and current. Use it for subscriptions that exist before the source starts: see Cluster.Hold.
	FromCheckpoint bool
}

// Change is one change of one object.
type Change[T Object] struct {
	Op  Op
	Key Key
	UID types.UID
	// Initial is true for the state with which a subscription starts.
	Initial bool
	// Relisted is true for a difference found by comparing a list with the known state.
	Relisted bool
	// At is when this process saw the change.
	At time.Time
	// Stream is the change's stream. Gap is set if Op is Gapped; Key and UID are then empty.
	Stream Stream
	Gap    *Gap

	informer   *Informer[T]
	stream     *stream
	oldV, newV *compact.Version
}

// Old decodes the object as the subscriber knew it: nil for Added, the last known object for Deleted.
func (c *Change[T]) Old() (T, error) { return c.decode(c.oldV, c.newV) }

// New decodes the object as it is now: nil for Deleted. For subscriptions on Informer.Shared, Old and New are decoded
// once for all subscribers, except for one that lags far behind.
func (c *Change[T]) New() (T, error) { return c.decode(c.newV, c.oldV) }

// OldResourceVersion returns the resource version of Old; empty for Added.
func (c *Change[T]) OldResourceVersion() string { return strings.Clone(c.oldV.RV()) }

// ResourceVersion returns the resource version of New; empty for Deleted.
func (c *Change[T]) ResourceVersion() string { return strings.Clone(c.newV.RV()) }

// decode decodes one version of the object; base is the other one, or nil.
func (c *Change[T]) decode(v, base *compact.Version) (obj T, err error) {
	if v == nil {
		return obj, nil
	}
	u := passing
	if c.informer.shared {
		u = keeping
	}
	return decodeWithBase(c.informer, c.stream, store.Item{Key: store.Key(c.Key), V: v}, base, u)
}

// Subscription delivers an Informer's changes to one subscriber. Next, All and Handle serve one goroutine at a time;
// the other methods are safe for concurrent use.
type Subscription[T Object] struct {
	informer    *Informer[T]
	consumer    *consumer
	batch       store.Batch // taken and not completely delivered
	next        int         // in batch.Deltas
	initialDone []bool      // by stream: the initial state was delivered and finished
	initialLeft int         // streams whose initial state is not done
	synced      chan struct{}
	onSynced    func() // of the running Handle; nil outside it
}

// Subscribe starts a subscription: first the current state, then every change. The name appears in status, metrics and
// reports. On Informer.Shared, each version is decoded once for all subscribers, and the budget for decoded objects
// grows by 24 MiB.
func (i *Informer[T]) Subscribe(name string, o SubscribeOptions) (*Subscription[T], error) {
	if o.Mode > Every {
		return nil, fmt.Errorf("subscribe %s: unknown mode %d", name, o.Mode)
	}
	n := len(i.source.streams)
	s := &Subscription[T]{informer: i.named("subscription " + strconv.Quote(name)), initialDone: make([]bool, n), initialLeft: n, synced: make(chan struct{})}
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

// Changes is a subscription in mode Latest for a loop, until ctx ends or the loop is left. The last pair has no
// change; its error says why the loop ended: ErrClosed, or the error of ctx.
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

// All yields changes until ctx ends, the loop is left or the subscription ends. The last pair has no change; its error
// is that of Next.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq2[*Change[T], error] {
	return func(yield func(*Change[T], error) bool) {
		for {
			if c, err := s.Next(ctx); !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// Next waits for the next change. Calling it means that the subscriber has finished with the previous one. Its errors
// are ErrClosed and those of ctx; once ctx has ended, it returns no further changes.
func (s *Subscription[T]) Next(ctx context.Context) (*Change[T], error) {
	for {
		if err := s.ended(ctx); err != nil {
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

// ended returns why nothing further is delivered, whatever is queued; nil while the subscription runs.
func (s *Subscription[T]) ended(ctx context.Context) error {
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

// refill takes the next batch, after the subscriber has finished with the previous one.
func (s *Subscription[T]) refill(ctx context.Context) error {
	if s.batch.Synced && !s.initialDone[s.batch.Stream] {
		s.initialDone[s.batch.Stream] = true
		if s.initialLeft--; s.initialLeft == 0 {
			close(s.synced)
			if s.onSynced != nil {
				s.onSynced()
			}
		}
	}
	s.batch, s.next = store.Batch{}, 0
	b, err := s.consumer.queue.Next(ctx)
	if errors.Is(err, store.ErrClosed) {
		s.informer.source.forget(s.consumer) // it was drained
		return ErrClosed
	}
	if err != nil {
		return err
	}
	s.batch = b
	s.informer.source.hooks().lag(s.informer.source.gvr, s.consumer)
	return nil
}

// Synced returns a channel that is closed once the subscriber has finished with every stream's initial state.
func (s *Subscription[T]) Synced() <-chan struct{} { return s.synced }

// Lag returns how far behind the subscriber is.
func (s *Subscription[T]) Lag() Lag { return s.consumer.lag() }

// Stop ends the subscription and drops what it holds.
func (s *Subscription[T]) Stop() { s.consumer.stop() }

// Drain accepts no further changes: queued ones are still delivered, then Next returns ErrClosed.
func (s *Subscription[T]) Drain() { s.consumer.queue.Finish() }

func gapOf(g *store.Gap) *Gap {
	out := Gap(*g)
	return &out
}

// uidOf copies the UID, which would otherwise keep the whole object in memory.
func uidOf(d *store.Delta) types.UID { return types.UID(strings.Clone(d.UID())) }
