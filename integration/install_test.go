package integration

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

const (
	repository     = ".."
	modulePath     = "github.com/tattler-dev/tattler"
	installVersion = "v0.0.1-test"
)

// TestInstall installs the command with `go install` and the library with `go get`, as users do, from a module
// proxy on disk that serves the working tree.
func TestInstall(t *testing.T) {
	env := proxyEnv(t)

	t.Run("command", func(t *testing.T) {
		bin := t.TempDir()
		goCommand(t, t.TempDir(), append(env, "GOBIN="+bin), strings.Fields(withGo)[1:]...)
		out, err := exec.Command(filepath.Join(bin, "tattler"), "version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), installVersion) {
			t.Errorf("tattler version: %v\n%s\nwant %s", err, out, installVersion)
		}
	})

	t.Run("library", func(t *testing.T) {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod": "module example.com/consumer\n\ngo 1.26.0\n",
			"main.go": `package main

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
)

func main() {
	_, err := informer.NewCluster(&rest.Config{Host: "https://127.0.0.1:1"}, informer.Options{})
	fmt.Println("consumed", err)
}
`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		goCommand(t, dir, env, "get", modulePath+"/informer@"+installVersion)
		if out := goCommand(t, dir, env, "run", "."); !strings.Contains(out, "consumed <nil>") {
			t.Errorf("the consumer prints %q", out)
		}
	})
}

// TestNoReplace names a directive that would make TestInstall fail.
func TestNoReplace(t *testing.T) {
	f, err := modfile.Parse("go.mod", readFile(t, filepath.Join(repository, "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Module.Mod.Path != modulePath {
		t.Errorf("the module is %s, want %s", f.Module.Mod.Path, modulePath)
	}
	// https://go.dev/ref/mod#go-install forbids both in an installed module.
	for _, r := range f.Replace {
		t.Errorf("go.mod replaces %s", r.Old)
	}
	for _, e := range f.Exclude {
		t.Errorf("go.mod excludes %s", e.Mod)
	}
}

// proxyEnv makes the proxy and returns the environment of a user who has only that: the working tree from a
// folder, its requirements from this machine's module cache, nothing from the network.
func proxyEnv(t *testing.T) []string {
	t.Helper()
	// Requirements missing in the module cache are downloaded now, verified against go.sum.
	goCommand(t, repository, os.Environ(), "mod", "download")
	requirements := filepath.Join(strings.TrimSpace(goCommand(t, repository, os.Environ(), "env", "GOMODCACHE")), "cache", "download")
	return append(os.Environ(),
		"GOPROXY="+fileURL(writeProxy(t))+","+fileURL(requirements),
		"GOSUMDB=off",              // it would access the network
		"GONOPROXY=", "GOPRIVATE=", // everything through the proxies
		"GOMODCACHE="+filepath.Join(t.TempDir(), "mod"), // this version must not stay in a cache
		// Removable files, and stable paths, so that compiled packages are reused in the next run.
		"GOFLAGS=-modcacherw -trimpath",
		"GOWORK=off",
		"CGO_ENABLED=0", // as in releases, so that compiled packages are reused there, too
	)
}

// writeProxy lays out the working tree like a module proxy (https://go.dev/ref/mod#goproxy-protocol).
func writeProxy(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	// Create omits nested modules.
	if err := modzip.Create(&zipped, module.Version{Path: modulePath, Version: installVersion}, workingTree(t)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"list":                   []byte(installVersion + "\n"),
		installVersion + ".info": fmt.Appendf(nil, `{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, installVersion),
		installVersion + ".mod":  readFile(t, filepath.Join(repository, "go.mod")),
		installVersion + ".zip":  zipped.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// treeFile is a file of the working tree: its path from the repository's root, with slashes.
type treeFile string

func (f treeFile) Path() string { return string(f) }

func (f treeFile) disk() string { return filepath.Join(repository, filepath.FromSlash(string(f))) }

// Lstat implements [modzip.File].
func (f treeFile) Lstat() (os.FileInfo, error) { return os.Lstat(f.disk()) }

// Open implements [modzip.File].
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(f.disk()) }

// workingTree lists the files that a commit of everything would contain.
func workingTree(t *testing.T) []modzip.File {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list files of the working tree: %v", err)
	}
	var files []modzip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		f := treeFile(name)
		if _, err := f.Lstat(); err == nil { // otherwise it is deleted, but still in the index
			files = append(files, f)
		}
	}
	return files
}

// goCommand runs go and returns its standard output.
func goCommand(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

func fileURL(path string) string { return "file://" + filepath.ToSlash(path) }

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
