package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// rotate renames the file to PATH.1, and the older ones to the next number; the oldest is overwritten. A crash in
// between leaves a number unused, which the next rotation handles.
func (s *Sink) rotate() error {
	if s.o.Sync != Never {
		if err := s.syncNow(); err != nil {
			return err
		}
	}
	if err := s.shut(); err != nil { // Windows does not rename open files
		return err
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
	return nil
}
