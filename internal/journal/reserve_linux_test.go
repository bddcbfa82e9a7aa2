package journal

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// The small disk of these tests, its reserve, and the size of the log at which it is copied: an eighth of the usual.
const (
	smallDisk    = 12 << 20
	smallReserve = 1 << 20
	smallLog     = "PRAGMA wal_autocheckpoint = 512; PRAGMA journal_size_limit = 4194304"
)

// onSmallDisk runs this test binary as a child on a small disk, which is in the child's mount namespace and goes with it.
func onSmallDisk(t *testing.T, what string) {
	t.Helper()
	cmd := command(t, what, filepath.Join(t.TempDir(), "journal.db"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || strings.Contains(string(out), noMount) {
		if os.Getenv("CI") == "" {
			t.Skipf("no file system of our own: %v %s", err, out)
		}
	}
	if err != nil || !strings.Contains(string(out), "done") {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
}

// noMount is the child's output if it may not mount.
const noMount = "mount a small disk"

// small is a journal on a small disk.
type small struct {
	*Journal
	path string
	next int // version
}

func onDisk(path string) (*small, error) {
	if err := syscall.Mount("tmpfs", filepath.Dir(path), "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", smallDisk)); err != nil {
		return nil, fmt.Errorf("%s: %w", noMount, err)
	}
	s := &small{path: path, next: 1}
	return s, s.open()
}

func (s *small) open() (err error) {
	if s.Journal, err = Open(context.Background(), s.path, Options{Cluster: "prod", Reserve: smallReserve}); err != nil {
		return err
	}
	return s.db.script(smallLog)
}

// fill appends until the disk is full, and returns how many changes it took.
func (s *small) fill(most int) (changes int, err error) {
	for changes < most {
		var rows []Row
		for i := range 20 {
			data := make([]byte, 6000)
			_, _ = rand.Read(data)
			r := pod(event.Updated, s.next+i)
			r.Name, r.Before, r.After = fmt.Sprint("web-", i), nil, fmt.Appendf(nil, `{"data":%q}`, base64.StdEncoding.EncodeToString(data))
			r.UID = r.Name
			rows = append(rows, r)
		}
		if _, err := s.Append(context.Background(), []Batch{{Stream: pods, Head: Head{Version: "9", At: epoch}, Rows: rows}}); err != nil {
			return changes, err
		}
		s.next += len(rows)
		changes += len(rows)
	}
	return changes, nil
}

// heals fills the disk and lets retention free space, several times. The limits allow more than the disk has.
func heals(path string) error {
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	limit := Retention{Age: time.Hour, Size: 1 << 30}
	if got, err := s.Retain(context.Background(), epoch, limit, 0); err != nil || got.Unreserved != nil {
		return fmt.Errorf("an empty journal: %+v, %w", got, err)
	}
	for round := range 3 {
		n, err := s.fill(1 << 20)
		if !errors.Is(err, ErrFull) {
			return fmt.Errorf("round %d: the disk is not full after %d changes, %w", round, n, err)
		}
		if again, err := s.fill(20); !errors.Is(err, ErrFull) {
			return fmt.Errorf("round %d: the disk takes %d changes without retention, %w", round, again, err)
		}
		got, err := s.Retain(context.Background(), epoch, limit, int64(s.next))
		if err != nil || !got.Full || got.Removed == 0 || got.Unreserved != nil {
			return fmt.Errorf("round %d: %+v, %w", round, got, err)
		}
		if n, err = s.fill(200); err != nil {
			return fmt.Errorf("round %d: after it only %d changes, %w", round, n, err)
		}
		fmt.Printf("round %d: %d removed, %d bytes in use\n", round, got.Removed, got.Used)
	}
	return errors.Join(s.whole(), s.Close())
}

// whole checks that the newest changes are complete and that nothing is damaged.
func (s *small) whole() error {
	r, err := OpenReader(context.Background(), s.path)
	if err != nil {
		return err
	}
	defer r.Close()
	st, err := r.Stats(context.Background())
	if err != nil || st.Last != int64(s.next-1) || st.Changes < 200 {
		return fmt.Errorf("%d changes from %d to %d of %d, %w", st.Changes, st.First, st.Last, s.next-1, err)
	}
	rep, err := r.Verify(context.Background(), Verifying{})
	if err != nil || rep.Damaged != 0 {
		return fmt.Errorf("%+v, %w", rep, err)
	}
	fi, err := os.Stat(reservePath(s.path))
	if err != nil || fi.Size() != smallReserve {
		return fmt.Errorf("the reserve: %w", err)
	}
	return nil
}

// TestFullDiskHeals: on a full disk retention frees space, after which recording continues.
func TestFullDiskHeals(t *testing.T) { onSmallDisk(t, "heals") }

// fullAtOnce fills the disk before retention has ever run, as the first list of a large cluster may: the reserve exists from
// the start.
func fullAtOnce(path string) error {
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	if n, err := s.fill(1 << 20); !errors.Is(err, ErrFull) {
		return fmt.Errorf("the disk is not full after %d changes, %w", n, err)
	}
	got, err := s.Retain(context.Background(), epoch, Retention{Age: time.Hour, Size: 1 << 30}, int64(s.next))
	if err != nil || !got.Full || got.Removed == 0 || got.Unreserved != nil {
		return fmt.Errorf("%+v, %w", got, err)
	}
	if n, err := s.fill(200); err != nil {
		return fmt.Errorf("after it only %d changes, %w", n, err)
	}
	return errors.Join(s.whole(), s.Close())
}

// TestFullDiskAtOnce: a disk that is full before retention has run heals.
func TestFullDiskAtOnce(t *testing.T) { onSmallDisk(t, "at-once") }

// unusedPages fills the disk beside a journal with unused pages: these go back to the disk, and no history goes.
func unusedPages(path string) error {
	ctx := context.Background()
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	if _, err := s.fill(900); err != nil {
		return err
	}
	used, _, err := s.used(ctx)
	if err != nil {
		return err
	}
	if err := s.db.copyLog(); err != nil {
		return err
	}
	for done := false; !done; { // as Retain, which gives back pages once many are unused
		p := pruner{j: s.Journal, done: &Retained{}}
		err := s.write(ctx, "shrink", func() error { return p.step(epoch, Retention{Size: used / 4}, int64(s.next)) })
		if err != nil {
			return err
		}
		s.quietAt = max(s.quietAt, p.looked)
		done = p.removed+int(p.looked) == 0
	}
	other := filepath.Join(filepath.Dir(path), "other")
	if err := errors.Join(s.db.copyLog(), writeNoise(other, 1<<30)); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	if n, err := s.fill(1 << 20); !errors.Is(err, ErrFull) {
		return fmt.Errorf("the disk is not full after %d changes, %w", n, err)
	}
	got, err := s.Retain(ctx, epoch, Retention{Age: time.Hour, Size: 1 << 30}, int64(s.next))
	if err != nil || !got.Full || got.Removed > 0 || got.Unreserved != nil {
		return fmt.Errorf("%+v, %w; want only unused pages to go", got, err)
	}
	if n, err := s.fill(200); err != nil {
		return fmt.Errorf("after it only %d changes, %w", n, err)
	}
	return errors.Join(s.whole(), s.Close())
}

// TestFullDiskUnusedPages: on a full disk, unused pages of the file are room.
func TestFullDiskUnusedPages(t *testing.T) { onSmallDisk(t, "unused-pages") }

// noReserve opens a journal on a disk that another program has filled so far that there is no room for a reserve.
func noReserve(path string) error {
	ctx, limit := context.Background(), Retention{Age: time.Hour, Size: 1 << 30}
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	if _, err := s.fill(700); err != nil {
		return err
	}
	if err := errors.Join(s.Close(), removeReserve(reservePath(path))); err != nil {
		return err
	}
	free, _ := freeSpaceOf(filepath.Dir(path))
	if err := writeNoise(filepath.Join(filepath.Dir(path), "other"), free-smallReserve*9/10); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return fmt.Errorf("open without room for a reserve: %w", err)
	}
	if n, err := s.fill(1 << 20); !errors.Is(err, ErrFull) {
		return fmt.Errorf("the disk is not full after %d changes, %w", n, err)
	}
	got, err := s.Retain(ctx, epoch, Retention{}, int64(s.next))
	if err != nil || got.Full || got.Removed > 0 || got.Unreserved == nil {
		return fmt.Errorf("without a limit of size: %+v, %w", got, err)
	}
	if n, err := s.fill(20); err != nil {
		return fmt.Errorf("although nothing can be removed, only %d changes, %w", n, err)
	}
	if err := errors.Join(s.Close(), s.open()); err != nil {
		return err
	}
	if n, err := s.fill(20); !errors.Is(err, ErrFull) {
		return fmt.Errorf("opened again: %d changes, %w", n, err)
	}
	got, err = s.Retain(ctx, epoch, limit, int64(s.next))
	if err != nil || !got.Full || got.Removed == 0 || got.Unreserved != nil {
		return fmt.Errorf("%+v, %w", got, err)
	}
	if n, err := s.fill(80); err != nil {
		return fmt.Errorf("after it only %d changes, %w", n, err)
	}
	return errors.Join(s.whole(), s.Close())
}

// TestFullDiskWithoutReserve: a disk that is full without a reserve heals.
func TestFullDiskWithoutReserve(t *testing.T) { onSmallDisk(t, "no-reserve") }

// heldLog appends while a reader stays open, as a stopped backup does, so that the log cannot be copied into the file. The
// log stays short enough for the disk to copy it, and no changes are removed, which would free no space.
func heldLog(path string) error {
	ctx, limit := context.Background(), Retention{Age: time.Hour, Size: 1 << 30}
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	if got, err := s.Retain(ctx, epoch, limit, 0); err != nil || got.Unreserved != nil {
		return fmt.Errorf("an empty journal: %+v, %w", got, err)
	}
	if _, err := s.fill(300); err != nil {
		return err
	}
	reads, err := openDB(path, "PRAGMA query_only = ON")
	if err != nil {
		return err
	}
	if err := errors.Join(reads.script("BEGIN"), reads.script("SELECT count(*) FROM meta")); err != nil {
		return err
	}
	if n, err := s.fill(1 << 20); !errors.Is(err, ErrHeld) || n < 100 {
		return fmt.Errorf("the log grows by %d changes, %w", n, err)
	}
	other := filepath.Join(filepath.Dir(path), "other")
	if err := writeNoise(other, 1<<30); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	got, err := s.Retain(ctx, epoch, limit, int64(s.next))
	if !errors.Is(err, ErrHeld) || got.Removed > 0 || got.Full {
		return fmt.Errorf("while the log is held: %+v, %w", got, err)
	}
	if fi, err := os.Stat(reservePath(path)); err != nil || fi.Size() != smallReserve {
		return fmt.Errorf("the reserve: %w", err)
	}
	fmt.Println("held:", err)
	if err := errors.Join(os.Remove(other), reads.close()); err != nil {
		return err
	}
	if n, err := s.fill(200); err != nil {
		return fmt.Errorf("without the reader only %d changes, %w", n, err)
	}
	return errors.Join(s.whole(), s.Close())
}

// TestFullDiskHeldLog: on a full disk, no history is removed in vain while a reader holds the log, and recording continues
// after that.
func TestFullDiskHeldLog(t *testing.T) { onSmallDisk(t, "held-log") }

// saysFull fills the disk in several ways, and checks the errors.
func saysFull(path string) error {
	ctx := context.Background()
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	moved := filepath.Join(filepath.Dir(path), "copy.db")
	if _, err := Backup(ctx, path, moved, nil); err != nil {
		return err
	}
	if _, err := s.fill(1000); err != nil {
		return err
	}
	// The backup does not fit, and removes its partial file.
	_, halfway := Backup(ctx, path, filepath.Join(filepath.Dir(path), "backup"), nil)
	full := filepath.Join(filepath.Dir(path), "other")
	if err := writeNoise(full, 1<<30); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	check := func(what string, err error) error {
		text := fmt.Sprint(err)
		fmt.Println(what+":", text)
		if !errors.Is(err, ErrFull) || strings.Count(text, "the disk is full") != 1 || strings.Contains(text, "I/O error") || strings.Contains(text, "\n") {
			return fmt.Errorf("%s on a full disk says %q", what, text)
		}
		return nil
	}
	_, err = s.fill(1 << 20)
	errs := []error{check("backup of more than there is room for", halfway), check("append", err)}
	_, err = Backup(ctx, path, filepath.Join(filepath.Dir(path), "backup"), nil)
	errs = append(errs, check("backup", err))
	_, err = OpenReader(ctx, moved)
	errs = append(errs, check("read", err))
	if !strings.Contains(fmt.Sprint(err), "free space, or copy the journal to another disk") {
		errs = append(errs, errors.New("it does not say what to do"))
	}
	other := filepath.Join(filepath.Dir(path), "new", "journal.db")
	_, err = Open(ctx, other, Options{Cluster: "prod"})
	return errors.Join(append(errs, check("open", err), s.Close())...)
}

// TestFullDiskSaysSo: every failure on a full disk says so, once.
func TestFullDiskSaysSo(t *testing.T) { onSmallDisk(t, "says-full") }

// purges purges on a full disk.
func purges(path string) error {
	ctx := context.Background()
	s, err := onDisk(path)
	if err != nil {
		return err
	}
	if _, err := s.Retain(ctx, epoch, Retention{}, 0); err != nil {
		return err
	}
	n, err := s.fill(1 << 20)
	if !errors.Is(err, ErrFull) {
		return fmt.Errorf("%d changes, %w", n, err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return fmt.Errorf("open on a full disk: %w", err)
	}
	until := epoch.Add(time.Duration(s.next-200) * time.Second)
	if err := s.Purge(ctx, Purge{Until: until}, nil); err != nil {
		return fmt.Errorf("purge of all but 200 of %d changes: %w", n, err)
	}
	if plan, err := s.PlanPurge(ctx, Purge{Until: until}); err != nil || !plan.None() {
		return fmt.Errorf("left to do: %+v, %w", plan, err)
	}
	s.full = true // as after a step of the purge that failed at first
	if got, err := s.Retain(ctx, epoch, Retention{}, 0); err != nil || got.Unreserved != nil {
		return fmt.Errorf("afterwards: %+v, %w", got, err)
	}
	if n, err := s.fill(200); err != nil {
		return fmt.Errorf("afterwards only %d changes, %w", n, err)
	}
	if err := s.whole(); err != nil {
		return err
	}
	return s.Close()
}

// TestFullDiskPurge: a purge works on a full disk.
func TestFullDiskPurge(t *testing.T) { onSmallDisk(t, "purges") }

// TestReserve: the reserve is made once, takes space, and is made again if it was truncated.
func TestReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := Open(t.Context(), path, Options{Cluster: "prod", Reserve: smallReserve})
	must(t, err)
	defer j.Close()
	retain := func() []byte {
		t.Helper()
		got, err := j.Retain(t.Context(), epoch, Retention{}, 0)
		must(t, err, got.Unreserved)
		b, err := os.ReadFile(reservePath(path))
		must(t, err)
		return b
	}
	first := retain()
	if len(first) != smallReserve || bytes.Count(first, []byte{0}) > smallReserve/100 {
		t.Errorf("%d bytes, %d of them 0", len(first), bytes.Count(first, []byte{0}))
	}
	if !bytes.Equal(first, retain()) {
		t.Error("it was made again")
	}
	must(t, os.Truncate(reservePath(path), 100))
	if n := len(retain()); n != smallReserve {
		t.Errorf("after it was torn: %d bytes", n)
	}
}
