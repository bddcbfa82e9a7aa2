package deliver

import (
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
	// Cursor is the sequence number up to which the sink is done.
	Cursor int64
	// Held are messages that the sink has taken in, and tells later.
	Held int64
	// Delivered are acknowledged messages, those that are held not among them, Dead dead letters,
	// Attempts calls of Send and Flush, Failures those errors after which the pump waited, the store's included.
	Delivered, Dead, Attempts, Failures int64
	// FilterErrors counts how often the filter failed, again for an event that is read again; FilterError is
	// its last error. These events are delivered.
	FilterErrors int64
	FilterError  string
	// Stuck is the change that holds the sink up; nil: none does.
	Stuck *Stuck
	// Error is the last error and ErrorAt its time; they stay when the sink works again. Retry is when it
	// is tried next, zero where State is not Retrying.
	Error          string
	ErrorAt, Retry time.Time
}

// Status is where the pump stands. The store is not asked.
func (p *Pump) Status() Status {
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
		what := "delivery failed"
		if isPermanent(err) {
			what = "a change was refused and is tried again"
		}
		p.o.Log.Warn(what, "sink", p.o.Name, "error", err, "retry in", wait.Round(time.Millisecond))
	}
}

func (p *Pump) settled(failures *int) {
	if *failures > 0 {
		p.o.Log.Info("delivery works again", "sink", p.o.Name)
	}
	*failures = 0
	p.report(func(s *Status) { s.State, s.Retry = Running, time.Time{} })
}
