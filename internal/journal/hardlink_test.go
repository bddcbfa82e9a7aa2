//go:build linux || darwin || windows

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

// TestHardLink: a journal that is open under one name cannot be opened or replaced under another, whose log would be
// another file. That holds in both directions, and after other descriptors of the file were closed.
func TestHardLink(t *testing.T) {
	for _, linkFirst := range []bool{false, true} {
		first, second := filepath.Join(t.TempDir(), "journal.db"), filepath.Join(t.TempDir(), "link.db")
		must(t, open(t, first).Close())
		if err := os.Link(first, second); err != nil {
			t.Fatal(err)
		}
		saved := filepath.Join(t.TempDir(), "saved.db")
		backup(t, first, saved)
		if linkFirst {
			first, second = second, first
		}
		j := open(t, first)
		add(t, j, pod(event.Updated, 1))
		contents(t, first) // opens the file, and closes it
		var locked *LockedError
		if _, err := Open(t.Context(), second, Options{}); !errors.As(err, &locked) || !locked.OtherName {
			t.Errorf("%s is open, and %s as well: %v", first, second, err)
		}
		if _, err := Restore(t.Context(), saved, second, epoch); !errors.As(err, &locked) {
			t.Errorf("%s is open, and %s is replaced: %v", first, second, err)
		}
		add(t, j, pod(event.Updated, 2)) // the refused one left it alone
		must(t, j.Close())
		if got := contents(t, first); len(got) != 2 {
			t.Errorf("%s has %d changes", first, len(got))
		}
		must(t, open(t, second).Close()) // it is free now
	}
}
