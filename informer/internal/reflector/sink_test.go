package reflector

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// sink logs its calls.
type sink struct {
	mu      sync.Mutex // also read by the test
	log     []string
	version string
	last    Machine
	reports int
	current int // number of Current calls
	behind  []string
	refuse  string // the call that fails with ErrReplaced
	slow    string // the call that takes long
}

// load changes the sink's version.
func (s *sink) load(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// reject selects the call that fails with ErrReplaced.
func (s *sink) reject(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = what
}

// logged logs a call and takes over its version, if any.
func (s *sink) logged(version, format string, args ...any) error {
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
		return ErrReplaced
	}
	return nil
}

func (s *sink) Begin(trust Trust) {
	what := [...]string{"begin", "begin by content", "begin epoch"}[trust]
	if trust == Outdated {
		s.load("")
	}
	_ = s.logged("", "%s", what)
}

func (s *sink) Item(o wire.Object) error { return s.logged("", "%s@%s", o.Name, o.ResourceVersion) }
func (s *sink) Gone(o wire.Object)       { _ = s.logged("", "-%s@%s", o.Name, o.ResourceVersion) }

func (s *sink) Unreadable(m wire.Meta, _ error) { _ = s.logged("", "unreadable %s", m.Name) }

func (s *sink) Page(version string) error {
	if wire.Older(version, s.Version()) {
		return ErrReplaced
	}
	return s.logged("", "page %s", version)
}

func (s *sink) Live(version string) { _ = s.logged(version, "live %s", version) }

func (s *sink) Event(ev wire.Event) error {
	return s.logged(ev.ResourceVersion, "%s %s@%s", strings.ToLower(ev.Type), ev.Name, ev.ResourceVersion)
}

func (s *sink) Skipped(m wire.Meta) { _ = s.logged("", "skipped %s", m.Name) }

func (s *sink) Bookmark(version string) error { return s.logged(version, "bookmark %s", version) }
func (s *sink) CaughtUp(version string) error { return s.logged("", "caught up %s", version) }

func (s *sink) Behind(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = append(s.behind, version)
}

func (s *sink) HistoryChecked() error { return s.logged("", "history checked") }

func (s *sink) Current() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current++
}

func (s *sink) Missed(reason string, _ error, now bool) {
	if now {
		reason += " now"
	}
	_ = s.logged("", "missed %s", reason)
}

func (s *sink) Retire() { _ = s.logged("", "retire") }

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
