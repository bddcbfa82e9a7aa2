package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// tests are those of a package.
type tests func() int

func (f tests) Run() int { return f() }

// exits runs tests as Main does, and returns the code with which it would exit.
func exits(f tests, long time.Duration) (code int) {
	now := goleak.IgnoreCurrent()
	goleak.VerifyTestMain(patient{f, []goleak.Option{now}, long}, now, goleak.Cleanup(func(c int) { code = c }))
	return code
}

// TestPatience: a goroutine that ends a moment after the tests is not a leak, one that stays is, and failures stay failures.
func TestPatience(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	for _, tc := range []struct {
		why  string
		f    tests
		long time.Duration
		want int
	}{
		{"a goroutine that ends, after longer than goleak waits", func() int {
			go func() { <-time.After(2 * time.Second) }()
			return 0
		}, long, 0},
		{"a failure", func() int { return 3 }, long, 3},
		{"a goroutine that stays", func() int {
			go func() { <-end }()
			return 0
		}, time.Second, 1},
	} {
		if got := exits(tc.f, tc.long); got != tc.want {
			t.Errorf("%s: exits with %d, want %d", tc.why, got, tc.want)
		}
	}
}
