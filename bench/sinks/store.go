package sinks

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/event"
	internalchange "github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/deliver"
)

// Store is a deliver.Store in memory, for one pump. A read continues at its position without a search, so that it
// costs next to nothing.
type Store struct {
	// single makes each Read yield one item, so that the pump sends each alone.
	single bool

	mu      sync.Mutex
	items   []deliver.Item // item i has sequence number i+1
	cursor  int64
	begun   bool
	refused error
	more    chan struct{} // closed when items are added
}

// Add records changes.
func (s *Store) Add(items ...deliver.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		item.Seq = int64(len(s.items) + 1)
		s.items = append(s.items, item)
	}
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
}

// Read implements deliver.Store.
func (s *Store) Read(_ context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		s.mu.Lock()
		items := s.items[min(after, int64(len(s.items))):]
		s.mu.Unlock()
		if s.single {
			items = items[:min(1, len(items))]
		}
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// Wait implements deliver.Store.
func (s *Store) Wait(ctx context.Context, after int64) error {
	for {
		s.mu.Lock()
		there := int64(len(s.items)) > after
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Last implements deliver.Store.
func (s *Store) Last(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.items)), nil
}

// Cursor implements deliver.Store.
func (s *Store) Cursor(context.Context, string) (int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor, s.begun, nil
}

// SetCursor implements deliver.Store.
func (s *Store) SetCursor(_ context.Context, _ string, seq int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor, s.begun = seq, true
	return nil
}

// SetAside implements deliver.Store: a dead letter spoils the measurement.
func (s *Store) SetAside(_ context.Context, d deliver.DeadLetter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = fmt.Errorf("change %d became a dead letter: %s", d.Seq, d.Reason)
	return nil
}

// Skip implements deliver.Store.
func (s *Store) Skip(ctx context.Context, d deliver.DeadLetter, _ int64) error {
	return s.SetAside(ctx, d)
}

// Rewind implements deliver.Store: nobody asks.
func (*Store) Rewind(context.Context, string, int64) error { return nil }

// Repeats implements deliver.Store.
func (*Store) Repeats(context.Context, string) (int64, error) { return 0, nil }

// DeadLetters implements deliver.Store: nobody asks.
func (s *Store) DeadLetters(context.Context, string) iter.Seq2[deliver.DeadLetter, error] {
	return func(func(deliver.DeadLetter, error) bool) {}
}

// DropDeadLetter implements deliver.Store: nobody asks.
func (s *Store) DropDeadLetter(context.Context, deliver.DeadLetter) error { return nil }

// state returns the sink's cursor and an error if a change was refused.
func (s *Store) state() (cursor int64, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor, s.refused
}

// fleet is the number of objects that change in turn.
const fleet = 500

// changed is all that a pump without a filter reads of a change.
var changed = internalchange.Change{Meta: internalchange.Meta{Op: event.Updated}}

// changes generates updates of deployments from a number on, each about 1,000 bytes as an event. Different numbers
// have different ids, so that a receiver that drops repeats keeps them.
func changes(from, count int) []deliver.Item {
	items := make([]deliver.Item, count)
	for i := range items {
		items[i] = change(from + i)
	}
	return items
}

func change(n int) deliver.Item {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	digest := func() string {
		return fmt.Sprintf("%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
	}
	name, at := fmt.Sprint("web-", n%fleet), time.Unix(gen.Epoch, 0).UTC().Add(time.Duration(n)*time.Millisecond)
	e := event.New("bench", at, event.Data{
		Op: event.Updated,
		Resource: event.Resource{
			Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: fmt.Sprint("team-", n%20),
			Name: name, UID: "0b7d0e2c-0000-4000-8000-" + fmt.Sprintf("%012d", n%fleet), ResourceVersion: strconv.Itoa(1_000_000 + n),
		},
		Changes: []event.Change{
			{Path: "metadata.annotations[checksum/config]", Op: "replace", From: digest(), To: digest(), Manager: "helm"},
			{Path: "spec.template.spec.containers[name=web].image", Op: "replace", From: "registry.example.com/shop/web@sha256:" + digest(), To: "registry.example.com/shop/web@sha256:" + digest(), Manager: "helm"},
		},
		Managers: []event.Manager{{Manager: "helm", Operation: "Update"}},
		Observed: event.Observed{At: at},
	})
	return deliver.Item{Change: &changed, Event: func() *event.Event { return &e }}
}
