package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

var (
	errInjected = errors.New("injected failure")
	errCrashed  = errors.New("the machine has crashed")
)

// memDisk is a disk that fails or crashes at a given operation. A crash loses data that was not synced. Files
// only grow, as the package writes them.
type memDisk struct {
	mu      sync.Mutex
	names   map[string]*inode
	stable  map[string]*inode // guaranteed to survive a crash
	pending []func(map[string]*inode)
	removes int // of pending
	handles int

	ops             int // mutating operations
	failAt, crashAt int // number of the operation, from 1; 0: never
	half            bool
	crashed         bool
}

type inode struct {
	data    []byte
	durable int // bytes guaranteed to survive a crash
}

func newMemDisk() *memDisk {
	return &memDisk{names: map[string]*inode{}, stable: map[string]*inode{}}
}

// op counts an operation. If partly is true, the operation takes effect in part, or in whole although it
// reports an error.
func (d *memDisk) op() (partly bool, err error) {
	if d.crashed {
		return false, errCrashed
	}
	d.ops++
	switch d.ops {
	case d.crashAt:
		d.crashed = true
		return d.half, errCrashed
	case d.failAt:
		return d.half, errInjected
	}
	return false, nil
}

func (d *memDisk) change(f func(map[string]*inode)) error {
	partly, err := d.op()
	if err == nil || partly {
		f(d.names)
		d.pending = append(d.pending, f)
	}
	return err
}

func (d *memDisk) handle(i *inode) *memFile {
	d.handles++
	return &memFile{disk: d, inode: i}
}

func (d *memDisk) Open(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, errCrashed
	}
	i := d.names[name]
	if i == nil {
		return nil, fs.ErrNotExist
	}
	return d.handle(i), nil
}

func (d *memDisk) Append(name string) (file, error) { return d.Open(name) }

func (d *memDisk) Create(name string) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] != nil {
		return nil, fs.ErrExist
	}
	i := &inode{}
	if err := d.change(func(m map[string]*inode) { m[name] = i }); err != nil {
		return nil, err
	}
	return d.handle(i), nil
}

func (d *memDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change(func(m map[string]*inode) {
		m[to] = m[from]
		delete(m, from)
	})
}

func (d *memDisk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	d.removes++
	return d.change(func(m map[string]*inode) { delete(m, name) })
}

func (d *memDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.op(); err != nil {
		return err
	}
	d.stable, d.pending, d.removes = maps.Clone(d.names), nil, 0
	return nil
}

func (d *memDisk) Has(name string, f file) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours, ok := f.(*memFile)
	return ok && d.names[name] == ours.inode, nil
}

// loss is the effect of a crash on data that was not synced.
type loss int

const (
	loseAll  loss = iota
	loseNone      // only the process crashed
	loseTail      // the last part is lost
	loseParts
	losses
)

// reboot returns the disk after a crash at this moment.
func (d *memDisk) reboot(how loss, rng *rand.Rand) *memDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := maps.Clone(d.stable)
	kept := len(d.pending)
	switch how {
	case loseAll:
		kept = 0
	case loseTail, loseParts:
		kept = rng.IntN(kept + 1)
	}
	for _, f := range d.pending[:kept] {
		f(names)
	}
	after := newMemDisk()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if i := names[name]; i != nil {
			data := i.reboot(how, rng)
			after.names[name] = &inode{data: data, durable: len(data)}
		}
	}
	after.stable = maps.Clone(after.names)
	return after
}

func (i *inode) reboot(how loss, rng *rand.Rand) []byte {
	data := slices.Clone(i.data)
	switch how {
	case loseAll:
		return data[:i.durable]
	case loseTail:
		return data[:i.durable+rng.IntN(len(data)-i.durable+1)]
	case loseParts: // small parts, since the files are small
		const part = 16
		for at := i.durable; at < len(data); at += part {
			if rng.IntN(4) == 0 {
				clear(data[at:min(at+part, len(data))])
			}
		}
	}
	return data
}

type memFile struct {
	disk   *memDisk
	inode  *inode
	at     int
	closed bool
}

func (f *memFile) Read(p []byte) (int, error) {
	if f.at == len(f.inode.data) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[f.at:])
	f.at += n
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	partly, err := f.disk.op()
	switch {
	case partly:
		p = p[:len(p)/2]
	case err != nil:
		return 0, err
	}
	f.inode.data = append(f.inode.data, p...)
	return len(p), err
}

func (f *memFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	partly, err := f.disk.op()
	if err == nil || partly {
		f.inode.durable = len(f.inode.data)
	}
	return err
}

func (f *memFile) Size() (int64, error) { return int64(len(f.inode.data)), nil }

func (f *memFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.disk.handles--
	return nil
}
