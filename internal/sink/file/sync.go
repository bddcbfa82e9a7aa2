package file

import (
	"errors"
	"fmt"
	"time"
)

// sync applies the policy after a write.
func (s *Sink) sync() error {
	switch {
	case s.device || s.o.Sync == Never:
	case s.o.Sync == Always:
		return s.syncNow()
	case s.timer == nil:
		var t *time.Timer
		t = time.AfterFunc(s.o.SyncEvery, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.timer != t { // the file was closed or synced meanwhile
				return
			}
			// The caller has gone, so the next Send returns the error. More cannot be done: the lines are
			// already acknowledged.
			s.lost = errors.Join(s.lost, s.syncNow())
		})
		s.timer = t
	}
	return nil
}

func (s *Sink) syncNow() error {
	s.disarm()
	if s.device {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

func (s *Sink) disarm() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
