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
	// ErrNotFound says that the journal does not have the change: it never did, or the change was removed.
	ErrNotFound = errors.New("change not found")
	// ErrPurged says that the object's state before a change was purged, so its diff is lost.
	ErrPurged = errors.New("the state before the change was purged")
	// ErrFull says of a *WriteError that the disk is full.
	ErrFull = errors.New("the disk is full")
	// ErrHeld is an ErrFull: a reader keeps the log from being copied into the file, so removing changes would free
	// no space.
	ErrHeld = fmt.Errorf("%w for the journal's log, which cannot be emptied: another program reads the journal, such as a backup that was stopped; end it", ErrFull)
)

// LockedError says that another process, or another Journal of this process, has the journal open for writing.
type LockedError struct {
	Path string
	PID  int // of the other process; 0 if unknown
	// OtherName says that the file is open under another name, with another log.
	OtherName bool
}

func (e *LockedError) Error() string {
	if e.OtherName {
		return fmt.Sprintf("journal %s is in use under another name: the same file has a hard link, or is mounted elsewhere", e.Path)
	}
	if e.PID == 0 {
		return fmt.Sprintf("journal %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("journal %s is in use by process %d", e.Path, e.PID)
}

// MovedError says that the file of an open journal was moved away from its path, or removed.
type MovedError struct {
	Path    string
	Removed bool // nothing is at the path now; otherwise another file is
}

func (e *MovedError) Error() string {
	what := "replaced by another file"
	if e.Removed {
		what = "removed or renamed"
	}
	return fmt.Sprintf("journal %s was %s while it was written: changes recorded since then are not in a file at that path", e.Path, what)
}

// WriteError says that a write failed: the disk is full, gone or broken. The journal is unchanged; the same call may
// succeed later.
type WriteError struct {
	Op   string // such as "append"
	Path string
	Err  error
}

func (e *WriteError) Error() string { return fmt.Sprintf("%s journal %s: %v", e.Op, e.Path, e.Err) }
func (e *WriteError) Unwrap() error { return e.Err }

// DamagedError says that part of the file is corrupt. Calls that do not need that part work.
type DamagedError struct {
	Path string
	What string // e.g. "change 17, before"
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("journal %s is damaged: %s: %v", e.Path, e.What, e.Err)
}
func (e *DamagedError) Unwrap() error { return e.Err }

// FormatError says that the file is not a journal, or has a format that this program does not read.
type FormatError struct {
	Path   string
	Reason string
}

// notJournal returns the error for another program's database.
func notJournal(path string) error {
	return &FormatError{path, "this SQLite file is not a journal: --journal takes the file of a journal"}
}

func (e *FormatError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Reason) }

// AmbiguousError says that several changes have ids with the given prefix.
type AmbiguousError struct {
	Prefix string
	IDs    []string // some of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("several ids begin with %q: %s", e.Prefix, strings.Join(e.IDs, ", "))
}

// classify turns SQLite's errors into the ones that callers distinguish.
func classify(op, path string, err error) error {
	var damaged *DamagedError
	var code sqlite3.ExtendedErrorCode
	if err == nil {
		return nil
	}
	if errors.As(err, &damaged) || !errors.As(err, &code) {
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

// sumError is a wrong page checksum. SQLite reports it as an I/O error, though the disk did read the page.
type sumError struct{ err error }

func (e *sumError) Error() string { return "its checksum is wrong" }
func (e *sumError) Unwrap() error { return e.err }

// isDamage reports whether SQLite found a page corrupt. It reports a wrong checksum as an I/O error.
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

// NetworkError says that the journal is on a network file system. A lock there may not exclude a process on another
// machine, and two machines do not share the memory that holds the index of SQLite's log.
type NetworkError struct {
	Path, FileSystem string
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("%s is on %s, a network file system, where two daemons could write one journal and damage it", e.Path, e.FileSystem)
}
