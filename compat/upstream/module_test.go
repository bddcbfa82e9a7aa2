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

// module is an upstream module as a suite needs it: what it is upstream, with edits and with files of ours.
type module struct {
	path    string
	edits   []edit
	overlay string // directory of files to add, laid out as the module
}

// edit replaces every occurrence of old in a file of the module. Another number of occurrences than count is an
// error: upstream has changed, and the edit must be looked at again.
type edit struct {
	file     string
	old, new string
	count    int
}

// prepare returns the directory of the edited module below the user's cache. The directory is named after all that
// goes into it and appears at once, so that tests may share it and run at the same time.
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

// locate returns where the module cache has the module, and in what version this module requires it.
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

// edited returns the files that differ from upstream's, by path.
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
			return fmt.Errorf("%s exists upstream, too", name)
		}
		files[name], err = fs.ReadFile(ours, name)
		return err
	})
	return files, err
}

// hash names a set of files.
func hash(files map[string][]byte) string {
	sum := sha256.New()
	text, err := json.Marshal(files) // in the order of the names
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
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // the module cache's are read-only
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeOld removes the modules that no test has used for a month.
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

// build compiles the tests of a package of the edited module into a program. The requirements and their checksums
// are this module's own, so nothing is needed that is not in the module cache.
func (m module) build(t *testing.T, dir, pkg string) string {
	t.Helper()
	temp := t.TempDir()
	modfile, program := filepath.Join(temp, "upstream.mod"), filepath.Join(temp, "upstream.test")
	for from, to := range map[string]string{"../go.mod": modfile, "../go.sum": filepath.Join(temp, "upstream.sum")} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatalf("write the suite's go.mod: %v", err)
		}
	}
	if out, err := goCommand(t.Context(), "mod", "edit", "-replace="+m.path+"="+dir, modfile).CombinedOutput(); err != nil {
		t.Fatalf("write the suite's go.mod: %v\n%s", err, out)
	}
	args := []string{"test", "-modfile=" + modfile, "-vet=off", "-c", "-o", program}
	if race {
		args = append(args, "-race")
	}
	if out, err := goCommand(t.Context(), append(args, m.path+"/"+pkg)...).CombinedOutput(); err != nil {
		t.Fatalf("build the tests of %s/%s: %v\n%s", m.path, pkg, err, out)
	}
	return program
}

// goCommand runs the go command in this repository's module compat, without the network.
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
