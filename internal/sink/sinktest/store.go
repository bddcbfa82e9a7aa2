package sinktest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tattler-dev/tattler/internal/deliver"
)

// Store is a deliver.Store in memory, for one sink. It is safe for concurrent use.
type Store struct {
	// Path, if set, is a file that keeps the cursor, so that it survives the process.
	Path string
	// Fail, if set, is called before each method with its name. Its error fails the call.
	Fail func(method string) error

	mu      sync.Mutex
	items   []deliver.Item
	cursor  int64
	begun   bool
	repeats int64
	letters map[string]deliver.DeadLetter
	more    chan struct{} // closed when an item is added
}

// Append records items. It numbers those whose sequence number is 0.
func (s *Store) Append(items ...deliver.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		if item.Seq == 0 {
			item.Seq = s.last() + 1
		}
		s.items = append(s.items, item)
	}
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
}

func (s *Store) last() int64 {
	if len(s.items) == 0 {
		return 0
	}
	return s.items[len(s.items)-1].Seq
}

func (s *Store) fail(method string) error {
	if s.Fail == nil {
		return nil
	}
	return s.Fail(method)
}

// check returns the error that keeps a method from writing. Like the journal, it writes nothing after ctx has ended.
func (s *Store) check(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.fail(method)
}

// Read yields a copy of the items.
func (s *Store) Read(_ context.Context, after int64) iter.Seq2[deliver.Item, error] {
	return func(yield func(deliver.Item, error) bool) {
		s.mu.Lock()
		items := slices.Clone(s.items)
		s.mu.Unlock()
		for _, item := range items {
			if item.Seq <= after {
				continue
			}
			if err := s.fail("Read"); err != nil {
				yield(deliver.Item{}, err)
				return
			}
			if !yield(item, nil) {
				return
			}
		}
	}
}

// Wait waits for Append.
func (s *Store) Wait(ctx context.Context, after int64) error {
	if err := s.fail("Wait"); err != nil {
		return err
	}
	for {
		s.mu.Lock()
		if s.last() > after {
			s.mu.Unlock()
			return nil
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Last returns the newest sequence number.
func (s *Store) Last(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last(), s.fail("Last")
}

// Cursor returns the last SetCursor, even one of another process if Path is set.
func (s *Store) Cursor(context.Context, string) (int64, bool, error) {
	if err := s.fail("Cursor"); err != nil {
		return 0, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Path == "" {
		return s.cursor, s.begun, nil
	}
	text, err := os.ReadFile(s.Path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	seq, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return seq, true, err
}

// SetCursor stores the cursor.
func (s *Store) SetCursor(ctx context.Context, _ string, seq int64) error {
	if err := s.check(ctx, "SetCursor"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cursor, s.begun = seq, true
	if s.Path == "" {
		return nil
	}
	next := s.Path + ".next"
	if err := os.WriteFile(next, fmt.Append(nil, seq), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.Path)
}

// Rewind moves the cursor back.
func (s *Store) Rewind(ctx context.Context, sink string, seq int64) error {
	if err := s.check(ctx, "Rewind"); err != nil {
		return err
	}
	s.mu.Lock()
	s.repeats = max(s.repeats, s.cursor)
	s.mu.Unlock()
	return s.SetCursor(ctx, sink, seq)
}

// Repeats returns the highest cursor from which Rewind moved back.
func (s *Store) Repeats(context.Context, string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repeats, s.fail("Repeats")
}

// SetAside stores a dead letter.
func (s *Store) SetAside(ctx context.Context, d deliver.DeadLetter) error {
	if err := s.check(ctx, "SetAside"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.letters == nil {
		s.letters = map[string]deliver.DeadLetter{}
	}
	s.letters[d.ID] = d
	return nil
}

// Skip stores a dead letter and sets the cursor.
func (s *Store) Skip(ctx context.Context, d deliver.DeadLetter, cursor int64) error {
	if err := s.check(ctx, "Skip"); err != nil {
		return err
	}
	if err := s.SetAside(ctx, d); err != nil {
		return err
	}
	return s.SetCursor(ctx, d.Sink, cursor)
}

// DeadLetters yields a copy of the dead letters.
func (s *Store) DeadLetters(context.Context, string) iter.Seq2[deliver.DeadLetter, error] {
	return func(yield func(deliver.DeadLetter, error) bool) {
		if err := s.fail("DeadLetters"); err != nil {
			yield(deliver.DeadLetter{}, err)
			return
		}
		for _, d := range s.Dead() {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Dead returns the dead letters in order.
func (s *Store) Dead() []deliver.DeadLetter {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]deliver.DeadLetter, 0, len(s.letters))
	for _, d := range s.letters {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b deliver.DeadLetter) int { return int(a.Seq - b.Seq) })
	return out
}

// DropDeadLetter removes a dead letter.
func (s *Store) DropDeadLetter(ctx context.Context, d deliver.DeadLetter) error {
	if err := s.check(ctx, "DropDeadLetter"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.letters, d.ID)
	return nil
}
