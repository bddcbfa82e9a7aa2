package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
)

const (
	// DefaultReserve is the disk space that a daemon holds in reserve: as much as the log takes until it is copied into
	// the file (see walPages). Measured on disks of 200 MiB full of changes of 8 KB: 8 MiB were enough; with 4 the log
	// could not be copied.
	DefaultReserve = 16 << 20
	// reserveRoom is how many times the reserve is freed on a full disk: for the reserve, for the log, and for new
	// changes. A file of hardly that size is not what fills the disk.
	reserveRoom = 3
	// probeSize is the size of the write that tests for a full disk.
	probeSize = 64 << 10
	// healShare divides the file: at least 1/healShare of it is freed on a full disk.
	healShare = 10
)

// reservePath is the file that holds a journal's reserve, removed when the disk is full.
func reservePath(path string) string { return path + "-reserve" }

// reserved reports whether the reserve exists or is disabled.
func (j *Journal) reserved() bool {
	if j.reserve == 0 {
		return true
	}
	fi, err := os.Lstat(reservePath(j.path))
	return err == nil && fi.Mode().IsRegular() && fi.Size() == j.reserve // a link holds nothing
}

// keepReserve makes the reserve unless it exists or is disabled.
func (j *Journal) keepReserve() error {
	if j.reserved() {
		return nil
	}
	path := reservePath(j.path)
	if err := writeNoise(path, j.reserve); err != nil {
		return errors.Join(fmt.Errorf("hold %d bytes of the disk in reserve: %w", j.reserve, err), removeReserve(path))
	}
	return nil
}

// writeNoise makes a file of random bytes: some file systems store zeros for free.
func writeNoise(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|noFollow, 0o600)
	if err != nil {
		return err
	}
	noise := make([]byte, min(size, 1<<20))
	for size > 0 && err == nil {
		_, _ = rand.Read(noise) // never fails
		var n int
		n, err = f.Write(noise[:min(size, int64(len(noise)))])
		size -= int64(n)
	}
	return errors.Join(err, f.Close())
}

// removeReserve releases the reserve.
func removeReserve(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// errUnreserved is an ErrFull: an append would take the space without which a full disk cannot be healed.
var errUnreserved = fmt.Errorf("%w but for less than the journal's reserve", ErrFull)

// secure makes the reserve before an append if it is missing. Without room for it, the disk counts as full, unless retention
// cannot make room: then the journal grows as long as it can.
func (j *Journal) secure() error {
	if j.reserved() || j.unreserved {
		return nil
	}
	free, known := freeSpace(filepath.Dir(j.path))
	switch {
	case !known: // retention tries
	case free >= 2*j.reserve:
		j.unreserved = j.keepReserve() != nil // retention says why
	case sizeOf(j.path) > (reserveRoom+1)*j.reserve:
		return errUnreserved
	}
	return nil
}

// heal frees space on a full disk, where even the log of a removal does not fit: it releases the reserve, removes
// changes although the limits allow them, shrinks the file, and makes the reserve again. Unused pages of the file are room,
// too. Other calls wait: they would fill the freed space. If there is nothing to free, the reserve stays. If a reader keeps
// the log from being emptied, nothing is removed, as that would free no space.
func (s *shrinking) heal(ctx context.Context) error {
	used, unused, err := s.j.used(ctx)
	if err == nil && s.r.Size > 0 {
		s.least = min(s.r.Size, used) / leastShare
		err = s.j.weigh(ctx, s.r.Size)
	}
	if err != nil {
		return err
	}
	file := used + unused
	if room := max(reserveRoom*s.j.reserve, used/healShare); s.r.Size > 0 && file > room+s.j.reserve {
		s.r.Size = min(s.r.Size, file-room)
	}
	s.keep = s.j.reserve
	return s.j.do(ctx, "shrink", func() error {
		if s.j.full = diskFull(s.j.path); !s.j.full {
			s.done.Unreserved = s.j.keepReserve() // something else freed space
			if !noSpace(s.done.Unreserved) {
				return nil
			}
		}
		if some, err := s.some(); err != nil || !some && unused <= s.keep {
			s.j.unreserved = !s.j.reserved()
			return err
		}
		if err := removeReserve(reservePath(s.j.path)); err != nil {
			return err
		}
		held, err := s.j.db.emptyLog()
		if held && err == nil {
			err = ErrHeld
		}
		if err != nil {
			return errors.Join(err, s.j.keepReserve())
		}
		s.done.Full, s.done.Unreserved = true, nil
		if err := s.tightly(ctx); err != nil {
			return err
		}
		s.j.full = false
		s.done.Unreserved = s.j.keepReserve()
		s.j.unreserved = s.done.Unreserved != nil
		return nil
	})
}

// boundLog keeps the log from outgrowing the space that it takes to copy it into the file: otherwise a full disk could not
// be healed. The log gets that long only while a reader stays open, such as a backup that was stopped.
func (j *Journal) boundLog() error {
	log, file := sizeOf(j.path+"-wal"), sizeOf(j.path)
	if j.reserve == 0 || log <= 2*j.reserve {
		return nil
	}
	free, known := freeSpace(filepath.Dir(j.path))
	all, _, size, err := j.db.pages()
	if err != nil || !known || all*size-file+j.reserve < free { // enough, also for what is appended now
		return err
	}
	held, err := j.db.emptyLog()
	if held && err == nil {
		err = ErrHeld
	}
	return err
}

// sizeOf returns the size of a file; 0 if unknown.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tightly takes all steps within the space of the reserve: whenever the log fills it, the log is copied and emptied.
func (s *shrinking) tightly(ctx context.Context) error {
	for n, full := 1, false; n > 0; {
		err := ctx.Err()
		if err == nil {
			n, err = s.next()
		}
		if !full && errors.Is(classify("shrink", s.j.path, err), ErrFull) {
			n, full, err = 1, true, s.j.db.copyLog()
		} else {
			full = false
		}
		if err != nil {
			return err
		}
	}
	return s.j.db.copyLog()
}

// tight is write with a retry after emptying the log, for a purge on a full disk.
func (j *Journal) tight(ctx context.Context, f func() error) error {
	err := j.write(ctx, "write", f)
	if !errors.Is(err, ErrFull) {
		return err
	}
	if err := j.do(ctx, "write", j.db.copyLog); err != nil {
		return err
	}
	return j.write(ctx, "write", f)
}

// some reports whether there is anything to remove.
func (s *shrinking) some() (bool, error) {
	p := pruner{j: s.j, done: &s.done, least: s.least}
	victims, err := p.choose(s.now, s.r, s.upTo)
	return len(victims) > 0 || p.looked > 0, err
}

// copyLog copies the log into the file and empties it, as far as readers and the disk allow.
func (db *db) copyLog() error {
	_, err := db.emptyLog()
	return err
}

// emptyLog is copyLog, and reports whether a reader prevented it.
func (db *db) emptyLog() (held bool, err error) {
	if err := db.refresh(); err != nil {
		return false, err
	}
	busy, err := db.integer("PRAGMA wal_checkpoint(TRUNCATE)")
	switch {
	case errors.Is(err, sqlite3.BUSY):
		return true, nil
	case errors.Is(classify("copy", db.path, err), ErrFull):
		return false, nil
	}
	return busy != 0, err
}
