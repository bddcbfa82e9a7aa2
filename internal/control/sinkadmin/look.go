package sinkadmin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Sinks returns the state of a journal's sinks, as far as the journal has it: sinks that do not run are
// stopped.
func Sinks(ctx context.Context, r *journal.Reader, now time.Time) ([]control.Sink, error) {
	kept, err := r.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	last, err := r.Last(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]control.Sink, len(kept))
	for i, k := range kept {
		all[i] = control.Sink{Name: k.Name, State: "stopped", Dead: int64(k.Dead), Lost: k.Lost}
		if k.Paused {
			all[i].State = "paused"
		}
		if !k.HasCursor { // it starts when it runs
			k.Cursor = last
		}
		if err := Place(ctx, r, &all[i], k.Cursor, last, now); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Place sets how far a sink is behind the journal's end.
func Place(ctx context.Context, r *journal.Reader, s *control.Sink, cursor, last int64, now time.Time) error {
	s.Cursor, s.Behind, s.LagSeconds = cursor, max(0, last-cursor), 0
	if s.Behind == 0 {
		return nil
	}
	at, err := r.SeenAfter(ctx, cursor)
	if err != nil {
		return fmt.Errorf("read the position of sink %s: %w", s.Name, err)
	}
	if !at.IsZero() {
		s.LagSeconds = max(0, now.Sub(at).Seconds())
	}
	return nil
}

// Letter is a dead letter, with the journal's record of its change.
type Letter struct {
	// ID is the event's.
	ID string `json:"id"`
	// Seq is the sequence number of the change.
	Seq int64 `json:"-"`
	// Kept reports that the journal still has the change. Otherwise it cannot be sent, and its object is
	// unknown.
	Kept      bool   `json:"kept"`
	Op        string `json:"op,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Time is when the change happened.
	Time time.Time `json:"time,omitzero"`
	// Reason is why the sink refused it, Attempts how often it was sent, Since when it became a dead letter.
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
}

// Letters returns the dead letters of a sink, in the order in which they were set aside.
func Letters(ctx context.Context, r *journal.Reader, sink string) ([]Letter, error) {
	dead, err := r.DeadLetters(ctx, sink)
	if err != nil {
		return nil, err
	}
	return describe(ctx, r, dead)
}

// describe adds the journal's records of the changes to dead letters.
func describe(ctx context.Context, r *journal.Reader, dead []journal.DeadLetter) ([]Letter, error) {
	all := make([]Letter, len(dead))
	for i, d := range dead {
		l := Letter{ID: d.ID, Seq: d.Seq, Reason: d.Reason, Attempts: d.Attempts, Since: d.At}
		for e, err := range r.Rows(ctx, One(d.Seq)) {
			if err != nil {
				return nil, fmt.Errorf("read the change of dead letter %s: %w", d.ID, err)
			}
			l.Kept, l.Op, l.Resource, l.Namespace, l.Name, l.Time = true, string(e.Op), e.Kind.GroupResource(), e.Namespace, e.Name, e.Time
		}
		all[i] = l
	}
	return all, nil
}

// One is the query for the change with a sequence number.
func One(seq int64) journal.Query {
	return journal.Query{After: seq - 1, Before: seq + 1, Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}
}

// Known returns a refusal unless the journal has a sink.
func Known(ctx context.Context, r *journal.Reader, sink string) error {
	kept, err := r.Sinks(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range kept {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, sink) {
		return Unknown(sink, names)
	}
	return nil
}
