package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module is an upstream module with edits and additional files.
type module struct {
	path    string
	edits   []edit
	overlay string // directory of files to add, laid out as the module
}

// edit replaces every occurrence of old in a file of the module. Any number of occurrences other than count is an
// error: upstream has changed, and the edit must be reviewed.
type edit struct {
	file     string
	old, new string
	count    int
}

// prepare returns the directory of the edited module below the user's cache. Its name contains a hash of the edited
// files, and it appears atomically, so that concurrent tests can share it.
func (m module) prepare(t *testing.T) string {
	t.Helper()
	source, version := m.locate(t)
	edited, err := m.edited(source)
	if err != nil {
		t.Fatalf("edit %s %s: %v", m.path, version, err)
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("find cache directory: %v", err)
	}
	base := filepath.Join(caches, "tattler", "upstream")
	name := strings.ReplaceAll(m.path, "/", "_") + "@" + version
	dir := filepath.Join(base, name+"-"+hash(edited))
	if _, err := os.Stat(dir); err == nil {
		now := time.Now()
		if err := os.Chtimes(dir, now, now); err != nil {
			t.Logf("mark edited module as used: %v", err)
		}
		return dir
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatalf("make cache directory: %v", err)
	}
	removeOld(t, base)
	fresh, err := os.MkdirTemp(base, ".new-") //nolint:usetesting // a rename needs the same file system
	if err != nil {
		t.Fatalf("make cache directory: %v", err)
	}
	defer os.RemoveAll(fresh)
	if err := copyModule(fresh, source, edited); err != nil {
		t.Fatalf("copy %s %s: %v", m.path, version, err)
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatalf("copy %s %s: %v", m.path, version, err)
	}
	return dir
}

// locate returns the module's directory in the module cache, and its version.
func (m module) locate(t *testing.T) (dir, version string) {
	t.Helper()
	out, err := goCommand(t.Context(), "list", "-m", "-json", m.path).Output()
	if err != nil {
		t.Fatalf("find module %s: %v%s\nif it is not in the module cache, run 'go mod download' in compat/", m.path, err, stderrOf(err))
	}
	var found struct{ Dir, Version string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("find module %s: %v", m.path, err)
	}
	if found.Dir == "" {
		t.Fatalf("module %s %s is not in the module cache; run 'go mod download' in compat/", m.path, found.Version)
	}
	return found.Dir, found.Version
}

// edited returns the changed and additional files, by path.
func (m module) edited(source string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range m.edits {
		if _, ok := files[e.file]; !ok {
			data, err := os.ReadFile(filepath.Join(source, e.file))
			if err != nil {
				return nil, err
			}
			files[e.file] = data
		}
		if n := bytes.Count(files[e.file], []byte(e.old)); n != e.count {
			return nil, fmt.Errorf("%s has %d of %d occurrences of %q", e.file, n, e.count, e.old)
		}
		files[e.file] = bytes.ReplaceAll(files[e.file], []byte(e.old), []byte(e.new))
	}
	ours := os.DirFS(m.overlay)
	err := fs.WalkDir(ours, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(source, name)); err == nil {
			return fmt.Errorf("%s already exists upstream", name)
		}
		files[name], err = fs.ReadFile(ours, name)
		return err
	})
	return files, err
}

// hash identifies a set of files.
func hash(files map[string][]byte) string {
	sum := sha256.New()
	text, err := json.Marshal(files) // sorted by name
	if err != nil {
		panic(err)
	}
	sum.Write(text)
	return fmt.Sprintf("%x", sum.Sum(nil))[:16]
}

func copyModule(dest, source string, edited map[string][]byte) error {
	if err := os.CopyFS(dest, os.DirFS(source)); err != nil {
		return err
	}
	for name, data := range edited {
		file := filepath.Join(dest, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // files of the module cache are read-only
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeOld removes edited modules that no test has used for a month.
func removeOld(t *testing.T, base string) {
	t.Helper()
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatalf("read cache directory: %v", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > 30*24*time.Hour {
			if err := os.RemoveAll(filepath.Join(base, e.Name())); err != nil {
				t.Logf("remove old module: %v", err)
			}
		}
	}
}

// build compiles the tests of a package of the edited module into a program.
func (m module) build(t *testing.T, dir, pkg string) string {
	t.Helper()
	return buildTests(t, map[string]string{m.path: dir}, true, m.path, pkg)[pkg]
}

// buildTests compiles the tests of packages of a module, whose last path elements differ, and returns the programs by
// package. The edited modules replace the modules of their paths. Requirements and checksums are those of compat/, so
// that the build needs nothing beyond the module cache. Raced says that they are built with the race detector if this test
// is.
func buildTests(t *testing.T, edited map[string]string, raced bool, path string, packages ...string) map[string]string {
	t.Helper()
	temp := t.TempDir()
	modfile := filepath.Join(temp, "upstream.mod")
	for from, to := range map[string]string{"../go.mod": modfile, "../go.sum": filepath.Join(temp, "upstream.sum")} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatalf("write the suite's go.mod: %v", err)
		}
	}
	edit := []string{"mod", "edit"}
	for path, dir := range edited {
		edit = append(edit, "-replace="+path+"="+dir)
	}
	if out, err := goCommand(t.Context(), append(edit, modfile)...).CombinedOutput(); err != nil {
		t.Fatalf("write the suite's go.mod: %v\n%s", err, out)
	}
	args := []string{"test", "-modfile=" + modfile, "-vet=off", "-c", "-o", temp + string(filepath.Separator)}
	if race && raced {
		args = append(args, "-race")
	}
	programs := map[string]string{}
	for _, pkg := range packages {
		args = append(args, path+"/"+pkg)
		programs[pkg] = filepath.Join(temp, filepath.Base(pkg)+".test")
	}
	if out, err := goCommand(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s: %v\n%s", path, err, out)
	}
	return programs
}

// goCommand returns a go command that runs in compat/ without the network.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
	return cmd
}

func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "\n" + string(exit.Stderr)
	}
	return ""
}
