package deliver

import (
	"context"
	"fmt"
	"time"
)

// State is what a pump is doing.
type State string

// The states. Retrying waits after an error.
const (
	Running  State = "running"
	Paused   State = "paused"
	Retrying State = "retrying"
	Stopped  State = "stopped"
)

// Status is where a pump stands. Counts are of this run of the pump.
type Status struct {
	// Name is the sink's in the configuration, Sink what it calls itself.
	Name, Sink string
	State      State
	// Cursor is the sequence number up to which the sink is done, Last the store's newest.
	Cursor, Last int64
	// Lag is how long ago the first change after the cursor was seen; 0 where there is none. Changes that
	// the filter leaves out count until they have been looked at.
	Lag time.Duration
	// Delivered are acknowledged messages, Dead dead letters, Attempts calls of Send, Failures those errors
	// after which the pump waited, the store's included.
	Delivered, Dead, Attempts, Failures int64
	// FilterErrors counts how often the filter failed, again for an event that is read again; FilterError is
	// its last error.
	FilterErrors int64
	FilterError  string
	// Error is the last error and ErrorAt its time; they stay when the sink works again. Retry is when it
	// is tried next, zero where State is not Retrying.
	Error          string
	ErrorAt, Retry time.Time
}

// Standing is the status without what only the store knows: Last and Lag are 0.
func (p *Pump) Standing() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	switch {
	case s.State == Stopped:
	case p.paused: // before the loop sees it
		s.State = Paused
	case s.State == "", s.State == Paused: // as it sees that it is no more
		s.State = Running
	}
	return s
}

// Status asks the store how far the pump is behind. With an error, all but Last and Lag is right.
func (p *Pump) Status(ctx context.Context) (Status, error) {
	s := p.Standing()
	var err error
	if s.Last, err = p.o.Store.Last(ctx); err != nil {
		return s, fmt.Errorf("read the journal's end: %w", err)
	}
	if s.Cursor >= s.Last {
		return s, nil
	}
	for item, err := range p.o.Store.Read(ctx, s.Cursor) {
		if err != nil {
			return s, fmt.Errorf("read journal: %w", err)
		}
		if item.Event != nil {
			s.Lag = max(0, time.Since(item.Event.Data.Observed.At))
		}
		break
	}
	return s, nil
}

func (p *Pump) report(f func(*Status)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.status)
}

func (p *Pump) failed(err error, failures int, wait time.Duration) {
	now := time.Now()
	p.report(func(s *Status) {
		s.Failures++
		s.State, s.Error, s.ErrorAt, s.Retry = Retrying, err.Error(), now, now.Add(wait)
	})
	if failures == 1 { // of a row; Status has the others
		p.o.Log.Warn("delivery failed", "sink", p.o.Name, "error", err, "retry in", wait)
	}
}

func (p *Pump) settled(failures *int) {
	if *failures > 0 {
		p.o.Log.Info("delivery works again", "sink", p.o.Name)
	}
	*failures = 0
	p.report(func(s *Status) { s.State, s.Retry = Running, time.Time{} })
}
