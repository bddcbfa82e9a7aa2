package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envFlood); path != "" {
		os.Exit(flood(path))
	}
	if path := os.Getenv(envLimit); path != "" {
		os.Exit(limited(path))
	}
	sinktest.Main(m, func(target string) (sink.Sink, error) { return New(Options{Path: target}) })
}

func TestSuite(t *testing.T) {
	for name, o := range map[string]Options{
		"safe":     {},
		"rotating": {Rotate: Rotate{Size: 3000, Keep: 1000}, Sync: Never},
		"lazy":     {Sync: Interval},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*file.Sink", Name: "file", Once: true,
				Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Hangs, sinktest.Slow, sinktest.Refuses}, // unlike a network
				Start:  func(t *testing.T) sinktest.Receiver { return newReceiver(t) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					o.Path = r.Target()
					return must(New(o))(t)
				},
			})
		})
	}
}

// receiver is a directory that can disappear.
type receiver struct{ dir string }

func newReceiver(t *testing.T) *receiver {
	r := &receiver{filepath.Join(t.TempDir(), "log")}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *receiver) Target() string { return filepath.Join(r.dir, "changes.jsonl") }

func (r *receiver) Behave(b sinktest.Behaviour, _ string) {
	from, to := r.dir+".gone", r.dir
	if b == sinktest.Down {
		from, to = to, from
	}
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
}

func (r *receiver) Received(t *testing.T) []string {
	t.Helper()
	return readIDs(t, r.Target())
}

// readIDs returns the ids in the file and the rotated ones, oldest first.
func readIDs(t *testing.T, path string) []string {
	t.Helper()
	var out []string
	last := 0
	for exists(fmt.Sprint(path, ".", last+1)) {
		last++
	}
	for n := last; n >= 0; n-- {
		name := path
		if n > 0 {
			name = fmt.Sprint(path, ".", n)
		}
		for _, line := range readLines(t, name) {
			var e event.Event
			if err := json.Unmarshal(line, &e); err != nil || e.ID == "" {
				t.Fatalf("%s: torn line %q: %v", name, line, err)
			}
			out = append(out, e.ID)
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func readLines(t *testing.T, path string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(text) == 0 {
		return nil
	}
	text, ended := bytes.CutSuffix(text, []byte("\n"))
	if !ended {
		t.Fatalf("%s ends with a torn line", path)
	}
	return bytes.Split(text, []byte("\n"))
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
