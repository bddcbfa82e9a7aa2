package exec_test

import (
	"os"
	gexec "os/exec"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/exec"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	sinktest.Main(m, func(string) (sink.Sink, error) { panic("the suite is beside the sink") })
}

// TestConsumer runs the example of the page, which notes each change once.
func TestConsumer(t *testing.T) {
	rig.SameAsPage(t, "exec.md", "onchange/main.go")
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
	if got := string(rig.Must(os.ReadFile(filepath.Join(dir, "changes.txt")))(t)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
