package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

var (
	// ErrClosed is returned by all calls after Close.
	ErrClosed = errors.New("journal is closed")
	// ErrNotFound says that the journal has no such change, or has it no more.
	ErrNotFound = errors.New("change not found")
	// ErrPurged says that what was before a change was removed for good: nobody can tell any more what it
	// changed.
	ErrPurged = errors.New("what was before it was purged")
	// ErrFull says of a *WriteError that the disk is full.
	ErrFull = errors.New("the disk is full")
	// ErrHeld is an ErrFull: the log would be too long to be copied, and removing changes would make no room.
	ErrHeld = fmt.Errorf("%w for the journal's log, which cannot be emptied: another program reads the journal, such as a backup that was stopped; end it", ErrFull)
)

// LockedError says that another process, or another Journal of this one, writes the journal.
type LockedError struct {
	Path string
	PID  int // of the process; 0 where that is not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("journal %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("journal %s is in use by process %d", e.Path, e.PID)
}

// WriteError says that the disk did not take something: it is full, gone or broken. The journal is as
// it was before the call; the same call may succeed later.
type WriteError struct {
	Op   string // such as "append"
	Path string
	Err  error
}

func (e *WriteError) Error() string { return fmt.Sprintf("%s journal %s: %v", e.Op, e.Path, e.Err) }
func (e *WriteError) Unwrap() error { return e.Err }

// DamagedError says that the file holds something that was not written so. Calls that do not need it
// work.
type DamagedError struct {
	Path string
	What string // such as "change 17, before"
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal %s is damaged: %s: %v", e.Path, e.What, e.Err)
}
func (e *DamagedError) Unwrap() error { return e.Err }

// FormatError says that the file is no journal, or one of a newer program.
type FormatError struct {
	Path   string
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Reason) }

// AmbiguousError says that several changes have ids that begin so.
type AmbiguousError struct {
	Prefix string
	IDs    []string // some of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is the beginning of several ids: %s", e.Prefix, strings.Join(e.IDs, ", "))
}

// classify makes SQLite's errors those that a caller must tell apart.
func classify(op, path string, err error) error {
	var damaged *DamagedError
	var copying *CopyError
	var code sqlite3.ExtendedErrorCode
	if err == nil {
		return nil
	}
	if errors.As(err, &damaged) || errors.As(err, &copying) || !errors.As(err, &code) {
		return fmt.Errorf("%s journal: %w", op, err)
	}
	if write := new(WriteError); errors.As(err, &write) {
		return err
	}
	if isDamage(err) {
		if code == sqlite3.IOERR_DATA {
			err = &sumError{err}
		}
		return &DamagedError{Path: path, What: "page", Err: err}
	}
	switch code.Code() {
	case sqlite3.FULL, sqlite3.IOERR, sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.BUSY, sqlite3.PROTOCOL:
		return &WriteError{Op: op, Path: path, Err: noteFull(path, err)}
	default:
		return fmt.Errorf("%s journal %s: %w", op, path, err)
	}
}

// sumError is what SQLite calls an I/O error: the disk has read a page, which is not as it was written.
type sumError struct{ err error }

func (e *sumError) Error() string { return "its checksum is wrong" }
func (e *sumError) Unwrap() error { return e.err }

// isDamage reports whether SQLite could not read a page: it calls a wrong checksum an I/O error.
func isDamage(err error) bool {
	var code sqlite3.ExtendedErrorCode
	if !errors.As(err, &code) {
		return false
	}
	switch code {
	case sqlite3.IOERR_DATA, sqlite3.IOERR_SHORT_READ, sqlite3.IOERR_CORRUPTFS:
		return true
	}
	return code.Code() == sqlite3.CORRUPT || code.Code() == sqlite3.NOTADB
}

// NetworkError says that the journal lies on a network file system. A lock there need not keep out a process on
// another machine, and SQLite's index of its log is shared memory, which two machines do not share.
type NetworkError struct {
	Path, FileSystem string
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("%s is on %s, a network file system, where two daemons could write one journal and damage it", e.Path, e.FileSystem)
}

// CopyError says that no copy could be made of a journal that has to be migrated. The journal is as it was.
type CopyError struct {
	Path, Copy string
	// Need is how many bytes the copy and the migration take on the disk, Free how many it has; both are 0 where Err
	// says what failed.
	Need, Free int64
	// Damaged says that a page of the journal cannot be read.
	Damaged bool
	Err     error
}

func (e *CopyError) Error() string {
	if e.Damaged {
		return fmt.Sprintf("journal %s must be migrated, and a copy of it is kept before that: it is damaged and cannot be copied", e.Path)
	}
	why := fmt.Sprintf("the disk has %d MiB free, and %d MiB are needed", e.Free>>20, e.Need>>20+1)
	if e.Err != nil {
		why = e.Err.Error()
	}
	return fmt.Sprintf("journal %s must be migrated, and a copy of it is kept before that: cannot make %s: %s", e.Path, e.Copy, why)
}
func (e *CopyError) Unwrap() error { return e.Err }
