package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// lockFile locks the journal by a file beside it. The file stays: removing it would race with the next lock.
func lockFile(path string) (*os.File, error) {
	lock := path + ".lock"
	f, err := os.OpenFile(lock, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if info, lerr := os.Lstat(lock); err != nil && lerr == nil && info.Mode().Type() == os.ModeSymlink {
		err = fmt.Errorf("%s is a symbolic link, whose target would be overwritten: remove it", lock)
	}
	if err != nil {
		return nil, err
	}
	ok, err := flock(f)
	if err == nil && !ok {
		err = &LockedError{Path: path, PID: readPID(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	notePID(f)
	return f, nil
}

func readPID(f *os.File) int {
	b, err := io.ReadAll(io.LimitReader(f, 20))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// notePID writes the process id for others to report. The lock holds without it.
func notePID(f *os.File) {
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}
