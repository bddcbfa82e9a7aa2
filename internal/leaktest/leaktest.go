// Package leaktest runs a package's tests and fails if they leave goroutines behind.
package leaktest

import (
	"time"

	"go.uber.org/goleak"
)

// long is how long goroutines may take to end after the last test. goleak alone waits for half a second, in which a loaded
// machine may not run them.
const long = time.Minute

// Main is for TestMain. It runs the tests and exits.
func Main(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, options, long}, options...)
}

// patient waits after the tests, until no goroutine is left or too much time has passed.
type patient struct {
	goleak.TestingM
	options []goleak.Option
	long    time.Duration
}

func (p patient) Run() int {
	code := p.TestingM.Run()
	for end := time.Now().Add(p.long); code == 0 && goleak.Find(p.options...) != nil && time.Now().Before(end); {
	}
	return code
}
