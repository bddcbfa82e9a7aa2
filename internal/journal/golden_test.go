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

// goldenSteps is the number of transactions in the golden file.
const goldenSteps = 30

// TestGolden reads a journal that an earlier program wrote. If it fails, the format has changed and needs a new number, so
// that older files are refused.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", fmt.Sprintf("v%d.journal", format))
	path := filepath.Join(t.TempDir(), "journal.db")
	if *update {
		_, j := written(t, path, goldenSteps)
		must(t, j.db.exec("PRAGMA incremental_vacuum"), j.Close(), os.MkdirAll("testdata", 0o755))
		b, err := os.ReadFile(path)
		must(t, err, os.WriteFile(golden, b, 0o644), os.Remove(path))
	}
	b, err := os.ReadFile(golden)
	must(t, err, os.WriteFile(path, b, 0o600))
	h := newHistory(5)
	for h.steps < goldenSteps {
		h.next()
	}
	for i := range h.rows {
		h.rows[i].schema = h.schemas[h.rows[i].Kind] // earlier programs kept only the newest
	}
	j := open(t, path)
	h.checkStates(t, j)
	h.check(t, path)
	batches, want := h.next() // it can be continued
	if got, err := j.Append(t.Context(), batches); err != nil || got != want {
		t.Errorf("appended %+v, %v; want %+v", got, err, want)
	}
}

// TestPage compares docs/journal.md with the code.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "journal.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(b)), " ")
	want := []string{
		fmt.Sprintf("`application_id` `0x%x`", applicationID),
		fmt.Sprintf("format %d", format),
		fmt.Sprintf("every %dth change", wholeEvery),
		fmt.Sprintf("%d changes", blockSize),
		fmt.Sprintf("first %d bytes", idSize),
		"`" + purging + "`, only while a purge",
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
	for _, line := range strings.Split(schema, "\n") {
		if name, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			name, _, _ = strings.Cut(name, " ")
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the page has no table %s", name)
			}
		}
	}
}
