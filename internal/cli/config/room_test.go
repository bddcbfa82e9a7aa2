package config

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/config"
)

func TestRoom(t *testing.T) {
	unknown := errors.New("forbidden")
	for _, tc := range []struct {
		why    string
		size   config.Size
		age    time.Duration
		kinds  []finding
		want   string
		warned string
	}{
		{"a small cluster", 1 << 30, 30 * 24 * time.Hour, []finding{{objects: 1000}, {objects: 234}},
			"Room: about 2.4 MiB for the last states of 1234 objects; what is left of 1Gi holds 3.6 million to 15 million changes, which is 30d of 1.4 to 5.9 a second", ""},
		{"not all of it is known, and changes are kept for ever", 64 << 20, 0, []finding{{objects: 1, unknown: unknown}, {objects: 1000, more: true}},
			"Room: at least 2 MiB for the last states of 1001 objects; what is left of 64Mi holds 217 thousand to 929 thousand changes", ""},
		{"half of it", 1 << 20, time.Hour, []finding{{objects: 256}},
			"about 512 KiB for the last states of 256 objects; what is left of 1Mi holds 1.7 thousand to 7.5 thousand changes, which is 1h of 0.49 to 2.1 a second", "about 512 KiB"},
		{"more than all of it", 1 << 30, 24 * time.Hour, []finding{{objects: 1_000_000}},
			"holds 895 thousand to 3.8 million changes, which is 1d of 10 to 44 a second", "journal.retain.size: the last states take half of it or more, about 1953 MiB"},
	} {
		var out bytes.Buffer
		r := &report{w: &out, setup: &setup.Setup{Config: &config.Config{Journal: config.Journal{Retain: config.Retain{Age: tc.age, Size: tc.size}}}}}
		r.room(tc.kinds)
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: %s\nwant %s", tc.why, out.String(), tc.want)
		}
		if warned := strings.Join(r.warnings, "\n"); (warned == "") != (tc.warned == "") || !strings.Contains(warned, tc.warned) {
			t.Errorf("%s: warned of %q, want %q", tc.why, warned, tc.warned)
		}
	}
}

// TestRoomInDocs: the example of docs/operations.md is what would be written.
func TestRoomInDocs(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &report{w: &out, setup: &setup.Setup{Config: &config.Config{Journal: config.Journal{Retain: config.Retain{Age: 30 * 24 * time.Hour, Size: 1 << 30}}}}}
	if r.room([]finding{{objects: 100_000}}); !bytes.Contains(docs, out.Bytes()) {
		t.Errorf("docs/operations.md has not: %s", out.String())
	}
}
