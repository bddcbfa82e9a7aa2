package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

// TestLink: a journal and a symbolic link to it are one journal, with one lock and one log, wherever the link is.
func TestLink(t *testing.T) {
	file, link := filepath.Join(t.TempDir(), "journal.db"), filepath.Join(t.TempDir(), "link.db")
	must(t, open(t, file).Close())
	must(t, os.Symlink(file, link))
	for _, names := range [][2]string{{file, link}, {link, file}} {
		j := open(t, names[0])
		if _, err := Open(t.Context(), names[1], Options{}); !errors.As(err, new(*LockedError)) {
			t.Errorf("%s is open, and %s as well: %v", names[0], names[1], err)
		}
		last, err := j.Last(t.Context())
		must(t, err)
		add(t, j, pod(event.Updated, int(last)+1))
		if got := contents(t, names[1]); len(got) != int(last)+1 {
			t.Errorf("of %d changes that %s has, %s has %d", last+1, names[0], names[1], len(got))
		}
		must(t, j.Close())
	}
	was, saved := contents(t, file), filepath.Join(t.TempDir(), "saved.db")
	backup(t, link, saved)
	r, err := Restore(t.Context(), saved, link, epoch)
	must(t, err)
	if filepath.Dir(r.Aside) != filepath.Dir(file) || !slices.Equal(contents(t, file), was) || !slices.Equal(contents(t, r.Aside), was) {
		t.Errorf("restored through a link: %+v", r)
	}
	if got := filesIn(t, filepath.Dir(link)); !slices.Equal(got, []string{"link.db"}) {
		t.Errorf("beside the link are %v", got)
	}
}
