package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Options configure Open.
type Options struct {
	// Cluster is part of the ids of changes. An existing journal keeps the one that it was created with.
	Cluster string
	// LocalOnly makes Open fail with a *NetworkError if the journal is on a network file system. For a file system that
	// may be one, such as FUSE, PerhapsNetwork is called with its name, if set.
	LocalOnly      bool
	PerhapsNetwork func(fileSystem string)
	// Cache is the size in bytes of SQLite's page cache. 0 is 16 MiB: enough for the pages that a busy cluster keeps
	// adding to.
	Cache int64
	// Reserve is how many bytes of disk space the journal holds in a file beside it, for Retain to release them when the
	// disk is full; 0 disables it.
	Reserve int64
}

const (
	defaultCache = 16 << 20
	// walPages is the size of the write-ahead log from which a commit copies it into the file: 16 MiB, so that a page
	// that is written repeatedly is copied once.
	walPages = 4096
)

// freeSpace returns how many bytes a directory's disk has free, if known; tests replace it.
var freeSpace = freeSpaceOf

// Journal is the writer of a journal; see the package comment.
type Journal struct {
	path, cluster string

	mu         sync.Mutex
	lock       *os.File // nil once closed
	inside     *os.File // the journal's file, locked
	db         *db
	codec      *codec
	names      names
	tail       block     // the newest block
	swept      time.Time // when retention last looked for unused namespaces; zero: not yet
	quietAt    int64     // retention has searched for quiet changes up to here
	reserve    int64
	full       bool // a write failed on a full disk, and no append has succeeded since
	unreserved bool // the reserve is missing, and no space can be made for it
	shares     shares
	file       os.FileInfo // at path when it was opened
	reread     bool        // retention changed the newest block in the file
	stories    follower
	changed    chan struct{}
}

// Open opens a journal for writing, and creates it, with its directory, if it does not exist. A journal that another
// writer has open is a *LockedError, a file that is not a journal of this format a *FormatError, a damaged one a
// *DamagedError.
func Open(ctx context.Context, path string, o Options) (*Journal, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	path, err := realPath(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if o.LocalOnly {
		if err := checkPlace(path, o.PerhapsNetwork); err != nil {
			return nil, fmt.Errorf("open journal: %w", err)
		}
	}
	if err := checkMagic(path); err != nil { // before the lock makes a file beside it
		return nil, fmt.Errorf("open journal: %w", err)
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{path: path, lock: lock, reserve: o.Reserve, changed: make(chan struct{})}
	if err := j.open(o); err != nil {
		return nil, errors.Join(classify("open", path, err), j.release())
	}
	_ = j.keepReserve() // Append and Retain try again, and say so
	return j, nil
}

func (j *Journal) open(o Options) error {
	if o.Cache == 0 {
		o.Cache = defaultCache
	}
	if err := create(j.path, o.Cluster); err != nil {
		return err
	}
	if err := makeFiles(j.path); err != nil {
		return err
	}
	var err error
	if j.inside, err = lockInside(j.path); err != nil {
		return err
	}
	if j.file, err = j.inside.Stat(); err != nil {
		return err
	}
	if j.codec, err = newCodec(); err != nil {
		return err
	}
	settings := fmt.Sprintf(`PRAGMA busy_timeout = 5000; PRAGMA cache_size = -%d; PRAGMA synchronous = FULL;
		PRAGMA wal_autocheckpoint = %d; PRAGMA journal_size_limit = %d; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON`,
		o.Cache>>10, walPages, walPages*4096*2)
	if j.db, err = openDB(j.path, settings); err != nil {
		return err
	}
	if err := j.db.prepareFile(false); err != nil {
		return err
	}
	j.names = newNames(j.db)
	if j.cluster, err = j.db.cluster(); err != nil {
		return err
	}
	j.tail, err = j.db.tail()
	return err
}

// release gives back what open took.
func (j *Journal) release() error {
	var errs []error
	if j.db != nil {
		errs = append(errs, j.db.close())
	}
	if j.codec != nil {
		j.codec.close()
	}
	if j.inside != nil {
		errs = append(errs, j.inside.Close())
	}
	errs = append(errs, j.lock.Close())
	j.lock = nil
	return errors.Join(errs...)
}

// Close closes the journal. Later calls do nothing.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lock == nil {
		return nil
	}
	close(j.changed)
	if err := j.release(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// CheckPlace returns an error if the journal's file is no longer at its path: it was removed, renamed or replaced, so that what
// is written is lost once the journal is closed. An error of the file system is not one of these, and ignored. On file systems
// that number their files anew, as some network ones do, it may err.
func (j *Journal) CheckPlace() error {
	now, err := os.Stat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &MovedError{Path: j.path, Removed: true}
	case err == nil && !os.SameFile(now, j.file):
		return &MovedError{Path: j.path}
	}
	return nil
}

// Path returns the absolute path of the journal's file, with a symbolic link resolved.
func (j *Journal) Path() string { return j.path }

// Cluster returns the cluster's name, which is part of the ids of changes.
func (j *Journal) Cluster() string { return j.cluster }

// Changed returns a channel that is closed by the next commit that adds changes, and by Close. A caller that takes it
// before it reads misses nothing.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// Last returns the newest sequence number ever assigned; 0 in a new journal.
func (j *Journal) Last(ctx context.Context) (seq int64, err error) {
	err = j.do(ctx, "read", func() error {
		seq = j.tail.next() - 1
		return nil
	})
	return seq, err
}

// do runs f under the lock, unless ctx ends before that.
func (j *Journal) do(ctx context.Context, op string, f func() error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil { // while it waited, perhaps for a slow disk: nobody expects the effect any more
		return fmt.Errorf("%s journal: %w", op, err)
	}
	if j.lock == nil {
		return ErrClosed
	}
	err := classify(op, j.path, f())
	j.full = j.full || errors.Is(err, ErrFull)
	return err
}

// write runs f in a transaction.
func (j *Journal) write(ctx context.Context, op string, f func() error) error {
	return j.do(ctx, op, func() error {
		err := j.db.transaction(f)
		if err != nil {
			j.names.forget() // the transaction may have made some of them
			j.stories = follower{}
		}
		return err
	})
}

// Head returns a stream's position; false if the journal does not know the stream.
func (j *Journal) Head(ctx context.Context, s Stream) (h Head, ok bool, err error) {
	err = j.do(ctx, "read", func() error {
		args, err := j.db.thisStream(s)
		if err != nil {
			return err
		}
		return j.db.streams(thisStream, args, func(_ int64, sh StreamHead) { h, ok = sh.Head, true })
	})
	return h, ok, err
}

// Identity returns the server identity that was recorded last of a cluster (see Kind), even if its streams were forgotten;
// empty if unknown.
func (j *Journal) Identity(ctx context.Context, cluster string) (identity string, err error) {
	err = j.do(ctx, "read", func() error {
		of, err := j.db.clusterID(cluster)
		if err != nil {
			return err
		}
		return j.db.query("SELECT identity FROM streams"+ofResources+"WHERE identity <> '' AND c.id = ? ORDER BY at DESC LIMIT 1", []any{of}, func(s *sqlite3.Stmt) error {
			identity = s.ColumnText(0)
			return nil
		})
	})
	return identity, err
}

// Epochs returns the highest epoch of each group-resource of a cluster (as in Kind), forgotten streams included: a stream
// that begins anew must not take a version of another history for a known one.
func (j *Journal) Epochs(ctx context.Context, cluster string) (map[string]int64, error) {
	epochs := map[string]int64{}
	err := j.do(ctx, "read", func() error {
		of, err := j.db.clusterID(cluster)
		if err != nil {
			return err
		}
		return j.db.watched("WHERE c.id = ?", []any{of}, func(_ int64, sh StreamHead) {
			gr := sh.Stream.GroupResource
			epochs[gr] = max(epochs[gr], sh.Head.Epoch)
		})
	})
	return epochs, err
}

// Streams returns all streams of the journal, sorted by name.
func (j *Journal) Streams(ctx context.Context) (all []StreamHead, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.streams(byName, nil, func(_ int64, sh StreamHead) { all = append(all, sh) })
	})
	return all, err
}
