package devcluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeBuild counts builds and writes the program's name in place of the program.
type fakeBuild struct {
	mu    sync.Mutex
	built []string
	err   error
	entry chan struct{} // if not nil, receives a value when a build begins
	gate  chan struct{} // if not nil, a build waits for it
}

func (f *fakeBuild) build(ctx context.Context, p program, dest string, _ io.Writer) error {
	f.mu.Lock()
	f.built = append(f.built, p.name)
	f.mu.Unlock()
	if f.entry != nil {
		f.entry <- struct{}{}
	}
	if f.gate != nil {
		<-f.gate
	}
	if err := os.WriteFile(dest, []byte("program "+p.name), 0o600); err != nil {
		return err
	}
	return f.err
}

func (f *fakeBuild) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.built)
}

func TestCacheBuildsOnce(t *testing.T) {
	f := &fakeBuild{}
	c := cache{dir: filepath.Join(t.TempDir(), "set"), build: f.build}
	var out bytes.Buffer
	b, err := c.ensure(t.Context(), &out, "kubectl", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.built, " "); got != "etcd kubectl" {
		t.Errorf("built %q, want etcd and kubectl, in building order", got)
	}
	// The announcement names the programs, the time and the memory.
	for _, want := range []string{"building etcd " + EtcdVersion, "seconds on 2 cores", "GB of memory", "built kubectl"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("progress lacks %q:\n%s", want, out.String())
		}
	}
	fi, err := os.Stat(b.Path("kubectl"))
	if err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("kubectl: %v, %v", fi, err)
	}
	out.Reset()
	if _, err := c.ensure(t.Context(), &out, "etcd", "kubectl"); err != nil || f.count() != 2 || out.Len() > 0 {
		t.Errorf("second time: %v, %d builds, said %q", err, f.count(), out.String())
	}
	if _, err := c.ensure(t.Context(), nil, "kubelet"); err == nil || !strings.Contains(err.Error(), "there are etcd") {
		t.Errorf("unknown program: %v", err)
	}
}

// Remains of a crash, a full disk or a user's experiment must not be run.
func TestCacheRejectsBroken(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"truncated":      func(p string) error { return os.Truncate(p, 3) },
		"removed":        os.Remove,
		"no receipt":     func(p string) error { return os.Remove(p + ".json") },
		"half a receipt": func(p string) error { return os.Truncate(p+".json", 5) },
		"not executable": func(p string) error { return os.Chmod(p, 0o644) },
		"other version": func(p string) error {
			return os.WriteFile(p+".json", []byte(`{"version":"v0.1.0","size":12}`), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeBuild{}
			c := cache{dir: t.TempDir(), build: f.build}
			b, err := c.ensure(t.Context(), nil, "etcd")
			if err != nil {
				t.Fatal(err)
			}
			if err := harm(b.Path("etcd")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ensure(t.Context(), nil, "etcd"); err != nil || f.count() != 2 {
				t.Fatalf("%v after %d builds, want a second build", err, f.count())
			}
			if data, err := os.ReadFile(b.Path("etcd")); err != nil || string(data) != "program etcd" {
				t.Errorf("rebuilt program is %q, %v", data, err)
			}
		})
	}
}

func TestCacheFailedBuild(t *testing.T) {
	f := &fakeBuild{err: errors.New("the compiler is on strike")}
	c := cache{dir: t.TempDir(), build: f.build}
	if err := os.WriteFile(filepath.Join(c.dir, "kwok"+partSuffix), []byte("of a killed build"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := c.ensure(t.Context(), nil, "etcd")
	if !errors.Is(err, f.err) || !strings.Contains(err.Error(), "build etcd "+EtcdVersion) {
		t.Errorf("error does not tell what failed: %v", err)
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".lock" {
		t.Errorf("a failed build leaves %v, %v", entries, err)
	}
	f.err = nil
	if _, err := c.ensure(t.Context(), nil, "etcd"); err != nil {
		t.Errorf("after a failure: %v", err)
	}
}

// The second of two builders reports that it waits, and finds the programs.
func TestCacheExcludes(t *testing.T) {
	f := &fakeBuild{entry: make(chan struct{}, 1), gate: make(chan struct{})}
	c := cache{dir: t.TempDir(), build: f.build}
	errs := make(chan error, 2)
	go func() { _, err := c.ensure(t.Context(), nil, "etcd"); errs <- err }()
	<-f.entry // the first holds the lock
	said := make(chan string, 1)
	go func() { _, err := c.ensure(t.Context(), chanWriter(said), "etcd"); errs <- err }()
	if s := <-said; !strings.Contains(s, "another process is building") {
		t.Errorf("the waiting one said %q", s)
	}
	// A wait ends with its context.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ensure(ctx, nil, "etcd"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled wait: %v", err)
	}
	close(f.gate)
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if f.count() != 1 {
		t.Errorf("%d builds, want 1", f.count())
	}
}

type chanWriter chan string

func (w chanWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestBuildError(t *testing.T) {
	for output, want := range map[string]string{
		"link: signal: killed":              "memory ran out",
		"write x: no space left on device":  "disk is full",
		"requires go >= 1.99":               "too old",
		strings.Repeat("noise\n", 99) + "!": "noise\n!",
	} {
		if err := buildError(t.Context(), errors.New("exit status 1"), output); !strings.Contains(err.Error(), want) {
			t.Errorf("error of %q lacks %q: %v", output, want, err)
		}
	}
}

// The constants name what the modules below build/ require.
func TestVersions(t *testing.T) {
	staging := strings.Replace(KubernetesVersion, "v1.", "v0.", 1)
	for file, wants := range map[string][]string{
		"kubernetes": {"k8s.io/kubernetes " + KubernetesVersion, "k8s.io/api => k8s.io/api " + staging},
		"etcd":       {"go.etcd.io/etcd/server/v3 " + EtcdVersion},
		"kwok":       {"sigs.k8s.io/kwok " + KwokVersion},
	} {
		data, err := os.ReadFile(filepath.Join("build", file, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(data), want+"\n") {
				t.Errorf("build/%s/go.mod lacks %q", file, want)
			}
		}
	}
}

// The source is found by the compiler's paths, and by go list.
func TestSourceDir(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := sourceDir(t.Context()); err != nil || dir != wd {
		t.Errorf("source is %q, %v; want %q", dir, err, wd)
	}
}
