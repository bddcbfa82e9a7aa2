package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// crashed returns a journal as a kill leaves it: its newest change is only in its log.
func crashed(t *testing.T, from string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	for _, end := range journalFiles {
		src, err := os.Open(from + end)
		must(t, err)
		dst, err := os.OpenFile(path+end, os.O_CREATE|os.O_WRONLY, 0o600)
		must(t, err)
		_, err = io.Copy(dst, src)
		must(t, err, src.Close(), dst.Close())
	}
	return path
}

// TestRestoreStoppedAtEachStep stops restores at each step, twice in a row, and resumes them later. The old journal stays
// complete, with its log, under one name.
func TestRestoreStoppedAtEachStep(t *testing.T) {
	from, saved := filepath.Join(t.TempDir(), "journal.db"), filepath.Join(t.TempDir(), "saved.db")
	j := open(t, from)
	for i := range 20 {
		add(t, j, pod(event.Updated, i+1))
	}
	backup(t, from, saved)
	was := contents(t, from)
	must(t, j.db.copyLog())
	add(t, j, pod(event.Updated, 21))
	later := contents(t, from)
	_, steps := stopped(t, saved, crashed(t, from), epoch, -1)
	if steps != 6 {
		t.Errorf("a restore has %d steps", steps)
	}
	for first := range steps {
		for second := range steps {
			path := crashed(t, from)
			stopped(t, saved, path, epoch, first)
			stopped(t, saved, path, epoch.Add(time.Hour), second)
			if _, err := os.Stat(path); err != nil {
				if j, err := Open(t.Context(), path, Options{Cluster: "test"}); err == nil {
					t.Fatalf("stopped at %d and %d: a new journal is made: %v", first, second, j.Close())
				}
			}
			if _, err := Restore(t.Context(), saved, path, epoch.Add(2*time.Hour)); err != nil {
				t.Fatalf("stopped at %d and %d: %v", first, second, err)
			}
			if got := contents(t, path); !slices.Equal(got, was) {
				t.Errorf("stopped at %d and %d: restored %d changes of %d", first, second, len(got), len(was))
			}
			checkAside(t, path, later, was)
		}
	}
}

// stopped runs a restore that stops at a step, and returns how many steps it has begun.
func stopped(t *testing.T, saved, path string, now time.Time, at int) (r Restored, steps int) {
	t.Helper()
	stop := errors.New("stopped")
	defer func(was func(func() error) error) { restoreStep = was }(restoreStep)
	restoreStep = func(do func() error) error {
		if steps++; steps == at+1 {
			return stop
		}
		return do()
	}
	r, err := Restore(t.Context(), saved, path, now)
	if err != nil && !errors.Is(err, stop) {
		t.Fatal(err)
	}
	return r, steps
}

// checkAside checks that everything that was moved aside is complete: the old journal, or one restored in between.
func checkAside(t *testing.T, path string, old, restored []string) {
	t.Helper()
	kept := 0
	for _, name := range filesIn(t, filepath.Dir(path)) {
		end := strings.TrimPrefix(name, "journal.db")
		switch {
		case slices.Contains([]string{"", "-wal", "-shm", ".lock"}, end):
		case !strings.HasPrefix(end, ".before-"):
			t.Errorf("%s is left", name)
		case strings.HasSuffix(end, "-wal") || strings.HasSuffix(end, "-shm"):
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), name[:len(name)-4])); err != nil {
				t.Errorf("%s is without its journal", name)
			}
		default:
			got := contents(t, filepath.Join(filepath.Dir(path), name))
			if slices.Equal(got, old) {
				kept++
			} else if !slices.Equal(got, restored) {
				t.Errorf("%s has %d changes", name, len(got))
			}
		}
	}
	if kept != 1 {
		t.Errorf("the old journal is there %d times in %v", kept, filesIn(t, filepath.Dir(path)))
	}
}

// TestAnotherJournalSinceARestore: a journal made after an interrupted restore is moved aside under another name.
func TestAnotherJournalSinceARestore(t *testing.T) {
	_, from := large(t, t.TempDir())
	saved := filepath.Join(t.TempDir(), "saved.db")
	backup(t, from, saved)
	path := crashed(t, from)
	stopped(t, saved, path, epoch, 3) // the journal and its log were moved aside
	must(t, os.Remove(restoring(path)))
	j, err := Open(t.Context(), path, Options{Cluster: "other"})
	must(t, err)
	add(t, j, pod(event.Updated, 1))
	must(t, j.Close())
	other := contents(t, path)
	r, err := Restore(t.Context(), saved, path, epoch)
	must(t, err)
	if got := contents(t, r.Aside); !slices.Equal(got, other) {
		t.Errorf("aside are %d changes of %d", len(got), len(other))
	}
	if got, want := contents(t, path+".before-"+epoch.UTC().Format("20060102T150405Z")), contents(t, from); !slices.Equal(got, want) {
		t.Errorf("the old journal has %d changes of %d", len(got), len(want))
	}
}
