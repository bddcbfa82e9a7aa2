// Package file is the sink that appends changes to a file, one JSON event per line.
//
// A line is whole or not there: what an error or a kill -9 leaves of one is cut off before anything
// follows it, here or when the file is opened next. A reader that follows the file may see the part of a
// line before its end is written. What the file ends with is not appended again after a crash between the
// write and its acknowledgement: but for a rotation in between, and a replay that somebody asked for, each event is
// there once. The file is locked where the system has locks: two daemons cannot share one. Renamed or removed by others (logrotate), it is made anew with the next message; cut short
// by others, it grows from there. Writing waits for the disk: a network file system that hangs holds
// Send beyond its context.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// Sink appends to a file.
type Sink struct {
	o    Options
	open func(path string) (handle, error) // of a test

	mu     sync.Mutex // the timer of Sync interval comes between
	file   handle     // nil: to be opened
	device bool       // neither cut, nor locked, nor rotated
	size   int64
	torn   bool            // behind size there is a part of a line
	again  map[string]bool // what stood at the file's end when it was opened, until the first write
	timer  *time.Timer
	lost   error // of a sync that nobody waited for
	closed bool
}

// handle is what a sink needs of an *os.File.
type handle interface {
	Write(b []byte) (int, error)
	ReadAt(b []byte, off int64) (int, error)
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	Close() error
	Fd() uintptr
}

// New makes a sink of the file; Open, or the first Send, opens it.
func New(o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("file sink: %w", err)
	}
	return &Sink{o: o.withDefaults(), open: func(path string) (handle, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	}}, nil
}

func (s *Sink) String() string { return "file " + s.o.Path }

// Open opens the file, so that what is wrong with it shows before there is a message.
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

// append writes as many of the messages as the file has room for, in one call, which takes all or
// nothing of them.
func (s *Sink) append(ms []sink.Message) (int, error) {
	var lines []byte
	n := 0
	for _, m := range ms {
		if s.again[m.ID] && !m.Again {
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
		// The kernel may have dropped what it could not write: it is taken back, and sent again.
		return 0, errors.Join(err, s.mend())
	}
	s.torn, s.again = false, nil
	s.size += int64(len(lines))
	return n, nil
}

func (s *Sink) rotates() bool { return s.o.Rotate.Size > 0 && !s.device }

// ready leaves the file open, whole and in its place.
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

// moved tells whether another file, or none, is in the file's place. It notes the file's size, which is
// less where another cut it.
func (s *Sink) moved() (bool, error) {
	if s.device {
		return false, nil
	}
	ours, err := s.file.Stat()
	if err != nil {
		return false, fmt.Errorf("look at the open file: %w", err)
	}
	s.size = min(s.size, ours.Size())
	there, err := os.Stat(s.o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the file: %w", err)
	}
	return !os.SameFile(ours, there), nil
}

// reopen opens the file, locks it, and cuts off what is torn.
func (s *Sink) reopen() error {
	info, err := os.Stat(s.o.Path)
	if err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeCharDevice == 0 {
		return fmt.Errorf("open %s: not a regular file", s.o.Path) // a pipe would hang until it is read
	}
	f, err := s.open(s.o.Path)
	if err != nil {
		return err // it says what and where
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
	if s.again, err = lastIDs(s.file, whole); err != nil {
		return fmt.Errorf("open %s: %w", s.o.Path, err)
	}
	if s.o.Sync == Always && size == 0 { // a new file's name is safe, too
		return syncDir(s.o.Path)
	}
	return nil
}

// mend cuts off a torn line.
func (s *Sink) mend() error {
	if !s.torn || s.device {
		return nil
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("cut off a torn line: %w", err)
	}
	s.size = min(s.size, info.Size()) // where others cut the file, it must not grow by zeros
	if err := s.file.Truncate(s.size); err != nil {
		return fmt.Errorf("cut off a torn line: %w", err)
	}
	s.torn = false
	return nil
}

// leave closes a file that others moved away, as whole and as safe as if it had stayed.
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

// shut closes the file; it is opened again with the next message.
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

// Close makes what was written safe, unless that is never to be, and closes the file.
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
