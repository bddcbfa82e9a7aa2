package journal

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// fullError is an I/O error of SQLite that a full disk caused.
type fullError struct {
	err  error
	text string // SQLite's text
}

func (e *fullError) Error() string {
	return strings.ReplaceAll(e.err.Error(), e.text, ErrFull.Error())
}
func (e *fullError) Unwrap() error { return e.err }

// Is reports whether the target is ErrFull.
func (e *fullError) Is(target error) bool { return target == ErrFull }

// noteFull turns an error of SQLite into ErrFull if the disk is full. Call it before removing the file that could not be
// written, which would free space.
func noteFull(path string, err error) error {
	var code sqlite3.ExtendedErrorCode
	if errors.Is(err, ErrFull) || !errors.As(err, &code) {
		return err
	}
	switch {
	case code.Code() == sqlite3.FULL:
	case code.Code() != sqlite3.IOERR, code == sqlite3.IOERR_READ, !diskFull(path):
		return err
	}
	text := code.Error()
	if full := new(sqlite3.Error); errors.As(err, &full) {
		text = full.Error()
	}
	return &fullError{err, text}
}

// diskFull reports whether the disk is full, by writing a file. SQLite reports a full disk as an I/O error in some cases,
// and a failed commit has already filled the rest of the disk with its log.
func diskFull(path string) bool {
	probe := path + "-probe"
	err := writeNoise(probe, probeSize)
	_ = os.Remove(probe) // the next probe makes it again
	return noSpace(err)
}

// noSpace reports whether an error of a file is that the disk is full.
func noSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
