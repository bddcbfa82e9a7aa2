package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// The names of orders, in the log and in metrics.
const (
	orderPause      = "pause"
	orderResume     = "resume"
	orderReplay     = "replay"
	orderRemove     = "remove"
	orderSkip       = "skip"
	orderReplayDead = "replay dead letters"
	orderDropDead   = "drop dead letters"
)

// OrderCount counts the orders of one name since the daemon's start.
type OrderCount struct {
	Order string `json:"order"`
	// Done were carried out. Refused made no sense, such as an order for an unknown sink. Failed are the others.
	Done    int64 `json:"done"`
	Refused int64 `json:"refused"`
	Failed  int64 `json:"failed"`
}

type byKey struct{}

// By returns a context for orders that someone gives: a command, or a viewer of the page. The daemon logs by.
func By(ctx context.Context, by string) context.Context { return context.WithValue(ctx, byKey{}, by) }

// GivenBy returns who gives the orders of a context; empty if that is unknown.
func GivenBy(ctx context.Context) string {
	by, _ := ctx.Value(byKey{}).(string)
	return by
}

// Audit are the orders of a daemon, from its socket and from its page. It bounds the time of each, and logs and counts
// it: a user looking for an undelivered change must be able to see that the sink was paused, and by whom. It is safe for
// concurrent use.
type Audit struct {
	to  Orders
	log *slog.Logger

	mu     sync.Mutex
	counts []OrderCount
}

var _ Orders = (*Audit)(nil)

// NewAudit returns an Audit of orders; a nil log discards.
func NewAudit(to Orders, log *slog.Logger) *Audit {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Audit{to: to, log: log}
	for _, name := range []string{orderPause, orderResume, orderReplay, orderSkip, orderReplayDead, orderDropDead, orderRemove} {
		a.counts = append(a.counts, OrderCount{Order: name})
	}
	return a
}

// Counts returns the counts of all orders.
func (a *Audit) Counts() []OrderCount {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.counts)
}

// Pause implements Orders.
func (a *Audit) Pause(ctx context.Context, sink string, paused bool) error {
	name := orderResume
	if paused {
		name = orderPause
	}
	return a.give(ctx, name, sink, orderTime, func(ctx context.Context) ([]any, error) {
		return nil, a.to.Pause(ctx, sink, paused)
	})
}

// Replay implements Orders.
func (a *Audit) Replay(ctx context.Context, sink string, from Place) (r Replayed, err error) {
	err = a.give(ctx, orderReplay, sink, orderTime, func(ctx context.Context) ([]any, error) {
		r, err = a.to.Replay(ctx, sink, from)
		return []any{"changes", r.Again}, err
	})
	return r, err
}

// Skip implements Orders.
func (a *Audit) Skip(ctx context.Context, sink, id string) (s Skipped, err error) {
	err = a.give(ctx, orderSkip, sink, orderTime, func(ctx context.Context) ([]any, error) {
		s, err = a.to.Skip(ctx, sink, id)
		return []any{"change", s.ID}, err
	})
	return s, err
}

// ReplayDead implements Orders.
func (a *Audit) ReplayDead(ctx context.Context, sink string, ids []string) (done Retried, err error) {
	err = a.give(ctx, orderReplayDead, sink, deadTime, func(ctx context.Context) ([]any, error) {
		done, err = a.to.ReplayDead(ctx, sink, ids)
		return []any{"letters", len(ids), "accepted", done.Taken}, err
	})
	return done, err
}

// DropDead implements Orders.
func (a *Audit) DropDead(ctx context.Context, sink string, ids []string) (n int, err error) {
	err = a.give(ctx, orderDropDead, sink, orderTime, func(ctx context.Context) ([]any, error) {
		n, err = a.to.DropDead(ctx, sink, ids)
		return []any{"letters", n}, err
	})
	return n, err
}

// Remove implements Orders.
func (a *Audit) Remove(ctx context.Context, sink string) error {
	return a.give(ctx, orderRemove, sink, orderTime, func(ctx context.Context) ([]any, error) {
		return nil, a.to.Remove(ctx, sink)
	})
}

// give gives an order, and logs and counts it. do returns attributes for the log.
func (a *Audit) give(ctx context.Context, name, sink string, limit time.Duration, do func(context.Context) ([]any, error)) error {
	by := GivenBy(ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	attrs, err := do(ctx)
	err = busy(err)
	attrs = append([]any{"order", name, "sink", sink, "by", by}, attrs...)
	var refusal *Refusal
	switch {
	case err == nil:
		a.log.Info("order carried out", attrs...)
	case errors.As(err, &refusal):
		a.log.Warn("order refused", append(attrs, "error", err)...)
	default:
		a.log.Warn("order failed", append(attrs, "error", err)...)
	}
	a.count(name, err)
	return err
}

func (a *Audit) count(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.counts {
		c := &a.counts[i]
		var refusal *Refusal
		switch {
		case c.Order != name:
		case err == nil:
			c.Done++
		case errors.As(err, &refusal):
			c.Refused++
		default:
			c.Failed++
		}
	}
}

// busy explains an exceeded deadline: the sink is in the middle of a delivery, or the disk is slow.
func busy(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("it takes too long: the sink's current delivery does not end, or the disk is slow; try again: %w", err)
}

// byHeader names who gives an order, in a request to the socket. It is percent-encoded. Only processes of the daemon's
// user, and root, can send one.
const byHeader = "Tattler-Given-By"

// maxBy bounds the logged name, in bytes.
const maxBy = 256

// givenBy returns who sent an order, as far as the sender says.
func givenBy(r *http.Request) string {
	by, err := url.QueryUnescape(r.Header.Get(byHeader))
	if err != nil || by == "" {
		return "an unnamed process of this user"
	}
	return by[:min(len(by), maxBy)]
}
