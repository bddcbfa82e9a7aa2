package journal

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// large makes a journal of many pages, and returns its path.
func large(t *testing.T, dir string) (*Journal, string) {
	t.Helper()
	path := filepath.Join(dir, "journal.db")
	j, err := Open(t.Context(), path, Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	for i := range 300 {
		add(t, j, pod(event.Updated, i+1))
	}
	return j, path
}

func backup(t *testing.T, path, to string) {
	t.Helper()
	size, err := Backup(t.Context(), path, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to); err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; %d bytes", info, err, size)
	}
}

func filesIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestBackup: a copy made during writes is complete, as of one moment.
func TestBackup(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	j, path := large(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		n := 300
		for ctx.Err() == nil {
			n++
			if _, err := j.Append(ctx, []Batch{{Stream: pods, Head: Head{Version: "9", At: epoch}, Rows: []Row{pod(event.Updated, n)}}}); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for _, name := range []string{"one", "two", "three"} {
		backup(t, path, filepath.Join(store, name))
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := filesIn(t, store); !slices.Equal(got, []string{"one", "three", "two"}) {
		t.Errorf("made %v", got)
	}
	all := contents(t, path)
	for _, name := range []string{"one", "two", "three"} {
		got := contents(t, filepath.Join(store, name))
		if len(got) < 300 || !slices.Equal(got, all[:len(got)]) {
			t.Errorf("%s has %d changes of %d, or other ones", name, len(got), len(all))
		}
	}
	if _, err := Backup(t.Context(), path, filepath.Join(store, "one"), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
	if _, err := Backup(t.Context(), filepath.Join(dir, "none"), filepath.Join(store, "four"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no journal: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Backup(ended, path, filepath.Join(store, "four"), nil); !errors.Is(err, context.Canceled) || len(filesIn(t, store)) > 9 {
		t.Errorf("ended: %v, %v", err, filesIn(t, store))
	}
}

// TestBackupOfLongLog: a backup is complete and can be restored if the log has more pages than SQLite caches. Pages in the
// log have no checksums yet, so the copy must add them.
func TestBackupOfLongLog(t *testing.T) {
	dir := t.TempDir()
	path, saved := filepath.Join(dir, "journal.db"), filepath.Join(dir, "saved.db")
	j, err := Open(t.Context(), path, Options{Cluster: "prod"})
	must(t, err)
	for n := range 200 {
		data := make([]byte, 30_000)
		_, _ = rand.Read(data)
		r := pod(event.Created, n+1)
		r.Name, r.UID = fmt.Sprint("web-", n), fmt.Sprint("uid-", n)
		r.Before, r.After = nil, fmt.Appendf(nil, `{"data":%q}`, base64.StdEncoding.EncodeToString(data))
		add(t, j, r)
	}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() < 4<<20 {
		t.Fatalf("the log: %v, %v", log, err)
	}
	backup(t, path, saved)
	was := contents(t, path)
	must(t, j.Close())
	r, err := OpenReader(t.Context(), saved)
	must(t, err)
	rep, err := r.Verify(t.Context(), Verifying{})
	must(t, err, r.Close())
	if rep.Damaged > 0 {
		t.Errorf("the backup has %d damages", rep.Damaged)
	}
	_, err = Restore(t.Context(), saved, path, epoch)
	must(t, err)
	if got := contents(t, path); !slices.Equal(got, was) {
		t.Errorf("%d of %d changes are restored, or other ones", len(got), len(was))
	}
}

// TestRestore: a backup replaces the journal, which is moved aside and stays readable.
func TestRestore(t *testing.T) {
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved.db")
	j, path := large(t, dir)
	backup(t, path, saved)
	was := contents(t, path)
	add(t, j, pod(event.Updated, 301))
	later := contents(t, path)
	if _, err := Restore(t.Context(), saved, path, epoch); !errors.As(err, new(*LockedError)) {
		t.Errorf("while a daemon has it: %v", err)
	}
	copied, err := os.ReadFile(path + "-wal") // a log that is left behind, as after a crash or a copy
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, kept := range [][]byte{nil, copied} {
		if kept != nil {
			if err := os.WriteFile(path+"-wal", kept, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		now := epoch.Add(time.Duration(len(kept)+1) * time.Second)
		r, err := Restore(t.Context(), saved, path, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := contents(t, path); !slices.Equal(got, was) {
			t.Errorf("restored %d changes of %d", len(got), len(was))
		}
		if got := contents(t, r.Aside); kept == nil && !slices.Equal(got, later) {
			t.Errorf("aside are %d changes of %d", len(got), len(later))
		}
		again, err := Open(t.Context(), path, Options{Cluster: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if again.Cluster() != "prod" {
			t.Errorf("its cluster is %s", again.Cluster())
		}
		add(t, again, pod(event.Updated, 400))
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Restore(t.Context(), saved, filepath.Join(dir, "new", "journal.db"), epoch); err != nil || r.Aside != "" {
		t.Errorf("without an old journal: %+v, %v", r, err)
	}
}

// TestIncompleteCopies: an incomplete journal is never taken for a new one, nor mixed with another one's log.
func TestIncompleteCopies(t *testing.T) {
	_, path := large(t, t.TempDir())
	read := func(end string) []byte {
		t.Helper()
		b, err := os.ReadFile(path + end)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	main, wal := read(""), read("-wal")
	for _, tc := range []struct {
		why       string
		main, wal []byte
		want      string
	}{
		{"empty", []byte{}, nil, "the file is empty"},
		{"truncated in its first page", main[:1000], nil, ""},
		{"truncated", main[:len(main)/2], nil, ""},
		{"a log without a file", nil, wal, "restored in part"},
	} {
		for _, action := range []string{"open", "restore"} {
			dir := t.TempDir()
			copied := filepath.Join(dir, "copy.db")
			for end, b := range map[string][]byte{"": tc.main, "-wal": tc.wal} {
				if b == nil {
					continue
				}
				if err := os.WriteFile(copied+end, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if action == "open" {
				_, err = Open(t.Context(), copied, Options{Cluster: "test"})
			} else {
				_, err = Restore(t.Context(), copied, filepath.Join(t.TempDir(), "journal.db"), epoch)
			}
			if err == nil || action == "open" && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, %s: %v", action, tc.why, err)
			}
			if b, err := os.ReadFile(copied); tc.main != nil && (err != nil || !slices.Equal(b, tc.main)) {
				t.Errorf("%s, %s: the copy was written to: %v", action, tc.why, err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "x.db"), main, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "x.db-wal"), wal, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), filepath.Join(filepath.Dir(path), "x.db"), filepath.Join(t.TempDir(), "journal.db"), epoch); err == nil || !strings.Contains(err.Error(), "not a backup") {
		t.Errorf("a copy with its log: %v", err)
	}
}

// TestKilledHalfway kills backups and restores: a backup is complete or missing, and the journal is the old one or the
// restored one.
func TestKilledHalfway(t *testing.T) {
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved.db")
	j, path := large(t, dir)
	backup(t, path, saved)
	was := contents(t, path)
	add(t, j, pod(event.Updated, 301))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	later := contents(t, path)
	for i := range 12 {
		after := time.Duration(i) * 3 * time.Millisecond
		to := filepath.Join(t.TempDir(), "backup.db")
		killed(t, after, "backup", path, "JOURNAL_TO="+to)
		if _, err := os.Stat(to); err == nil {
			if got := contents(t, to); len(got) < len(was) {
				t.Errorf("a backup of %d changes", len(got))
			}
		}
		killed(t, after, "restore", path, "JOURNAL_FROM="+saved)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // between two renames
			if _, err := Restore(t.Context(), saved, path, epoch.Add(time.Duration(i)*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if got := contents(t, path); !slices.Equal(got, was) && !slices.Equal(got, later) {
			t.Fatalf("after a restore killed after %v, the journal has %d changes", after, len(got))
		}
	}
}

// killed runs a child and kills it after a while.
func killed(t *testing.T, after time.Duration, what, path string, env ...string) {
	t.Helper()
	cmd := command(t, what, path, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-time.After(20*time.Millisecond + after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
