package daemon

import (
	"errors"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// state is what a daemon remembers of its run, to tell it. Several goroutines use it.
type state struct {
	started time.Time

	mu sync.Mutex
	// starting is what is done before anything else is open: see control.Status
	starting string
	watcher  *capture.Watcher // the one that runs, or did last
	stopped  error            // why it does not run any more; nil while it does
	settled  bool             // the first one told that it is ready
	ready    bool             // the present one has
	away     error            // of the API server; nil while it is there
	awayAt   time.Time
	earlier  map[journal.Stream]counts // what watchers before the present one counted
	audits   map[audits]control.Audits // with their counts

	recorded, quiet, duplicates, commits int64
	failures, gone                       int64
	states                               int64 // bytes; 0: not measured yet
	unwritten                            error // the last attempt to write failed
	unwrittenAt                          time.Time
	writing                              time.Time     // since when; zero between writes
	jump, doubt                          time.Duration // of the clock, and for how long it is doubted yet; see clock
}

// counts are of a stream.
type counts struct{ lists, watches, gaps int64 }

// audits are those of a kind that compare contents, or do not.
type audits struct {
	resource string
	contents bool
}

// audited notes an audit.
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

// watches notes that another watcher takes over.
func (s *state) watches(w *capture.Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher != nil {
		if s.earlier == nil {
			s.earlier = map[journal.Stream]counts{}
		}
		for _, st := range s.watcher.Streams() {
			c := s.earlier[streamOf(st.Stream)]
			s.earlier[streamOf(st.Stream)] = counts{c.lists + st.Lists, c.watches + st.Watches, c.gaps + st.Gaps}
		}
	}
	s.watcher, s.stopped, s.ready = w, nil, false
}

// ended notes that the watcher does not run any more, as capture.Watcher and recorder say why. That it
// finds nothing to watch after the start means that the API server does not answer.
func (s *state) ended(unwritten, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = false
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

// hear takes what the watcher tells beside changes.
func (s *state) hear(m capture.Message) {
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

// watching is the watcher once it has settled; nil before, and while there is none.
func (s *state) watching() *capture.Watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		return nil
	}
	return s.watcher
}

// hasSettled reports whether a watcher was ready in this run.
func (s *state) hasSettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled
}

// starts notes what the daemon does before it watches; nothing: that is done.
func (s *state) starts(doing string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting = doing
}

// doing is what starts has noted.
func (s *state) doing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starting
}

// writes notes that a commit begins.
func (s *state) writes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = time.Now()
}

// wrote notes a commit, or why there was none.
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

// removed notes what retention removed.
func (s *state) removed(changes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone += changes
}

// judges notes how far the clock has jumped, and for how much longer that is doubted.
func (s *state) judges(jump, doubt time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jump, s.doubt = jump, doubt; jump == 0 {
		s.doubt = 0
	}
}

// measured notes what the last states take.
func (s *state) measured(states int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = states
}
