package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

// Queue is the input of a Stream: a *store.Queue in mode Latest. Close may do more than the queue's.
type Queue interface {
	Next(ctx context.Context) (store.Batch, error)
	Close()
}

// Options configures Run.
type Options struct {
	// Fingerprint covers everything that determines an object's stored bytes; see State.Trusted.
	Fingerprint string
	// Identity identifies the cluster; empty if unknown.
	Identity string
	// Subscribe opens a queue that starts with the whole state of this stream. Run calls it for each new file,
	// and closes the queue. An error of Subscribe ends Run.
	Subscribe func() (Queue, error)
	// Report, if set, receives every write error; until it next receives nil, there is no file to resume from.
	// nil means that a current file exists again. Run waits for Report.
	Report func(error)
	// SyncEvery bounds the time until a change is durable; 0 means a second.
	SyncEvery time.Duration
}

const (
	defaultSyncEvery = time.Second
	// minFile is the smallest size at which a file is rewritten.
	minFile = 1 << 20
	// maxBuffer is the size at which the buffer is written; a larger record is buffered whole.
	maxBuffer = 64 << 10
	// The delay after a failed write.
	minRetry = time.Second
	maxRetry = time.Minute
)

// Stream is the checkpoint of one stream. It must be used by one goroutine.
type Stream struct {
	dir  *Dir
	name string
	file string
	// loaded is the file that can be continued, or nil.
	loaded *loader
	// epoch is the epoch of the existing file; 0 if unknown.
	epoch int64

	minFile   int64
	maxBuffer int
}

// Path returns the path of the stream's file, which may not exist yet.
func (s *Stream) Path() string { return filepath.Join(s.dir.path, s.file) }

// Close allows the stream to be opened again. Run must have returned.
func (s *Stream) Close() {
	s.loaded = nil
	s.dir.release(s.name)
}

// Load reads the file that an earlier Run left. Without a file, the error is fs.ErrNotExist. After any error,
// including a *DamagedError, there is nothing to resume from and Run writes a new file. fingerprint must be the
// one in the Options of the next Run.
func (s *Stream) Load(fingerprint string) (*State, error) {
	s.loaded, s.epoch = nil, 0
	var l *loader
	var size int64
	f, err := s.dir.disk.Open(s.file)
	if err == nil {
		l, size, err = readFile(f)
	}
	if err == nil && l.header.stream != s.name {
		err = &DamagedError{Offset: int64(prefaceSize), Reason: fmt.Sprintf("the file belongs to stream %q", l.header.stream)}
	}
	if err != nil {
		return nil, fmt.Errorf("load checkpoint %s: %w", s.Path(), err)
	}
	if l.end == size { // otherwise new records would follow a torn end
		s.loaded = l
	}
	s.epoch = l.last.head.Epoch
	st := l.state(size)
	st.Trusted = st.Fingerprint == fingerprint
	return st, nil
}

// readFile reads a file and closes it.
func readFile(f file) (l *loader, size int64, err error) {
	defer f.Close()
	if size, err = f.Size(); err != nil {
		return nil, 0, err
	}
	l, err = load(f, size)
	return l, size, err
}

// Run keeps the file in step with the queue until ctx ends or the queue is closed, then makes it durable. Every
// failure is reported and followed by a new file; Run returns only the last one, if it could not be repaired
// before Run had to end.
func (s *Stream) Run(ctx context.Context, o Options) error {
	if o.SyncEvery <= 0 {
		o.SyncEvery = defaultSyncEvery
	}
	wait := minRetry
	for {
		began := time.Now()
		err := s.write(ctx, &o)
		var end *subscribeError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &end):
			return end.error
		case errors.Is(err, errGarbage):
			continue
		}
		err = fmt.Errorf("write checkpoint %s: %w", s.Path(), errors.Join(err, s.abandon()))
		o.report(err)
		if time.Since(began) > maxRetry {
			wait = minRetry
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, maxRetry)
		case <-ctx.Done():
			return err
		}
	}
}

func (o *Options) report(err error) {
	if o.Report != nil {
		o.Report(err)
	}
}

// abandon removes the files, since nothing keeps them current.
func (s *Stream) abandon() error {
	s.epoch = 0 // of what cannot be removed, too
	return errors.Join(s.remove(s.file+unfinished), s.discard())
}

// discard removes the existing file, if any, durably.
func (s *Stream) discard() error {
	if err := s.remove(s.file); err != nil {
		return err
	}
	return s.dir.disk.Sync()
}

func (s *Stream) remove(name string) error {
	if err := s.dir.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
