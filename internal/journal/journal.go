package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// Options are those of Open.
type Options struct {
	// Cluster is the name in the ids of changes. A journal keeps the one that it was made with.
	Cluster string
	// LocalOnly has Open fail with a *NetworkError where the journal lies on a network file system. PerhapsNetwork, if
	// set, is then called with the name of a file system that may be one, such as FUSE.
	LocalOnly      bool
	PerhapsNetwork func(fileSystem string)
	// Cache is how many bytes of the file SQLite keeps in memory; 16 MiB if zero: enough for the pages
	// to which a busy cluster adds.
	Cache int64
	// NoCopy has a migration keep no copy of the file; see Copy. It is for a disk that has no room for one.
	NoCopy bool
	// Migrating, if set, is called before each part of a migration with what is done, such as "copying the journal
	// before its migration to format 4", and with "" once it has ended or failed; the journal is locked all the while.
	// Nothing is recorded until Open returns, which can take minutes.
	Migrating func(doing string)
	// Reserve is how many bytes of the disk Retain holds in reserve beside the file, to let go of when the disk is
	// full; none if zero.
	Reserve int64
}

const (
	defaultCache = 16 << 20
	// walPages is when a commit copies the write-ahead log into the file: 16 MiB, so that pages that
	// are written again and again are copied once.
	walPages = 4096
)

// freeSpace is how many bytes a directory's disk has free, if that is known; tests change it.
var freeSpace = freeSpaceOf

// Journal writes; see the package's comment.
type Journal struct {
	path, cluster string

	mu      sync.Mutex
	lock    *os.File // nil once closed
	db      *db
	codec   *codec
	names   names
	unused  unused
	tail    block // the newest block, as it is in the file
	quietAt int64 // up to here retention has looked for quiet changes
	reserve int64
	full    bool            // a write failed because the disk is full, and no append has worked since
	loud    map[int64]int64 // what the changes of full blocks take that are not quiet, by the first; see floor
	changed chan struct{}
}

// Open opens the journal to write, and makes it where there is none, with its directory. What another
// one has open is a *LockedError, what is no journal a *FormatError, what was damaged a *DamagedError.
//
// A file of an older format is migrated, as a whole or not at all: an error, a crash or the end of ctx leaves it as it
// was. A copy of it is kept before that; a *CopyError says that there is none, and that nothing was migrated.
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
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{path: path, lock: lock, reserve: o.Reserve, changed: make(chan struct{})}
	if err := j.open(ctx, o); err != nil {
		return nil, errors.Join(classify("open", path, err), j.release())
	}
	return j, nil
}

func (j *Journal) open(ctx context.Context, o Options) error {
	if o.Cache == 0 {
		o.Cache = defaultCache
	}
	if err := create(ctx, j.path, o.Cluster); err != nil {
		return err
	}
	if err := makeFiles(j.path); err != nil {
		return err
	}
	var err error
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
	if err := j.update(ctx, o); err != nil {
		return err
	}
	_ = j.db.script(ownerIndex) // on a full disk, the journal does without it until the next start
	j.names = names{db: j.db}
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
	errs = append(errs, j.lock.Close())
	j.lock = nil
	return errors.Join(errs...)
}

// Close closes the journal. Only the first call does something.
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

// Path is where the journal is, absolute; of a symbolic link, where the file is.
func (j *Journal) Path() string { return j.path }

// Cluster is the name in the ids of changes: that of Options when the journal was made.
func (j *Journal) Cluster() string { return j.cluster }

// Changed returns a channel that is closed by the next commit that adds changes, and by Close. Who
// takes it before reading misses nothing.
func (j *Journal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// Last returns the newest sequence number that was ever given; 0 for none.
func (j *Journal) Last(ctx context.Context) (seq int64, err error) {
	err = j.do(ctx, "read", func() error {
		seq = j.tail.next() - 1
		return nil
	})
	return seq, err
}

// do runs f alone.
func (j *Journal) do(ctx context.Context, op string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s journal: %w", op, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
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
			j.names.forget() // some of them may have been rolled back
		}
		return err
	})
}

// Head returns where a stream stands; false if the journal does not know it.
func (j *Journal) Head(ctx context.Context, s Stream) (h Head, ok bool, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.streams("WHERE resource = ? AND namespace = ? AND selection = ?", []any{s.GroupResource, s.Namespace, s.Selection},
			func(_ int64, sh StreamHead) { h, ok = sh.Head, true })
	})
	return h, ok, err
}

// Identity returns the identity of the server that was recorded last, also where its streams were forgotten;
// empty if it is not known.
func (j *Journal) Identity(ctx context.Context) (identity string, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.query("SELECT identity FROM streams WHERE identity <> '' ORDER BY at DESC LIMIT 1", nil, func(s *sqlite3.Stmt) error {
			identity = s.ColumnText(0)
			return nil
		})
	})
	return identity, err
}

// Streams returns all streams of the journal, sorted by name.
func (j *Journal) Streams(ctx context.Context) (all []StreamHead, err error) {
	err = j.do(ctx, "read", func() error {
		return j.db.streams("ORDER BY resource, namespace, selection", nil, func(_ int64, sh StreamHead) { all = append(all, sh) })
	})
	return all, err
}
