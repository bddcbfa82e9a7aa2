package daemon

import (
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// state collects the state of a recording for reports. It is safe for concurrent use.
type state struct {
	mu        sync.Mutex
	watcher   *capture.Watcher // the current one, or the last
	config    *rest.Config     // of its client
	stopped   error            // why it stopped; nil while it runs
	stoppedAt time.Time
	settled   bool  // the first one was ready
	ready     bool  // the current one is ready
	away      error // of the API server; nil while it is reachable
	awayAt    time.Time
	earlier   map[journal.Stream]counts // the counters of earlier watchers
	audits    map[audits]control.Audits // with their counters

	missing    []control.Lack // rights, at the last review
	unreviewed error          // why the last review is incomplete

	recorded, quiet, duplicates, commits int64
	failures                             int64
	unwritten                            error // the last attempt to write failed
	unwrittenAt                          time.Time
	writing                              time.Time // start of the current write; zero between writes
}

// counts are the counters of a stream.
type counts struct{ lists, watches, gaps int64 }

// audits identifies the audits of a kind that compare contents, or those that do not.
type audits struct {
	resource string
	contents bool
}

// audited counts an audit.
func (s *state) audited(resource string, info informer.AuditInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.audits == nil {
		s.audits = map[audits]control.Audits{}
	}
	of := audits{resource, info.Contents}
	n := s.audits[of]
	n.Resource, n.Contents = of.resource, of.contents
	switch n.Reread += info.Reread; {
	case info.Err == nil:
		n.Passed++
	case errors.Is(info.Err, informer.ErrMissed):
		n.Missed++
	default:
		n.Failed++
	}
	s.audits[of] = n
}

// watches records that another watcher takes over, and the configuration of its client.
func (s *state) watches(w *capture.Watcher, config *rest.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher != nil {
		if s.earlier == nil {
			s.earlier = map[journal.Stream]counts{}
		}
		for _, st := range s.watcher.Streams() {
			c := s.earlier[streamOf(st.Stream, "")]
			s.earlier[streamOf(st.Stream, "")] = counts{c.lists + st.Lists, c.watches + st.Watches, c.gaps + st.Gaps}
		}
	}
	s.watcher, s.config, s.stopped, s.ready = w, config, nil, false
}

// ended records that the watcher stopped, with the errors of the recorder and of the watcher. After the start,
// a watcher that finds nothing to watch means that the API server does not answer.
func (s *state) ended(unwritten, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.stoppedAt = false, time.Now()
	switch {
	case unwritten != nil:
		s.stopped, s.away = unwritten, nil
	case err != nil:
		s.stopped = err
		if s.away == nil {
			s.awayAt = time.Now()
		}
		s.away = err
	}
}

// observe takes the watcher's messages other than changes.
func (s *state) observe(m capture.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Ready != nil:
		s.settled, s.ready, s.away = true, true, nil
	case m.Away != nil && m.Away.Until.IsZero():
		s.away, s.awayAt = m.Away.Err, m.Away.Since
	case m.Away != nil:
		s.away = nil
	}
}

// watching returns the watcher once it has settled; nil before, and while none runs.
func (s *state) watching() *capture.Watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		return nil
	}
	return s.watcher
}

// reviewable is watching that also returns the configuration of the watcher's client.
func (s *state) reviewable() (*capture.Watcher, *rest.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		return nil, nil
	}
	return s.watcher, s.config
}

// hasSettled reports whether a watcher was ready in this run.
func (s *state) hasSettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled
}

// writes records that a commit begins.
func (s *state) writes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = time.Now()
}

// wrote records a commit or its failure.
func (s *state) wrote(a journal.Appended, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = time.Time{}
	if s.unwritten = err; err != nil {
		s.failures++
		s.unwrittenAt = time.Now()
		return
	}
	s.commits++
	s.recorded += int64(a.Rows)
	s.quiet += int64(a.Quiet)
	s.duplicates += int64(a.Duplicates)
}

// failed records that a start failed.
func (s *state) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away == nil {
		s.awayAt = time.Now()
	}
	s.away = err
}

// hasFailed reports whether the cluster cannot be watched, or could not until now.
func (s *state) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away != nil
}

// overall is the state that all recordings share. It is safe for concurrent use.
type overall struct {
	started time.Time

	mu         sync.Mutex
	cluster    string        // the name, also before the journal is open
	starting   string        // what is done before anything else is open; see control.Status
	gone       int64         // changes that retention removed
	states     int64         // bytes; 0: not measured yet
	jump, hold time.Duration // of the clock, and how much longer it is ignored; see clock
}

// starts records what the daemon does before it watches; empty when that is done.
func (s *overall) starts(doing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = doing
}

// names records the name of the cluster.
func (s *overall) names(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster = cluster
}

// name returns what names recorded.
func (s *overall) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// doing returns what starts recorded.
func (s *overall) doing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starting
}

// removed counts changes removed by retention.
func (s *overall) removed(changes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone += changes
}

// judges records how far the clock has jumped, and for how much longer that is ignored.
func (s *overall) judges(jump, hold time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jump, s.hold = jump, hold; jump == 0 {
		s.hold = 0
	}
}

// measured records the size of the last states.
func (s *overall) measured(states int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = states
}

// fill adds what overall has collected.
func (s *overall) fill(to *control.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := &to.Journal
	j.Removed, j.States = s.gone, s.states
	j.ClockJump, j.ClockHold = int64(s.jump/time.Second), int64(s.hold/time.Second)
}
