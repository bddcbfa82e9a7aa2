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

// lockFile takes an exclusive lock among all processes of this machine on path,
// which it creates with its folder (0700). The lock is a flock: the kernel
// releases it when its holder dies. If another process holds the lock, lockFile
// calls waiting once, unless that is nil. The error is the file system's or the
// context's. unlock must be called once.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		f, held, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if held {
			return func() { _ = f.Close() }, nil // closing releases the lock
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

// tryLock is one attempt at lockFile. held is false if another process has the lock.
func tryLock(path string) (f *os.File, held bool, err error) {
	// The last holder may have removed the folder, too.
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
	// The last holder may have removed the file, as Down does with the folder: then
	// no other process sees our lock.
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
