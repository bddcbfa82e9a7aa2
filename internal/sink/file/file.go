// Package file is the sink that appends changes to a file, one JSON event per line.
//
// Lines are whole: the sink cuts off a partial line that an error or a kill -9 left, before it writes on or when it
// opens the file again. A reader that follows the file may see a line before it is complete. After a crash between a
// write and its acknowledgement, the sink does not append again the events at the end of the file: each event is
// there once, except after a rotation in between and after a replay on request. The file is locked where the system
// has locks, so two daemons cannot share one. If another program renames or removes the file (logrotate), the sink
// creates a new one with the next message; if it truncates the file, the sink cuts off a partial line, too, and appends. Writes wait for
// the disk: a network file system that hangs blocks Send beyond its context.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/tattler-dev/tattler/internal/filelock"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/syncdir"
)

// Sink appends to a file.
type Sink struct {
	o    Options
	open func(path string) (handle, error) // replaced by tests

	mu     sync.Mutex // the timer of sync: interval runs concurrently
	file   handle     // nil: not open
	device bool       // neither cut, locked nor rotated
	size   int64
	torn   bool            // there is a partial line behind size
	recent map[string]bool // ids at the file's end when it was opened; nil after the first write
	timer  *time.Timer
	lost   error // of a sync in the background
	closed bool
}

// handle is the part of *os.File that a sink uses.
type handle interface {
	Write(b []byte) (int, error)
	ReadAt(b []byte, off int64) (int, error)
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	Close() error
	Fd() uintptr
}

// New returns a sink for the file; Open, or the first Send, opens it.
func New(o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("file sink: %w", err)
	}
	return &Sink{o: o.withDefaults(), open: func(path string) (handle, error) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		return osFile{f}, nil
	}}, nil
}

// osFile is a handle.
type osFile struct{ *os.File }

// Truncate implements handle. On Windows, a file that is opened to append cannot be cut, but neither can others move it.
func (f osFile) Truncate(size int64) error {
	if runtime.GOOS == "windows" {
		return os.Truncate(f.Name(), size)
	}
	return f.File.Truncate(size)
}

func (s *Sink) String() string { return "file " + s.o.Path }

// Open opens the file, so that an error shows before the first message.
func (s *Sink) Open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready()
}

// Send appends messages.
func (s *Sink) Send(ctx context.Context, ms []sink.Message) (acked int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for acked < len(ms) {
		if err := ctx.Err(); err != nil {
			return acked, fmt.Errorf("append to %s: %w", s.o.Path, err)
		}
		if err := s.ready(); err != nil {
			return acked, err
		}
		n, err := s.append(ms[acked:])
		acked += n
		if err != nil {
			return acked, err
		}
	}
	return acked, nil
}

// append writes as many of the messages as the file has space for, in one write that succeeds or fails as a whole.
func (s *Sink) append(ms []sink.Message) (int, error) {
	var lines []byte
	n := 0
	for _, m := range ms {
		if s.recent[m.ID] && !m.Again {
			n++
			continue
		}
		if s.rotates() && s.size+int64(len(lines)+len(m.Body)) >= int64(s.o.Rotate.Size) && s.size+int64(len(lines)) > 0 {
			break
		}
		lines = append(append(lines, m.Body...), '\n')
		n++
	}
	if n == 0 {
		return 0, s.rotate()
	}
	if len(lines) == 0 {
		return n, nil
	}
	s.torn = true
	if _, err := s.file.Write(lines); err != nil {
		return 0, errors.Join(fmt.Errorf("append: %w", err), s.mend())
	}
	if err := s.sync(); err != nil {
		// The kernel may have dropped dirty pages: cut the lines off, and send them again.
		return 0, errors.Join(err, s.mend())
	}
	s.torn, s.recent = false, nil
	s.size += int64(len(lines))
	return n, nil
}

func (s *Sink) rotates() bool { return s.o.Rotate.Size > 0 && !s.device }

// ready makes sure that the file is open, ends with a whole line, and is still at its path.
func (s *Sink) ready() error {
	if s.closed {
		return fmt.Errorf("append to %s: %w", s.o.Path, fs.ErrClosed)
	}
	if err := s.lost; err != nil {
		s.lost = nil
		return err
	}
	if s.file != nil {
		if moved, err := s.moved(); err != nil {
			return err
		} else if moved {
			if err := s.leave(); err != nil {
				return err
			}
		}
	}
	if s.file == nil {
		return s.reopen()
	}
	return s.mend()
}

// moved reports whether the path now names another file, or none. It also notes another size: a program that cut the file
// may have left a partial line.
func (s *Sink) moved() (bool, error) {
	if s.device {
		return false, nil
	}
	ours, err := s.file.Stat()
	if err != nil {
		return false, fmt.Errorf("stat the open file: %w", err)
	}
	if size := ours.Size(); size != s.size && !s.torn {
		whole, err := wholeLines(s.file, size)
		if err != nil {
			return false, fmt.Errorf("append to %s, which another program has changed: %w", s.o.Path, err)
		}
		s.size, s.torn = whole, whole < size
	}
	there, err := os.Stat(s.o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("stat the file: %w", err)
	}
	return !os.SameFile(ours, there), nil
}

// reopen opens the file, locks it, and cuts off a partial line.
func (s *Sink) reopen() error {
	info, err := os.Stat(s.o.Path)
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0 {
		return fmt.Errorf("open %s: not a regular file", s.o.Path) // opening a pipe would block until a reader comes
	}
	f, err := s.open(s.o.Path)
	if err != nil {
		return err // it names the operation and the path
	}
	info, err = f.Stat()
	if err == nil {
		s.file, s.device, s.size, s.torn = f, !info.Mode().IsRegular(), 0, false
		err = s.adopt(info.Size())
	}
	if err != nil {
		s.file = nil
		return errors.Join(err, f.Close())
	}
	return nil
}

// errLocked means that another process, or another sink, appends to the file.
var errLocked = errors.New("another process appends to it")

// lock holds the file until it is closed, or until the process ends, even by a kill -9. It does nothing on Windows, and on
// a file system without locks.
func lock(fd uintptr) error {
	if runtime.GOOS == "windows" { // whether a file can be locked that is opened to append was never tried
		return nil
	}
	ok, err := filelock.TryLock(fd)
	switch {
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
		return nil
	case err == nil && !ok:
		return errLocked
	}
	return err
}

// adopt locks an opened file, cuts off a partial line, and reads the ids at its end.
func (s *Sink) adopt(size int64) error {
	if s.device {
		return nil
	}
	if err := lock(s.file.Fd()); err != nil {
		return fmt.Errorf("lock %s: %w", s.o.Path, err)
	}
	whole, err := wholeLines(s.file, size)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.o.Path, err)
	}
	s.size, s.torn = whole, whole < size
	if err := s.mend(); err != nil {
		return err
	}
	if s.recent, err = lastIDs(s.file, whole); err != nil {
		return fmt.Errorf("open %s: %w", s.o.Path, err)
	}
	if s.o.Sync == Always && size == 0 { // sync the name of a new file, too
		if err := syncdir.Sync(filepath.Dir(s.o.Path)); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	return nil
}

// mend cuts off a partial line.
func (s *Sink) mend() error {
	if !s.torn || s.device {
		return nil
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("cut off a partial line: %w", err)
	}
	s.size = min(s.size, info.Size()) // if others cut the file, truncating must not extend it with zeros
	if err := s.file.Truncate(s.size); err != nil {
		return fmt.Errorf("cut off a partial line: %w", err)
	}
	s.torn = false
	return nil
}

// leave closes a file that others have moved, mended and synced as if it had stayed.
func (s *Sink) leave() error {
	err := s.mend()
	if err == nil && s.timer != nil {
		err = s.syncNow()
	}
	if err != nil {
		return err
	}
	return s.shut()
}

// shut closes the file; the next message opens it again.
func (s *Sink) shut() error {
	if s.file == nil {
		return nil
	}
	s.disarm()
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Close syncs the file, unless sync is never, and closes it.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.lost
	if s.file != nil && s.timer != nil {
		err = errors.Join(err, s.syncNow())
	}
	return errors.Join(err, s.shut())
}
