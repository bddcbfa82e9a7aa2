package exec

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

// program appends its input to the file received, in one write, as the file behaviour says.
const program = `
lines=$(cat)
while read -r behaviour id < behaviour; [ "$behaviour" = hangs ]; do sleep 0.01; done
case "$behaviour" in
down) echo "not now" >&2; exit 75 ;;
refuses) case "$lines" in *"\"id\":\"$id\""*) echo "never" >&2; exit 65 ;; esac ;;
esac
printf '%s\n' "$lines" >> received
`

func TestMain(m *testing.M) {
	sinktest.Main(m, func(target string) (sink.Sink, error) {
		_, err := os.Stat(filepath.Join(target, "batch"))
		return New(options(target, err == nil))
	})
}

// options returns options that run the program in a folder.
func options(dir string, batch bool) Options {
	return Options{Command: []string{"/bin/sh", "-c", program}, Dir: dir, Batch: batch}
}

func TestSuite(t *testing.T) {
	for name, batch := range map[string]bool{"each": false, "batch": true} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*exec.Sink", Name: "exec",
				// An exit code cannot carry a wait. A program that is killed starts over, so one that takes longer
				// than a call may last never finishes: Slow would end only on a fast machine.
				Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Slow},
				Start:  func(t *testing.T) sinktest.Receiver { return newReceiver(t, batch) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					return must(New(options(r.Target(), batch)))(t)
				},
			})
		})
	}
}

// receiver is the folder of the program.
type receiver struct {
	t   *testing.T
	dir string
}

func newReceiver(t *testing.T, batch bool) receiver {
	r := receiver{t, t.TempDir()}
	if batch {
		r.write("batch", "")
	}
	return r
}

func (r receiver) write(name, text string) {
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		r.t.Fatal(err)
	}
}

func (r receiver) Target() string { return r.dir }

func (r receiver) Behave(b sinktest.Behaviour, id string) {
	r.write("behaviour", fmt.Sprintln(b, id))
}

func (r receiver) Received(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "received"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range bytes.Lines(text) {
		var e event.Event
		if err := json.Unmarshal(line, &e); err != nil || e.ID == "" {
			t.Fatalf("line %q: %v", line, err)
		}
		ids = append(ids, e.ID)
	}
	return ids
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
