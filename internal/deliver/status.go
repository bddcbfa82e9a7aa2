package deliver

import (
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// State is what a pump is doing.
type State string

// The states. Retrying means waiting after an error.
const (
	Running  State = "running"
	Paused   State = "paused"
	Retrying State = "retrying"
	Stopped  State = "stopped"
)

// Status is the status of a pump. Counters start with the pump's run.
type Status struct {
	// Name is the sink's name in the configuration, Sink its own description.
	Name, Sink string
	State      State
	// Cursor is the sequence number up to which the sink is done.
	Cursor int64
	// Held are messages that the sink has accepted for later delivery.
	Held int64
	// Delivered counts acknowledged messages without held ones; Dead counts dead letters, Attempts calls of
	// Send and Flush, and Failures the errors after which the pump waited, including the store's.
	Delivered, Dead, Attempts, Failures int64
	// FilterErrors counts the filter's failures, again for an event that is read again; FilterError is the last
	// one. These events are delivered.
	FilterErrors int64
	FilterError  string
	// Stuck is the change that blocks the sink, or nil.
	Stuck *Stuck
	// Error is the last error and ErrorAt its time; they remain when the sink works again. Retry is the next
	// attempt's time, zero unless State is Retrying.
	Error          string
	ErrorAt, Retry time.Time
}

// Status returns the pump's status. It does not access the store.
func (p *Pump) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	switch {
	case s.State == Stopped:
	case p.paused: // before the loop sees it
		s.State = Paused
	case s.State == "", s.State == Paused: // until the loop sees that it is running again
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
	if failures == 1 { // the first of a row; Status has the others
		what := "delivery failed"
		if sink.BlamesMessage(err) {
			what = "change refused; retrying"
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
