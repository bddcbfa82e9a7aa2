package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/internal/filelock"
)

const (
	lockName = "lock"
	// suffix ends the name of each file, unfinished the name of a file that is being written.
	suffix     = ".checkpoint"
	unfinished = ".new"
	// maxName bounds the readable part of a file name: file systems allow 255 bytes.
	maxName = 160
)

// ErrInUse is returned if this process has already opened the stream's file.
var ErrInUse = errors.New("stream is in use")

// LockedError reports that another process, or another Dir of this one, has locked the directory.
type LockedError struct {
	Path string
	PID  int // of the process; 0 if unknown
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// retryOpen is the shortest time between two attempts to open the directory.
const retryOpen = 5 * time.Second

// Dir is a directory of checkpoints, locked until it is closed. If it cannot be used, because another process has locked it
// or someone has removed it, it is opened again when it is next needed. It is safe for concurrent use.
type Dir struct {
	path string
	disk disk

	mu     sync.Mutex
	names  map[string]bool // open streams
	root   *os.Root        // nil while the directory is not this process's
	lock   *os.File
	err    error // why it is not
	tried  time.Time
	closed bool
}

// Open prepares the use of a directory, which is created if necessary. Dir.Stream reports that it cannot be used: if another
// process has locked it, with a *LockedError.
func Open(path string) *Dir {
	d := &Dir{path: path, names: map[string]bool{}}
	d.disk = rootDisk{d}
	return d
}

// current returns the directory, after making sure that it is still the one at the path, and locked by this process.
func (d *Dir) current() (*os.Root, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, fs.ErrClosed
	case d.root != nil && d.intact():
		return d.root, nil
	case d.err != nil && time.Since(d.tried) < retryOpen:
		return nil, d.err
	}
	_ = d.drop() // a failed close loses nothing
	d.tried = time.Now()
	if d.root, d.lock, d.err = open(d.path); d.err != nil {
		d.err = fmt.Errorf("open checkpoints: %w", d.err)
	}
	return d.root, d.err
}

// intact reports whether neither the directory nor its lock was removed or replaced.
func (d *Dir) intact() bool {
	at, err := os.Stat(d.path)
	ours, err2 := d.root.Stat(".")
	locked, err3 := d.root.Lstat(lockName)
	lock, err4 := d.lock.Stat()
	return errors.Join(err, err2, err3, err4) == nil && os.SameFile(at, ours) && os.SameFile(locked, lock)
}

// drop unlocks the directory.
func (d *Dir) drop() error {
	if d.root == nil {
		return nil
	}
	err := errors.Join(d.lock.Close(), d.root.Close())
	d.root, d.lock = nil, nil
	return err
}

func open(path string) (*os.Root, *os.File, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	lock, err := lockDir(root, path)
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, lock, nil
}

// lockDir locks the directory with a lock file. The file is never removed: removing it would race with the next
// process.
func lockDir(root *os.Root, path string) (*os.File, error) {
	if fi, err := root.Lstat(lockName); err == nil && !fi.Mode().IsRegular() {
		return nil, irregular(filepath.Join(path, lockName), fi)
	}
	f, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|nonblock, 0o600)
	if err != nil {
		return nil, err
	}
	ok, pid, err := filelock.Own(f)
	if err == nil && !ok {
		err = &LockedError{Path: path, PID: pid}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close unlocks the directory. Its streams must be closed.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return d.drop()
}

// Stream opens the checkpoint of a stream. The name must be unique to the stream. The error is ErrInUse if it
// is already open, or says why the directory cannot be used.
func (d *Dir) Stream(name string) (*Stream, error) {
	if _, err := d.current(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] {
		return nil, fmt.Errorf("open checkpoint of %s: %w", name, ErrInUse)
	}
	d.names[name] = true
	return &Stream{dir: d, name: name, file: fileName(name), minFile: minFile, maxBuffer: maxBuffer}, nil
}

func (d *Dir) release(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
}

// fileName returns the name of a stream's file. It is readable, stays within the limits of file systems, and is
// unique even if case does not count.
func fileName(stream string) string {
	var b strings.Builder
	for i := range len(stream) {
		c := stream[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if len(name) > maxName || name == "" {
		sum := sha256.Sum256([]byte(stream))
		name = name[:min(len(name), maxName)] + "~" + hex.EncodeToString(sum[:8])
	}
	return name + suffix
}
