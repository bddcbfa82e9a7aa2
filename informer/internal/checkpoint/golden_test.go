package checkpoint

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/informer/internal/store"
)

var update = flag.Bool("update", false, "write the golden file")

// TestGolden loads a file that an earlier program has written. Where it fails, the format of the file
// has changed, or that of packed objects: the format's version must, too, so that what users have is
// read as what it is. Then -update writes the next golden.
func TestGolden(t *testing.T) {
	if *update {
		if err := os.WriteFile(goldenFile(formatVersion), written(t, pods(6, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	readGolden(t, formatVersion)
}

func goldenFile(format int) string {
	return filepath.Join("testdata", fmt.Sprintf("v%d.checkpoint", format))
}

func readGolden(t *testing.T, format int) {
	golden, want := goldenFile(format), pods(6, 1)
	file, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	l, err := load(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.report(int64(len(file)))
	if err != nil || r.Stream != "pods" || r.Objects != 6 || r.Dictionaries == 0 || r.Torn != 0 ||
		r.Head != (store.Head{Epoch: 1, Phase: store.Live, Version: want.Version, Served: want.Served}) {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, d := range want.Deltas {
		got := l.objects[d.Key]
		if got == nil || got.UID() != d.New.UID() || got.RV() != d.New.RV() || !got.Identical(d.New) || got.Sum() != d.New.Sum() {
			t.Errorf("%v is not what it was", d.Key)
		}
	}
}

// TestPage holds docs/checkpoint.md against the numbers of the format.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "checkpoint.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("This page describes format %d.", formatVersion),
		fmt.Sprintf("| 0 | %d | `%s` |", len(magic), magic),
		fmt.Sprintf("| %d | 4 | the number of the file's format: %d |", len(magic), formatVersion),
		fmt.Sprintf("| %d | %d | the file's id", len(magic)+4, idSize),
		fmt.Sprintf("| %d | 4 | the CRC of the bytes before", prefaceSize-4),
		fmt.Sprintf("| %d | header |", kindHeader),
		fmt.Sprintf("| %d | dictionary |", kindDict),
		fmt.Sprintf("| %d | put |", kindPut),
		fmt.Sprintf("| %d | delete |", kindDelete),
		fmt.Sprintf("| %d | commit | `%s`", kindCommit, commitMark[1:]),
		fmt.Sprintf("1 (listing) or %d (live)", store.Live),
		fmt.Sprintf("at most %d MiB", maxRecord>>20),
		fmt.Sprintf("%d MiB", minFile>>20),
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
