package exec_test

import (
	"os"
	gexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/exec"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(string) (sink.Sink, error) { panic("the suite is beside the sink") })
}

// TestConsumer: the example of the page is what runs here, and notes each change once.
func TestConsumer(t *testing.T) {
	page, source := read(t, "../../../docs/sinks/exec.md"), read(t, "onchange/main.go")
	_, rest, _ := strings.Cut(page, "```go\n")
	if example, _, found := strings.Cut(rest, "```"); !found || !strings.Contains(source, example) {
		t.Error("docs/sinks/exec.md shows another program")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "onchange")
	if out, err := gexec.CommandContext(t.Context(), "go", "build", "-o", program, "./onchange").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ms := sinktest.Messages(0, 4)
	for _, batch := range []bool{false, true, false} {
		s, err := exec.New(exec.Options{Command: []string{program}, Batch: batch, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Send(t.Context(), ms); n != len(ms) || err != nil {
			t.Fatal(n, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want := ""
	for _, m := range ms {
		want += m.ID + " updated " + m.Event.Subject + "\n"
	}
	if got := read(t, filepath.Join(dir, "changes.txt")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
