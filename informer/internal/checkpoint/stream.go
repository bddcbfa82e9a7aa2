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

// Queue is what a Stream is written from: a *store.Queue, in mode Latest, with whatever Close has to
// do besides.
type Queue interface {
	Next(ctx context.Context) (store.Batch, error)
	Close()
}

// Options say what Run writes.
type Options struct {
	// Fingerprint is of all that decides what an object's stored bytes are; see State.Trusted.
	Fingerprint string
	// Identity tells which cluster this is; empty where that is not known.
	Identity string
	// Subscribe opens a queue that starts with the whole state of the stream, and only of this one.
	// Run closes it. It is called again for each new file; its error ends Run.
	Subscribe func() (Queue, error)
	// Report, if set, hears of every failure to write: there is no file to resume from then. It hears
	// nil each time that there is one again, which is current. Run waits for it.
	Report func(error)
	// SyncEvery bounds how long a change waits until it is durable; 0 means a second.
	SyncEvery time.Duration
}

const (
	defaultSyncEvery = time.Second
	// minFile is how large a file must be to be written anew.
	minFile = 1 << 20
	// maxBuffer is how much is collected before it is written; a larger record is collected whole.
	maxBuffer = 64 << 10
	// The wait after a failed write.
	minRetry = time.Second
	maxRetry = time.Minute
)

// Stream is the checkpoint of one stream. It serves one goroutine.
type Stream struct {
	dir  *Dir
	name string
	file string
	// loaded is the file that can be continued; nil: there is none.
	loaded *loader
	// epoch is that of the file that is in place, if there is one; 0: not known.
	epoch int64

	minFile   int64
	maxBuffer int
}

// Path is where the stream's file is, or will be.
func (s *Stream) Path() string { return filepath.Join(s.dir.path, s.file) }

// Close lets others open the stream. Run must have returned.
func (s *Stream) Close() {
	s.loaded = nil
	s.dir.release(s.name)
}

// Load reads what an earlier Run has left; its error is fs.ErrNotExist if nothing. After a
// *DamagedError, and any other error, there is nothing to resume from: Run writes a new file.
// Fingerprint is that of the Options to come.
func (s *Stream) Load(fingerprint string) (*State, error) {
	s.loaded, s.epoch = nil, 0
	l, size, err := readFile(s.dir.disk, s.file)
	if err == nil && l.header.stream != s.name {
		err = &DamagedError{Offset: int64(prefaceSize), Reason: "it is the file of " + l.header.stream}
	}
	if err != nil {
		return nil, fmt.Errorf("load checkpoint %s: %w", s.Path(), err)
	}
	if l.end == size { // else what a crash left would be in the middle
		s.loaded = l
	}
	s.epoch = l.last.head.Epoch
	st := l.state(size)
	st.Trusted = st.Fingerprint == fingerprint
	return st, nil
}

func readFile(d disk, name string) (l *loader, size int64, err error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if size, err = f.Size(); err != nil {
		return nil, 0, err
	}
	l, err = load(f, size)
	return l, size, err
}

// Run keeps the file in step with the queue until ctx ends or the queue is closed, then makes it
// durable. Whatever fails is reported and tried again with a new file; only the last of it, when Run
// has to end, is returned.
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

// abandon removes the files: nobody keeps them current.
func (s *Stream) abandon() error {
	return errors.Join(s.remove(s.file+unfinished), s.discard())
}

// discard removes the file that is in place, if there is one, so that it does not come back.
func (s *Stream) discard() error {
	if err := s.remove(s.file); err != nil {
		return err
	}
	if err := s.dir.disk.Sync(); err != nil {
		return err
	}
	s.epoch = 0
	return nil
}

func (s *Stream) remove(name string) error {
	if err := s.dir.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
