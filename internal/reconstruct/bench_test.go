package reconstruct

import (
	"os"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// BenchmarkAdd: one pod of a real server, all of whose facts are within the window.
func BenchmarkAdd(b *testing.B) {
	raw, err := os.ReadFile("../managers/testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	c := NewCollector(Options{Since: time.Unix(0, 0)})
	for b.Loop() {
		obj, _, err := jsonmap.DecodeObject(raw)
		if err != nil {
			b.Fatal(err)
		}
		c.Add(pods, obj, false)
	}
}
