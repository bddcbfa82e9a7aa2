package stages

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	pods    = 10
	updates = 40
)

func opened(t *testing.T) *line {
	t.Helper()
	dir := t.TempDir()
	if err := write(dir, pods, updates); err != nil {
		t.Fatal(err)
	}
	l, err := open(t.Context(), dir, pods, updates)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestWay: every update passes all stages, to the journal and to the file.
func TestWay(t *testing.T) {
	l := opened(t)
	last := len(stages) - 1
	if err := l.until(last); err != nil {
		t.Fatal(err)
	}
	if err := l.run(last, l.updates); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "changes.jsonl"))
	if n := bytes.Count(text, []byte("\n")); err != nil || n != updates {
		t.Errorf("the file has %d lines: %v", n, err)
	}
	r, err := journal.OpenReader(t.Context(), filepath.Join(l.dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.Last(t.Context()); err != nil || n != pods+updates {
		t.Errorf("the journal has %d changes: %v", n, err)
	}
	attributed := 0
	for i, it := range l.updates {
		v := &it.change
		if bytes.Equal(it.before, it.after) || len(v.Fields) == 0 || v.Quiet {
			t.Fatalf("update %d has %d changes", i, len(v.Fields))
		}
		for _, f := range v.Fields {
			if f.Manager == "kubelet" {
				attributed++
			}
		}
	}
	if attributed < updates {
		t.Errorf("only %d changed fields were found to be the kubelet's", attributed)
	}
}

// TestEachStage: each stage can be measured alone, after what it needs.
func TestEachStage(t *testing.T) {
	for i, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := opened(t)
			if err := l.until(i); err != nil {
				t.Fatal(err)
			}
			if err := l.run(i, l.updates[:updates/2]); err != nil {
				t.Fatal(err)
			}
			if err := l.run(i, l.updates[updates/2:]); err != nil {
				t.Fatal(err)
			}
		})
	}
}
