package reflector

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// sink logs what it is told.
type sink struct {
	mu      sync.Mutex // the test looks at it, too
	log     []string
	version string
	last    Machine
	reports int
	current int // how often nothing was missing
	behind  []string
	refuse  string // what must not be told: ErrRewritten is the answer
	slow    string // what takes long to be told
}

// load changes what the sink knows.
func (s *sink) load(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// reject says what the sink takes for another history.
func (s *sink) reject(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = what
}

// told logs, and takes the version over where there is one.
func (s *sink) told(version, format string, args ...any) error {
	if s.slow == fmt.Sprintf(format, args...) {
		<-time.After(quiet + time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != "" {
		s.version = version
	}
	what := fmt.Sprintf(format, args...)
	s.log = append(s.log, what)
	if what == s.refuse {
		return ErrRewritten
	}
	return nil
}

func (s *sink) Begin(newEpoch bool) {
	what := "begin"
	if newEpoch {
		what = "begin epoch"
		s.load("")
	}
	_ = s.told("", "%s", what)
}

func (s *sink) Item(o wire.Object) error { return s.told("", "%s@%s", o.Name, o.ResourceVersion) }
func (s *sink) Gone(o wire.Object)       { _ = s.told("", "-%s@%s", o.Name, o.ResourceVersion) }

func (s *sink) Unreadable(m wire.Meta, _ error) { _ = s.told("", "unreadable %s", m.Name) }

func (s *sink) Page(version string) error {
	if wire.Older(version, s.Version()) {
		return ErrRewritten
	}
	return s.told("", "page %s", version)
}

func (s *sink) Live(version string) { _ = s.told(version, "live %s", version) }

func (s *sink) Event(ev wire.Event) error {
	return s.told(ev.ResourceVersion, "%s %s@%s", strings.ToLower(ev.Type), ev.Name, ev.ResourceVersion)
}

func (s *sink) Skipped(m wire.Meta) { _ = s.told("", "skipped %s", m.Name) }

func (s *sink) Bookmark(version string) error { return s.told(version, "bookmark %s", version) }
func (s *sink) CaughtUp(version string) error { return s.told("", "caught up %s", version) }

func (s *sink) Behind(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = append(s.behind, version)
}

func (s *sink) Settle() error { return s.told("", "settled") }

func (s *sink) Current() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current++
}

func (s *sink) Missed(reason string, _ error, tell bool) {
	if tell {
		reason += " now"
	}
	_ = s.told("", "missed %s", reason)
}

func (s *sink) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *sink) Report(m Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = m
	s.reports++
}
