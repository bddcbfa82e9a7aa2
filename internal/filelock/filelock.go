// Package filelock keeps other processes from using a file or a directory at the same time.
package filelock

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// Own locks an open file, as TryLock does, and writes this process's id into it. If the file is locked already, ok is
// false, and pid is the id of the process that holds it; 0 if it is unknown.
func Own(f *os.File) (ok bool, pid int, err error) {
	if ok, err = TryLock(f.Fd()); err != nil {
		return false, 0, err
	}
	if !ok {
		return false, readPID(f), nil
	}
	if f.Truncate(0) == nil { // the lock holds without the id
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return true, os.Getpid(), nil
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
