package journal

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file")

// goldenSteps is how long the history in the golden file is.
const goldenSteps = 30

// TestGolden reads a journal that an earlier program has written. Where it fails, the format has
// changed: what users have must still open, by a migration. A file for each format stays.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", fmt.Sprintf("v%d.journal", len(migrations)))
	path := filepath.Join(t.TempDir(), "journal.db")
	if *update {
		_, j := written(t, path, goldenSteps)
		must(t, j.db.exec("PRAGMA incremental_vacuum"), j.Close(), os.MkdirAll("testdata", 0o755))
		b, err := os.ReadFile(path)
		must(t, err, os.WriteFile(golden, b, 0o644), os.Remove(path))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "v*.journal"))
	if err != nil || len(files) != len(migrations) {
		t.Fatalf("%d golden files for %d formats, %v", len(files), len(migrations), err)
	}
	for n, file := range files {
		h := restoreGolden(t, n+1, path)
		j := open(t, path)
		h.checkStates(t, j)
		h.check(t, path)
		batches, want := h.next() // it can be gone on with
		if got, err := j.Append(t.Context(), batches); err != nil || got != want {
			t.Errorf("%s: appended %+v, %v; want %+v", file, got, err, want)
		}
		must(t, j.Close(), os.Remove(path))
	}
}

// restoreGolden puts the file of a format in place and returns what is in it.
func restoreGolden(t *testing.T, format int, path string) *history {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("v%d.journal", format)))
	must(t, err, os.WriteFile(path, b, 0o600))
	h := newHistory(5)
	h.formed, h.late = format >= 4, false
	for h.steps < goldenSteps {
		h.next()
	}
	return h
}

// TestPage holds docs/journal.md against the code.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "journal.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(b)), " ")
	want := []string{
		fmt.Sprintf("`application_id` `0x%x`", applicationID),
		fmt.Sprintf("format %d", len(migrations)),
		fmt.Sprintf("every %dth change", wholeEvery),
		fmt.Sprintf("%d changes", blockSize),
		fmt.Sprintf("first %d bytes", idSize),
		"`" + purging + "` while a purge",
	}
	for form, name := range []string{"plain", "s2", "zstd", "delta", "zstd of a delta", "lost", "purged"} {
		want = append(want, fmt.Sprintf("| %d | %s |", form, name))
	}
	for n, op := range ops {
		if n > 0 {
			want = append(want, fmt.Sprintf("%d %s", n, op))
		}
	}
	for _, w := range want {
		if !strings.Contains(page, w) {
			t.Errorf("the page does not say %q", w)
		}
	}
	for _, line := range strings.Split(strings.Join(migrations, "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			name, _, _ = strings.Cut(name, " ")
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the page has no table %s", name)
			}
		}
	}
}
