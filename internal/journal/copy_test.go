package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// formats makes this program one that knows other migrations, until the test ends.
func formats(t *testing.T, known []string) {
	t.Helper()
	was := migrations
	t.Cleanup(func() { migrations = was })
	migrations = known
}

func formatOf(t *testing.T, path string) int {
	t.Helper()
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	return r.db.format
}

func copiesOf(t *testing.T, path string) (names []string) {
	t.Helper()
	all, err := Copies(path)
	must(t, err)
	for _, c := range all {
		names = append(names, strings.TrimPrefix(c.Path, path))
	}
	return names
}

// TestMigrateAndBack: what was before a migration can be put back, and the program that wrote it opens it. That
// program refuses the migrated one.
func TestMigrateAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	h := restoreGolden(t, 3, path)
	var said []string
	j, err := Open(t.Context(), path, Options{Cluster: "test", Migrating: func(doing string) { said = append(said, doing) }})
	must(t, err)
	if want := []string{"copying the journal before its migration to format 4", "migrating the journal from format 3 to 4", ""}; !slices.Equal(said, want) {
		t.Errorf("it says %q", said)
	}
	add(t, j, pod(event.Updated, 7777))
	must(t, j.Close())
	if got := copiesOf(t, path); !slices.Equal(got, []string{".before-v4"}) {
		t.Fatalf("the copies are %v", got)
	}
	copied := copyPath(path, 4)
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	now := migrations
	formats(t, now[:3])
	if _, err := Open(t.Context(), path, Options{Cluster: "test"}); !errors.As(err, new(*FormatError)) || !strings.Contains(err.Error(), "newer tattler") {
		t.Errorf("the previous program opens what was migrated: %v", err)
	}
	r, err := Restore(t.Context(), copied, path, epoch)
	must(t, err)
	j = open(t, path)
	if j.db.format != 3 {
		t.Errorf("the previous program has a journal of format %d", j.db.format)
	}
	h.check(t, path)
	must(t, j.Close())
	migrations = now
	if got := contents(t, r.Aside); !strings.Contains(strings.Join(got, "\n"), "7777") {
		t.Error("what was recorded since the migration is gone")
	}
	j = open(t, path) // and forth again, which replaces the copy
	h.checkStates(t, j)
	must(t, j.Close())
	h.check(t, path)
	if got := copiesOf(t, path); !slices.Equal(got, []string{".before-v4"}) {
		t.Errorf("the copies are %v", got)
	}
}

// broken is a migration that fails after it has changed much.
const broken = "UPDATE changes SET time = 0; DELETE FROM objects; CREATE TABLE half (x); SELECT no_such_function()"

// TestMigrationFails: where a migration fails, or ends because the program shall, the journal is as it was. A copy of
// another migration is gone then, and there is a whole one.
func TestMigrationFails(t *testing.T) {
	dir := t.TempDir()
	j, path := large(t, dir)
	must(t, j.Close())
	was := contents(t, path)
	must(t, os.WriteFile(copyPath(path, 4), []byte("of another migration"), 0o600))
	now := migrations
	formats(t, append(slices.Clip(now), "CREATE TABLE good (x)", broken))
	if _, err := Open(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), "migrate to format 6") {
		t.Errorf("a migration that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	migrations = append(slices.Clip(now), "CREATE TABLE good (x)", endless)
	_, err := Open(ctx, path, Options{Migrating: func(doing string) {
		if strings.HasPrefix(doing, "migrating") {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a migration that was ended: %v", err)
	}
	migrations = now
	for _, file := range []string{path, copyPath(path, 6)} {
		if got := contents(t, file); !slices.Equal(got, was) || formatOf(t, file) != 4 {
			t.Errorf("%s has %d changes of %d, and format %d", file, len(got), len(was), formatOf(t, file))
		}
	}
	if got := copiesOf(t, path); !slices.Equal(got, []string{".before-v6"}) {
		t.Errorf("the copies are %v", got)
	}
	verify(t, path)
}

// endless is a migration that writes for minutes.
const endless = "CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000000) SELECT i, hex(randomblob(200)) FROM n"

// migrates is what a child does: it says what it does, and does not end for minutes.
func migrates(path string) error {
	migrations = append(slices.Clip(migrations), "UPDATE changes SET time = 0", endless)
	_, err := Open(context.Background(), path, Options{Cache: 1 << 20, Migrating: func(doing string) { fmt.Println(doing) }})
	return err
}

// TestMigrationKilled kills a program in the midst of a migration, of which much is in the log already, and while it
// copies. The journal is as it was, and the next program opens it.
func TestMigrationKilled(t *testing.T) {
	j, path := large(t, t.TempDir())
	must(t, j.Close())
	was := contents(t, path)
	for _, at := range []string{"copying", "migrating"} {
		cmd := command(t, "migrates", path)
		out, err := cmd.StdoutPipe()
		must(t, err, cmd.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), at) {
		}
		if !strings.HasPrefix(lines.Text(), at) {
			t.Fatalf("it did not come to %s: %v", at, cmd.Wait())
		}
		if at == "migrating" {
			grows(t, path+"-wal", 4<<20)
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		j := open(t, path)
		if j.db.format != len(migrations) {
			t.Errorf("killed while %s, the journal has format %d", at, j.db.format)
		}
		must(t, j.Close())
		if got := contents(t, path); !slices.Equal(got, was) {
			t.Errorf("killed while %s, the journal has %d changes of %d, or others", at, len(got), len(was))
		}
		for _, name := range copiesOf(t, path) {
			if got := contents(t, path+name); !slices.Equal(got, was) {
				t.Errorf("killed while %s, %s has %d changes of %d, or others", at, name, len(got), len(was))
			}
		}
		verify(t, path)
	}
	if got := copiesOf(t, path); !slices.Equal(got, []string{".before-v6"}) {
		t.Errorf("the copies are %v", got)
	}
}

// grows waits until a file has a size.
func grows(t *testing.T, path string, size int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		if info, err := os.Stat(path); err == nil && info.Size() >= size {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not grow to %d bytes", path, size)
		}
		<-time.After(time.Millisecond)
	}
}

// TestNoRoomForACopy: without room for the copy nothing is migrated, unless none is wanted.
func TestNoRoomForACopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	h := restoreGolden(t, 1, path)
	free := int64(migrationLog)
	defer func(was func(string) (int64, bool)) { freeSpace = was }(freeSpace)
	freeSpace = func(string) (int64, bool) { return free, true }
	_, err := Open(t.Context(), path, Options{})
	var copying *CopyError
	if !errors.As(err, &copying) || copying.Free != free || copying.Need <= free || !strings.Contains(err.Error(), "the disk has 32 MiB free, and 33 MiB are needed") {
		t.Errorf("%v", err)
	}
	if got := formatOf(t, path); got != 1 || len(copiesOf(t, path)) > 0 {
		t.Errorf("the journal has format %d, and %v", got, copiesOf(t, path))
	}
	// Where a copy is in the way that cannot be made, too.
	free = 1 << 40
	must(t, os.MkdirAll(filepath.Join(copyPath(path, 4)+".partial", "x"), 0o700))
	if _, err := Open(t.Context(), path, Options{}); !errors.As(err, &copying) || copying.Err == nil {
		t.Errorf("%v", err)
	}
	must(t, os.RemoveAll(copyPath(path, 4)+".partial"))
	j, err := Open(t.Context(), path, Options{NoCopy: true})
	must(t, err)
	h.checkStates(t, j)
	must(t, j.Close())
	if got := copiesOf(t, path); got != nil {
		t.Errorf("the copies are %v", got)
	}
}

// TestDamagedBeforeMigration: a journal with a damaged page is not migrated where a copy is wanted. Neither it nor an
// older copy is changed, however often that is tried; without a copy it is migrated.
func TestDamagedBeforeMigration(t *testing.T) {
	for _, tight := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "journal.db")
		restoreGolden(t, 3, path)
		good, err := os.ReadFile(path)
		must(t, err)
		bad := slices.Clone(good)
		bad[len(bad)/4096/2*4096+100] ^= 1
		must(t, os.WriteFile(path, bad, 0o600), os.WriteFile(copyPath(path, 3), []byte("an older copy"), 0o600))
		was := freeSpace
		freeSpace = func(string) (int64, bool) {
			if tight { // there is room once the older copy is gone
				return int64(len(bad)) + migrationLog - 1, true
			}
			return 1 << 40, true
		}
		for range 2 {
			_, err := Open(t.Context(), path, Options{})
			var copying *CopyError
			if !errors.As(err, &copying) || !copying.Damaged || !strings.Contains(err.Error(), "it is damaged and cannot be copied") {
				t.Errorf("tight %t: %v", tight, err)
			}
			now, err := os.ReadFile(path)
			must(t, err)
			older, err := os.ReadFile(copyPath(path, 3))
			if string(now) != string(bad) || string(older) != "an older copy" || err != nil {
				t.Errorf("tight %t: the journal or the older copy was changed: %v", tight, err)
			}
			if got := copiesOf(t, path); !slices.Equal(got, []string{".before-v3"}) || exists(copyPath(path, 4)+".partial") {
				t.Errorf("tight %t: the copies are %v, or a part of one is left", tight, got)
			}
		}
		j, err := Open(t.Context(), path, Options{NoCopy: true})
		must(t, err)
		if j.db.format != 4 {
			t.Errorf("without a copy it has format %d", j.db.format)
		}
		must(t, j.Close())
		must(t, os.WriteFile(path, good, 0o600))
		if j, err = Open(t.Context(), path, Options{}); err != nil {
			t.Fatal(err)
		}
		must(t, j.Close())
		freeSpace = was
		if got := copiesOf(t, path); !slices.Equal(got, []string{".before-v4"}) {
			t.Errorf("once it is whole, the copies are %v", got)
		}
	}
}

// TestCopyOfNoLongUse: retention removes the copy after a while, and a purge removes it at once: it has what was
// purged.
func TestCopyOfNoLongUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	restoreGolden(t, 2, path)
	j := open(t, path)
	defer j.Close()
	last, err := j.Last(t.Context())
	must(t, err)
	all, err := Copies(path)
	must(t, err)
	for after, want := range map[time.Duration]int{CopyAge - time.Minute: 1, CopyAge + time.Minute: 0} {
		must(t, os.WriteFile(all[0].Path, []byte("a copy"), 0o600))
		done, err := j.Retain(t.Context(), time.Now().Add(after), Retention{}, last)
		must(t, err)
		if got := copiesOf(t, path); len(got) != want || len(done.Copies) != 1-want {
			t.Errorf("after %v there are %v, and %v were removed", after, got, done.Copies)
		}
	}
	must(t, os.WriteFile(all[0].Path, []byte("a copy"), 0o600))
	must(t, j.Purge(t.Context(), Purge{Until: epoch}, nil))
	if got := copiesOf(t, path); got != nil {
		t.Errorf("a purge leaves %v", got)
	}
}
