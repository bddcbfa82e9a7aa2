package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/internal/journal"
)

// TestJournalMoved: a daemon whose journal is removed or replaced ends with an error, and starts again. An untouched one, and
// one on a network file system, records on.
func TestJournalMoved(t *testing.T) {
	replace := func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		t.Helper()
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name    string
		do      func(t *testing.T, path string)
		network bool
		want    string // in the error; "": it records on
	}{
		{"untouched", func(*testing.T, string) {}, false, ""},
		{"removed", remove, false, "was removed or renamed while it was written"},
		{"replaced", replace, false, "was replaced by another file while it was written"},
		{"on a network file system", replace, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				d := r.daemon(dir, Options{Network: tc.network})
				d.pass(2 * placeEvery)
				tc.do(t, filepath.Join(dir, "journal.db"))
				d.pass(placeEvery)
				if tc.want == "" {
					select {
					case err := <-d.ended:
						t.Fatalf("it ended: %v", err)
					default:
					}
					d.cancel()
					<-d.ended
					return
				}
				err := <-d.ended
				var moved *journal.MovedError
				if !errors.As(err, &moved) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "start tattler run again") {
					t.Errorf("it ended with %v", err)
				}
				if !strings.Contains(d.log.String(), tc.want) {
					t.Errorf("the log has no %q:\n%s", tc.want, &d.log)
				}
				if tc.name == "removed" {
					r.daemon(dir, Options{}).stop()
				}
			})
		})
	}
}
