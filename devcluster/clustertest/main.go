// Package clustertest runs the tests of a package on a shared control plane.
//
// A package's TestMain ends with os.Exit([Main](m, …)). Main builds the control plane if need be, starts it
// before the tests and stops it after them. Goroutines and processes that the tests leave fail the run.
package clustertest

import (
	"cmp"
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

// Options configure the control plane and the run. The zero value is a control plane without controllers.
type Options struct {
	// Cluster configures the control plane. Without an Out, progress goes to standard error.
	Cluster devcluster.Options

	// PodsAnywhere lets Pods be created in any namespace, although nothing creates service accounts.
	PodsAnywhere bool

	// FastPings makes client-go detect a silent HTTP/2 connection within some seconds, instead of 45 s. It sets
	// environment variables, so it also applies to processes that the tests start.
	FastPings bool

	// Numbers maps environment variables to the numbers that they set. Main prints the numbers, so that a run
	// can be repeated. A variable that is empty or not set leaves its number as it is.
	Numbers map[string]*uint64

	// Leaks are functions of other projects that leak goroutines, named as in a stack trace.
	Leaks []string

	// Begin is called with the running control plane before the tests. If it fails, no test runs. Its context
	// ends when it returns.
	Begin func(context.Context, *devcluster.Cluster) error

	end time.Duration // in place of endLimit, if it is not 0
}

const (
	// startLimit bounds the start and Begin. A cold start builds the control plane first.
	startLimit = 40 * time.Minute
	// endLimit is how long goroutines and processes that the tests ended may take to disappear on a busy machine.
	endLimit = time.Minute
)

// Main runs tests, which is TestMain's *testing.M, and returns the exit code: theirs, or 1 if something else
// failed, which it prints to standard error. After passing tests, remaining goroutines and, on Linux, child
// processes are a failure.
func Main(tests interface{ Run() int }, o Options) int {
	code, err := run(tests, o)
	if err == nil {
		return code
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", program(), err)
	return max(code, 1)
}

// program is the name of the tested package, from the name of the test binary.
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
	return code, left(o.Leaks, cmp.Or(o.end, endLimit))
}

// prepare reads Numbers from the environment and applies the other options.
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

// left returns an error that lists the goroutines and child processes that remain after a time, except the known leaks.
func left(leaks []string, limit time.Duration) error {
	var known []goleak.Option
	for _, function := range leaks {
		known = append(known, goleak.IgnoreTopFunction(function))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return Poll(ctx, 20*time.Millisecond, func() error {
		if err := goleak.Find(known...); err != nil {
			return fmt.Errorf("the tests left goroutines: %w", err)
		}
		c, err := children(os.Getpid())
		if err == nil && len(c) > 0 {
			err = fmt.Errorf("the tests left processes: %s", strings.Join(c, ", "))
		}
		return err
	})
}
