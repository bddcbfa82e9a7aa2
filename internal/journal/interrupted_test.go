package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

// TestRestoreEndedBetweenItsRenames: the journal was moved aside, and the backup is not in its place yet. Open does not begin a
// new journal there, even after another failed restore; repeating the restore finishes it.
func TestRestoreEndedBetweenItsRenames(t *testing.T) {
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved.db")
	j, path := large(t, dir)
	backup(t, path, saved)
	was := contents(t, path)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(saved, path+".restoring"); err != nil {
		t.Fatal(err)
	}
	backup(t, path, saved)
	if _, err := moveAside(path, path+".before"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(t.Context(), path, Options{Cluster: "prod"}); err == nil {
			t.Fatal("a new journal was begun")
		}
		if _, err := Restore(t.Context(), filepath.Join(dir, "journal.db.lock"), path, epoch); err == nil {
			t.Fatal("no backup was restored")
		}
	}
	if _, err := Restore(t.Context(), saved, path, epoch); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, path); len(got) != len(was) {
		t.Errorf("%d changes of %d", len(got), len(was))
	}
}

// TestRestoreTwiceAtOneTime: the journal that was moved aside first stays.
func TestRestoreTwiceAtOneTime(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved.db")
	j, path := large(t, t.TempDir())
	backup(t, path, saved)
	add(t, j, pod(event.Updated, 301))
	later := contents(t, path)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	first, err := Restore(t.Context(), saved, path, epoch)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Restore(t.Context(), saved, path, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if first.Aside == second.Aside || len(contents(t, first.Aside)) != len(later) {
		t.Errorf("%s was moved over %s", second.Aside, first.Aside)
	}
}

// TestBackupsAtOnce: of two backups to one file, the first fails instead of renaming the second one's partial file.
func TestBackupsAtOnce(t *testing.T) {
	to := filepath.Join(t.TempDir(), "saved.db")
	j, path := large(t, t.TempDir())
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openDB(path, "CREATE TABLE filler (b BLOB); INSERT INTO filler VALUES (zeroblob(8388608))")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
	begun, half, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		<-begun
		waits := true
		_, err := Backup(t.Context(), path, to, func(int64, int64) {
			if waits {
				waits = false
				half <- struct{}{}
				<-half
			}
		})
		done <- err
	}()
	first := true
	_, err = Backup(t.Context(), path, to, func(int64, int64) {
		if first {
			first = false
			close(begun)
			<-half
		}
	})
	if _, there := os.Stat(to); err == nil || there == nil {
		t.Errorf("half of the other's was renamed: %v", err)
	}
	close(half)
	if err := <-done; err == nil { // it may fail: SQLite removes its rollback journal by name
		contents(t, to)
	} else if _, there := os.Stat(to); there == nil {
		t.Errorf("a backup that failed left its file: %v", err)
	}
}
