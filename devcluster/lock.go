package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockFile takes an exclusive lock on path, which it creates with its folder (0700), among all
// processes of this machine (flock, so that it ends with its holder, however
// that dies). It calls waiting once, if it is not nil, when another holds the
// lock. The error is of the file system, or the context's. unlock is not to be
// called twice.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		f, held, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if held {
			return func() { _ = f.Close() }, nil // closing gives the lock back
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// tryLock is one attempt at lockFile. held is false when another has it.
func tryLock(path string) (f *os.File, held bool, err error) {
	// The folder, too, may have gone with the last holder.
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, false, fmt.Errorf("make folder of lock: %w", err)
	}
	f, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, false, fmt.Errorf("open lock: %w", err)
	}
	defer func() {
		if !held {
			_ = f.Close()
		}
	}()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", path, err)
	}
	// The holder before us may have removed the file, as Down does with the
	// folder: then ours is a lock that nobody else sees.
	here, err := f.Stat()
	if err != nil {
		return nil, false, fmt.Errorf("stat lock: %w", err)
	}
	there, err := os.Stat(path)
	if err != nil || !os.SameFile(here, there) {
		return nil, false, nil
	}
	return f, true, nil
}
