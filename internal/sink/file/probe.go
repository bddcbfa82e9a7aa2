package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Probe implements sink.Prober: it opens the file for writing, or makes a file in its folder and removes it.
func (s *Sink) Probe(context.Context) error {
	if info, err := os.Stat(s.o.Path); err == nil && !info.Mode().IsRegular() {
		return nil // opening a pipe would block until a reader comes
	}
	f, err := os.OpenFile(s.o.Path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = os.CreateTemp(filepath.Dir(s.o.Path), ".tattler-doctor-*"); err == nil {
			defer func() { _ = os.Remove(f.Name()) }()
		}
	}
	if err != nil {
		return fmt.Errorf("the file cannot be written: %w", err)
	}
	return f.Close()
}
