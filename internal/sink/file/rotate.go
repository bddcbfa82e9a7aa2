package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// rotate gives the file the name PATH.1, and those before it the next ones; the oldest goes. A crash in
// between leaves a number out, which the next rotation does not mind.
func (s *Sink) rotate() error {
	if s.o.Sync != Never {
		if err := s.syncNow(); err != nil {
			return err
		}
	}
	name := func(n int) string { return fmt.Sprint(s.o.Path, ".", n) }
	for n := s.o.Rotate.Keep - 1; n > 0; n-- {
		if err := os.Rename(name(n), name(n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate: %w", err)
		}
	}
	if err := os.Rename(s.o.Path, name(1)); err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	return s.shut()
}
