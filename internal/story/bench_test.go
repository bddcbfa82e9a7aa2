package story

import (
	"math/rand/v2"
	"testing"

	"github.com/tattler-dev/tattler/internal/story/storytest"
)

// BenchmarkFollow follows the changes of a random hour.
func BenchmarkFollow(b *testing.B) {
	changes := storytest.Random(rand.New(rand.NewPCG(1, 1)))
	b.ReportAllocs()
	var e *Engine
	for i := 0; b.Loop(); i++ {
		n := i % len(changes)
		if n == 0 {
			e = New("c", nil)
		}
		in := Read(&changes[n])
		in.Seq = int64(n + 1)
		if _, err := e.Apply(&in); err != nil {
			b.Fatal(err)
		}
	}
}
