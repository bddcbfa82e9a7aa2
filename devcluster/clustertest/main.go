// Package clustertest runs the tests of a package on a control plane that they share.
//
// A package's TestMain ends with os.Exit([Main](m, …)): the control plane is built if need be, started
// before the tests and stopped after them, and what the tests leave running fails the run.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/goleak"

	"github.com/tattler-dev/tattler/devcluster"
)

// Options say what the tests want. The zero value is a control plane without controllers.
type Options struct {
	// Cluster is what is started; without an Out, progress goes to standard error.
	Cluster devcluster.Options

	// PodsAnywhere lets Pods be created in any namespace, though nothing makes service accounts.
	PodsAnywhere bool

	// FastPings has client-go notice within some seconds that an HTTP/2 connection is silent, which takes it
	// 45 s by default; in the processes that the tests start, too, since it is said in the environment.
	FastPings bool

	// Numbers are read from environment variables of these names, and printed, so that a run can be
	// repeated. What a pointer points to stays where the variable is empty or not set.
	Numbers map[string]*uint64

	// Leaks are functions that goroutines may be left in, by the name that a stack trace has: others' faults.
	Leaks []string

	// Begin is called with the running control plane before the tests; if it fails, none is run. The context
	// ends when it returns.
	Begin func(context.Context, *devcluster.Cluster) error
}

const (
	// startLimit bounds the start, and Begin: cold, the control plane is built first.
	startLimit = 40 * time.Minute
	// endLimit is how long the processes that tests have ended may take to go.
	endLimit = 5 * time.Second
)

// Main runs tests, which is TestMain's *testing.M, and returns the exit code: theirs, or 1 where something else
// failed, which it tells on standard error. After tests that passed, goroutines and, on Linux, child processes
// that are still there are a failure.
func Main(tests interface{ Run() int }, o Options) int {
	code, err := run(tests, o)
	if err == nil {
		return code
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", program(), err)
	return max(code, 1)
}

// program is the name of the package that is tested, as go test names its program.
func program() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".test") }

func run(tests interface{ Run() int }, o Options) (code int, err error) {
	if err := o.prepare(); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := devcluster.Start(ctx, o.Cluster)
	if err != nil {
		return 1, err
	}
	if o.Begin != nil {
		err = o.Begin(ctx, c)
	}
	cancel()
	if err == nil {
		code = tests.Run()
	}
	if err = errors.Join(err, c.Stop()); err != nil || code != 0 {
		return code, err
	}
	return code, left(o.Leaks)
}

// prepare reads the environment, and sets what the options want.
func (o *Options) prepare() error {
	var said []string
	for _, env := range slices.Sorted(maps.Keys(o.Numbers)) {
		n := o.Numbers[env]
		if text := os.Getenv(env); text != "" {
			v, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return fmt.Errorf("read %s: %w", env, err)
			}
			*n = v
		}
		said = append(said, fmt.Sprintf("%s=%d", env, *n))
	}
	if len(said) > 0 {
		fmt.Fprintf(os.Stderr, "%s: %s\n", program(), strings.Join(said, " "))
	}
	if o.FastPings {
		for _, env := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
			if err := os.Setenv(env, "2"); err != nil {
				return fmt.Errorf("set %s: %w", env, err)
			}
		}
	}
	if o.Cluster.Out == nil {
		o.Cluster.Out = os.Stderr
	}
	if o.PodsAnywhere {
		o.Cluster.APIServerArgs = append(slices.Clip(o.Cluster.APIServerArgs), "--disable-admission-plugins=ServiceAccount")
	}
	return nil
}

// left says what is still there that must be gone, but for what others leave.
func left(leaks []string) error {
	var known []goleak.Option
	for _, function := range leaks {
		known = append(known, goleak.IgnoreTopFunction(function))
	}
	if err := goleak.Find(known...); err != nil {
		return fmt.Errorf("the tests left goroutines: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	return Poll(ctx, 20*time.Millisecond, func() error {
		c, err := children(os.Getpid())
		if err == nil && len(c) > 0 {
			err = fmt.Errorf("the tests left processes: %s", strings.Join(c, ", "))
		}
		return err
	})
}
