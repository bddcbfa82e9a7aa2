package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

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

// Dir is a directory of checkpoints, locked until it is closed. It is safe for concurrent use.
type Dir struct {
	path string
	root *os.Root
	lock *os.File
	disk disk

	mu    sync.Mutex
	names map[string]bool // open streams
}

// Open locks a directory, and creates it if necessary. It does not wait: if another process has locked it, the
// error is a *LockedError.
func Open(path string) (*Dir, error) {
	d, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoints: %w", err)
	}
	return d, nil
}

func open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(root, path)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{path: path, root: root, lock: lock, disk: rootDisk{root}, names: map[string]bool{}}, nil
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
	return errors.Join(d.lock.Close(), d.root.Close())
}

// Stream opens the checkpoint of a stream. The name must be unique to the stream. The error is ErrInUse if it
// is already open.
func (d *Dir) Stream(name string) (*Stream, error) {
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
