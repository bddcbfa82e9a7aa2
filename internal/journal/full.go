package journal

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// fullError is an error of SQLite on a full disk, which it calls an I/O error.
type fullError struct {
	err  error
	text string // SQLite's
}

func (e *fullError) Error() string {
	return strings.ReplaceAll(e.err.Error(), e.text, ErrFull.Error())
}
func (e *fullError) Unwrap() error { return e.err }

// Is reports whether the target is ErrFull.
func (e *fullError) Is(target error) bool { return target == ErrFull }

// noteFull makes an error of SQLite say that the disk is full, if it is. It must be called before the file that failed
// is removed: then there is room again.
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

// diskFull reports whether the disk takes nothing more. SQLite's errors do not say so: what they call an I/O error
// may be a full disk, and a failed commit has filled what was left with its log.
func diskFull(path string) bool {
	probe := path + "-probe"
	err := writeNoise(probe, probeSize)
	_ = os.Remove(probe) // made again where that failed
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
