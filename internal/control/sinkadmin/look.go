package sinkadmin

import (
	"context"
	"fmt"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Sinks says how far the sinks of a journal are, as far as it knows: those that do not run are stopped.
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
		if !k.HasCursor { // it begins when it runs
			k.Cursor = last
		}
		if err := Place(ctx, r, &all[i], k.Cursor, last, now); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Place says of a sink how far behind the journal's end it is.
func Place(ctx context.Context, r *journal.Reader, s *control.Sink, cursor, last int64, now time.Time) error {
	s.Cursor, s.Behind, s.LagSeconds = cursor, max(0, last-cursor), 0
	if s.Behind == 0 {
		return nil
	}
	at, err := r.SeenAfter(ctx, cursor)
	if err != nil {
		return fmt.Errorf("look how far sink %s is: %w", s.Name, err)
	}
	if !at.IsZero() {
		s.LagSeconds = max(0, now.Sub(at).Seconds())
	}
	return nil
}

// Letter is a dead letter, with what the journal knows of its change.
type Letter struct {
	// ID is the event's.
	ID string `json:"id"`
	// Kept says that the journal still has the change: else it cannot be sent any more, and nothing is known
	// of its object.
	Kept      bool   `json:"kept"`
	Op        string `json:"op,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Time is when the change happened.
	Time time.Time `json:"time,omitzero"`
	// Reason is why the sink did not take it, Attempts how often it was sent, Since when it is dead.
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
}

// Letters returns the dead letters of a sink, in the order in which they died.
func Letters(ctx context.Context, r *journal.Reader, sink string) ([]Letter, error) {
	dead, err := r.DeadLetters(ctx, sink)
	if err != nil {
		return nil, err
	}
	all := make([]Letter, len(dead))
	for i, d := range dead {
		l := Letter{ID: d.ID, Reason: d.Reason, Attempts: d.Attempts, Since: d.At}
		q := journal.Query{After: d.Seq - 1, Before: d.Seq + 1, Quiet: true, Snapshots: true, OldestFirst: true, Limit: 1}
		for e, err := range r.Rows(ctx, q) {
			if err != nil {
				return nil, fmt.Errorf("read the change of dead letter %s: %w", d.ID, err)
			}
			l.Kept, l.Op, l.Resource, l.Namespace, l.Name, l.Time = true, string(e.Op), e.Kind.GroupResource(), e.Namespace, e.Name, e.Time
		}
		all[i] = l
	}
	return all, nil
}
