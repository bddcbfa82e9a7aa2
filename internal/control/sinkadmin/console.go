package sinkadmin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// Console shows and controls the sinks of one journal, for the page and for commands. It is safe for concurrent use. All
// fields except Now are required.
type Console struct {
	// Status returns the state of the daemon that writes the journal. Its error says why there is none.
	Status func(context.Context) (control.Status, error)
	// Orders returns what carries out orders; nil before the daemon takes them.
	Orders func() control.Orders
	// Read passes use a reader of the journal.
	Read func(ctx context.Context, use func(*journal.Reader) error) error
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

// State is the state of a journal's streams and sinks.
type State struct {
	// Status is the daemon's. If none answers, only Streams and Sinks are known, as far as the journal has them.
	control.Status
	// Idle is why no daemon answers, such as a *control.NoDaemonError; nil if one does.
	Idle error
	// Former are the sinks that are no longer configured. If no daemon answers, that is unknown, and they are in Sinks.
	Former []control.Sink
}

// All returns all sinks, those that are no longer configured last.
func (s *State) All() []control.Sink { return slices.Concat(s.Sinks, s.Former) }

// Find returns the sink with a name; former says that it is no longer configured. An unknown name gives a refusal.
func (s *State) Find(name string) (found *control.Sink, former bool, err error) {
	all, names := s.All(), []string(nil)
	for i := range all {
		if all[i].Name == name {
			return &all[i], i >= len(s.Sinks), nil
		}
		names = append(names, all[i].Name)
	}
	return nil, false, Unknown(name, names)
}

// State returns the daemon's state or, if none answers, the journal's. The error is the journal's.
func (c *Console) State(ctx context.Context) (s State, err error) {
	s.Status, s.Idle = c.Status(ctx)
	if err := ctx.Err(); err != nil {
		return s, err
	}
	if s.Idle == nil && len(s.Left) == 0 {
		return s, nil
	}
	err = c.Read(ctx, func(r *journal.Reader) error {
		kept, err := Sinks(ctx, r, c.now())
		if err != nil || s.Idle == nil {
			s.Former = slices.DeleteFunc(kept, func(k control.Sink) bool { return !slices.Contains(s.Left, k.Name) })
			return err
		}
		s.Sinks = kept
		s.Streams, err = streams(ctx, r)
		return err
	})
	var none *control.NoDaemonError
	if err != nil && s.Idle != nil && !errors.As(s.Idle, &none) { // the daemon's error says more
		err = s.Idle
	}
	return s, err
}

// streams returns the streams of a journal as no daemon watches them. Since is up to when each was watched.
func streams(ctx context.Context, r *journal.Reader) (all []control.Stream, err error) {
	heads, err := r.Streams(ctx)
	if err != nil {
		return nil, err
	}
	known, err := r.Clusters(ctx)
	for _, h := range heads {
		cluster := ""
		if len(known) > 1 {
			cluster = cmp.Or(h.Stream.Cluster, r.Cluster())
		}
		all = append(all, control.Stream{
			Cluster: cluster, Resource: h.Stream.GroupResource, Namespace: h.Stream.Namespace, Selection: h.Stream.Selection,
			Since: h.Head.At, ResourceVersion: h.Head.Version,
		})
	}
	return all, err
}

// Letters returns at most limit dead letters of a sink, of the changes after a sequence number, in their order.
func (c *Console) Letters(ctx context.Context, sink string, after int64, limit int) (all []Letter, err error) {
	err = c.Read(ctx, func(r *journal.Reader) error {
		dead, err := r.DeadLettersAfter(ctx, sink, after, limit)
		if err != nil {
			return err
		}
		all, err = describe(ctx, r, dead)
		return err
	})
	return all, err
}

// Letter returns the dead letter of a sink with an id, or a refusal.
func (c *Console) Letter(ctx context.Context, sink, id string) (found Letter, err error) {
	err = c.Read(ctx, func(r *journal.Reader) error {
		dead, err := r.DeadLetters(ctx, sink)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(dead, func(d journal.DeadLetter) bool { return d.ID == id })
		if i < 0 {
			return control.Refuse("sink %s has no dead letter %q", sink, id)
		}
		all, err := describe(ctx, r, dead[i:i+1])
		if err == nil {
			found = all[0]
		}
		return err
	})
	return found, err
}

// Aside returns the dead letters of a sink that were set aside until a time; the zero time means all. newest is when the
// last of them was.
func (c *Console) Aside(ctx context.Context, sink string, until time.Time) (all []Letter, newest time.Time, err error) {
	err = c.Read(ctx, func(r *journal.Reader) error {
		dead, err := r.DeadLetters(ctx, sink)
		if err != nil {
			return err
		}
		dead = slices.DeleteFunc(dead, func(d journal.DeadLetter) bool { return !until.IsZero() && d.At.After(until) })
		for _, d := range dead {
			if d.At.After(newest) {
				newest = d.At
			}
		}
		all, err = describe(ctx, r, dead)
		return err
	})
	return all, newest, err
}

// After returns the sequence number after which a replay from a time starts, and when the next change was seen.
func (c *Console) After(ctx context.Context, since time.Time) (seq int64, seen time.Time, err error) {
	err = c.Read(ctx, func(r *journal.Reader) error {
		if seq, err = r.SeqAt(ctx, since); err != nil {
			return err
		}
		seen, err = r.SeenAfter(ctx, seq)
		return err
	})
	return seq, seen, err
}

// Give gives an order to the daemon.
func (c *Console) Give(ctx context.Context, o Order) (Result, error) {
	to := c.Orders()
	if to == nil {
		return Result{}, control.ErrStarting
	}
	return o.Give(ctx, to, true)
}

func (c *Console) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}
