package devcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Binaries are programs that are built and ready to run.
type Binaries struct {
	dir string
}

// Dir is the folder with all of them, in the layout of envtest's KUBEBUILDER_ASSETS.
func (b Binaries) Dir() string { return b.dir }

// Path is the absolute path of a program: "etcd", "kube-apiserver", "kubectl",
// "kube-controller-manager", "kube-scheduler" or "kwok". It exists only if
// EnsureBinaries was asked for it.
func (b Binaries) Path(name string) string { return filepath.Join(b.dir, name) }

// EnsureBinaries builds the named programs, or all of them if none is named. It
// skips those in its cache, the folder tattler/devcluster in
// [os.UserCacheDir]. An interrupted build leaves nothing that would be used.
//
// Building all of them takes some seven minutes on two cores and 2 to 3 GB of
// memory (linking kube-apiserver takes 1.9), and less time with a warm Go build
// cache. Out, which may be nil, receives a line before the build and one after
// each program. If several processes want to build, one does and the others wait.
//
// An error names the program and contains the last lines that go build printed.
func EnsureBinaries(ctx context.Context, out io.Writer, names ...string) (Binaries, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return Binaries{}, fmt.Errorf("find cache folder: %w", err)
	}
	c := cache{dir: filepath.Join(root, "tattler", "devcluster", setName()), build: goBuild}
	return c.ensure(ctx, out, names...)
}

// cache is one folder of programs.
type cache struct {
	dir string
	// build writes p to dest, an absolute path that does not exist, and reports
	// slow steps to out.
	build func(ctx context.Context, p program, dest string, out io.Writer) error
}

// receipt is written beside a complete program. A program without a receipt, or
// of another size, is built again.
type receipt struct {
	Version string    `json:"version"`
	Size    int64     `json:"size"` // bytes
	Built   time.Time `json:"built"`
}

func (c cache) receiptPath(name string) string { return filepath.Join(c.dir, name+".json") }

// has reports whether p is in the cache and complete.
func (c cache) has(p program) bool {
	data, err := os.ReadFile(c.receiptPath(p.name))
	if err != nil {
		return false
	}
	var r receipt
	if json.Unmarshal(data, &r) != nil || r.Version != p.version {
		return false
	}
	fi, err := os.Stat(filepath.Join(c.dir, p.name))
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o100 != 0 && fi.Size() == r.Size
}

// missing returns the programs that are not in the cache.
func (c cache) missing(ps []program) []program {
	var m []program
	for _, p := range ps {
		if !c.has(p) {
			m = append(m, p)
		}
	}
	return m
}

func (c cache) ensure(ctx context.Context, out io.Writer, names ...string) (Binaries, error) {
	if out == nil {
		out = io.Discard
	}
	want, err := selectPrograms(names)
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{dir: c.dir}
	if len(c.missing(want)) == 0 {
		return b, nil
	}
	unlock, err := lockFile(ctx, filepath.Join(c.dir, ".lock"), func() {
		fmt.Fprintln(out, "devcluster: another process is building the programs; waiting for it")
	})
	if err != nil {
		return Binaries{}, fmt.Errorf("lock cache: %w", err)
	}
	defer unlock()
	todo := c.missing(want) // again: another process may have built them meanwhile
	if len(todo) == 0 {
		return b, nil
	}
	c.removeRemains()
	announce(out, todo, c.dir)
	for _, p := range todo {
		if err := c.add(ctx, p, out); err != nil {
			return Binaries{}, err
		}
	}
	return b, nil
}

// selectPrograms returns the named programs, or all, in building order.
func selectPrograms(names []string) ([]program, error) {
	if len(names) == 0 {
		return programs, nil
	}
	asked := map[string]bool{}
	for _, n := range names {
		if _, err := lookupProgram(n); err != nil {
			return nil, err
		}
		asked[n] = true
	}
	var ps []program
	for _, p := range programs {
		if asked[p.name] {
			ps = append(ps, p)
		}
	}
	return ps, nil
}

// partSuffix marks a file that a build has not finished.
const partSuffix = ".part"

// removeRemains removes the files of killed builds. The lock must be held.
func (c cache) removeRemains() {
	parts, _ := filepath.Glob(filepath.Join(c.dir, "*"+partSuffix))
	for _, p := range parts {
		_ = os.Remove(p) // if the file is in the way, the build fails
	}
}

// add builds p under another name, syncs and renames it, and then writes its
// receipt in the same way. A kill or a power failure never leaves a partial
// program that has accepts. The lock must be held.
func (c cache) add(ctx context.Context, p program, out io.Writer) error {
	start := time.Now()
	path := filepath.Join(c.dir, p.name)
	part := path + partSuffix
	defer os.Remove(part)
	if err := c.build(ctx, p, part, out); err != nil {
		return fmt.Errorf("build %s %s: %w", p.name, p.version, err)
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	fi, err := os.Stat(part)
	if err != nil {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	if err := os.Remove(c.receiptPath(p.name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	if err := syncRename(part, path); err != nil {
		return fmt.Errorf("store %s: %w", p.name, err)
	}
	data, err := json.Marshal(receipt{Version: p.version, Size: fi.Size(), Built: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("encode receipt: %w", err)
	}
	if err := writeFileAtomic(c.receiptPath(p.name), data, 0o644); err != nil {
		return fmt.Errorf("store receipt of %s: %w", p.name, err)
	}
	fmt.Fprintf(out, "devcluster: built %s %s in %.0f s (%d MB)\n", p.name, p.version, time.Since(start).Seconds(), fi.Size()>>20)
	return nil
}

// announce prints which programs will be built, for how long, and at what cost.
func announce(out io.Writer, todo []program, dir string) {
	names, seconds := make([]string, len(todo)), 0
	for i, p := range todo {
		names[i] = p.name + " " + p.version
		seconds += p.roughly
	}
	rough := fmt.Sprintf("%d seconds", seconds)
	if seconds > 100 {
		rough = fmt.Sprintf("%d minutes", (seconds+59)/60)
	}
	fmt.Fprintf(out, "devcluster: building %s\n", strings.Join(names, ", "))
	fmt.Fprintf(out, "devcluster: once, into %s\n", dir)
	fmt.Fprintf(out, "devcluster: takes about %s on 2 cores (less with a warm Go build cache), 2 to 3 GB of memory, and up to 6 GB of disk in Go's caches\n", rough)
}

// writeFileAtomic replaces the file at path. Readers see the whole old or the
// whole new content, also after a power failure.
func writeFileAtomic(path string, data []byte, mode os.FileMode) error {
	part := path + partSuffix
	if err := os.WriteFile(part, data, mode); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	return syncRename(part, path)
}

// syncRename renames a finished file once its bytes are on disk.
func syncRename(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sync file: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("rename file: %w", err)
	}
	return nil
}
