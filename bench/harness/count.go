package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A count of instructions does not depend on the machine's load or speed. It does depend on the processor's features:
// Go's crypto and checksums use the best instructions that they find, and callgrind's simulated processor lacks some.

// Counter counts the instructions that a process executes in user mode.
type Counter struct {
	// Name is the program: "perf stat" or "callgrind".
	Name string
	// args are the command before the counted one, for a result in a file.
	args func(file string) []string
	// read reads the result.
	read func(text string) (float64, error)
}

// perf reads the processor's counters; virtual machines often lack them.
var perf = Counter{
	Name: "perf stat",
	args: func(file string) []string {
		return []string{"perf", "stat", "-x", ",", "-e", "instructions:u", "-o", file, "--"}
	},
	read: func(text string) (float64, error) {
		for line := range strings.Lines(text) {
			if n, _, ok := strings.Cut(line, ",,instructions"); ok {
				return strconv.ParseFloat(n, 64) // fails for "<not supported>"
			}
		}
		return 0, errors.New("no count of instructions")
	},
}

// callgrind simulates the processor, some fifty times slower than it is.
var callgrind = Counter{
	Name: "callgrind",
	args: func(file string) []string {
		return []string{"valgrind", "--tool=callgrind", "--callgrind-out-file=" + file, "--"}
	},
	read: func(text string) (float64, error) {
		for line := range strings.Lines(text) {
			if n, ok := strings.CutPrefix(line, "totals: "); ok {
				return strconv.ParseFloat(strings.TrimSpace(n), 64)
			}
		}
		return 0, errors.New("no count of instructions")
	},
}

// FindCounter returns the machine's counter: perf stat where the processor's counters are accessible, else callgrind.
// It returns nil if there is none. It tries each on a small command, once for the process.
var FindCounter = sync.OnceValue(func() *Counter {
	for _, c := range []*Counter{&perf, &callgrind} {
		if raceDetector && c == &callgrind { // a program with it does not run there
			continue
		}
		if _, err := c.Count(context.Background(), "true"); err == nil {
			return c
		}
	}
	return nil
})

// countedEnv makes a Go program's count repeatable: no threads that spin while they wait for work, and no signals, which
// callgrind does not survive.
var countedEnv = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1"}

// PerEvent returns the instructions that a job takes for each of in.Events: the job runs with as many and with twice as
// many, and the difference leaves out what does not depend on them, such as the start.
func (c *Counter) PerEvent(ctx context.Context, in Input) (float64, error) {
	n := in.Events
	in.MaxEvents = 2 * n
	once, err := c.Run(ctx, in)
	if err != nil {
		return 0, err
	}
	in.Events *= 2
	twice, err := c.Run(ctx, in)
	return (twice - once) / float64(n), err
}

// Run runs a job in a new process and returns the number of the process's instructions, its start included.
func (c *Counter) Run(ctx context.Context, in Input) (instructions float64, err error) {
	in.Counted, in.Profile = true, ""
	return c.count(func(args []string) error {
		_, err := runBehind(ctx, in, args, countedEnv)
		return err
	})
}

// Count runs a command and returns the number of its instructions.
func (c *Counter) Count(ctx context.Context, command ...string) (instructions float64, err error) {
	return c.count(func(args []string) error {
		args = append(args, command...)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(cmd.Environ(), countedEnv...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run %s: %w: %s", cmd, err, bytes.ToValidUTF8(out, nil))
		}
		return nil
	})
}

// count calls run with the command before the one to be counted, and reads the result.
func (c *Counter) count(run func(args []string) error) (n float64, err error) {
	dir, err := os.MkdirTemp("", "tattler-bench-")
	if err != nil {
		return 0, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "count")
	if err := run(c.args(file)); err != nil {
		return 0, fmt.Errorf("count instructions by %s: %w", c.Name, err)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		n, err = c.read(string(text))
	}
	if err != nil {
		return 0, fmt.Errorf("read result of %s: %w", c.Name, err)
	}
	return n, nil
}
