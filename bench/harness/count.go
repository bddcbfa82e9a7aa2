package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A count of instructions does not depend on the machine's load or speed. It does depend on the processor's features:
// Go's crypto and checksums use the best instructions that they find, and callgrind's simulated processor lacks some.

// Counter counts the instructions that a process executes in user mode, on all its threads.
type Counter struct {
	// Name is the program: "perf stat" or "callgrind".
	Name string
	// command is put before the counted command; its result goes to a file. paused is its options to count nothing until
	// the process says so, through FIFOs in a folder if it needs any.
	command func(file string) []string
	paused  func(dir string) []string
	// read reads the result.
	read func(text string) (float64, error)
}

// perf reads the processor's counters; virtual machines often lack them.
var perf = Counter{
	Name: "perf stat",
	command: func(file string) []string {
		return []string{"perf", "stat", "-x", ",", "-e", "instructions:u", "-o", file}
	},
	paused: func(dir string) []string {
		return []string{"--delay=-1", "--control=fifo:" + filepath.Join(dir, controlFIFO) + "," + filepath.Join(dir, ackFIFO)}
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

const (
	controlFIFO = "control"
	ackFIFO     = "ack"
)

// callgrind simulates the processor, some fifty times slower than it is.
var callgrind = Counter{
	Name: "callgrind",
	command: func(file string) []string {
		return []string{"valgrind", "--tool=callgrind", "--callgrind-out-file=" + file}
	},
	paused: func(string) []string { return []string{"--instr-atstart=no"} },
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
// It returns nil if there is none. It tries each once for the process.
var FindCounter = sync.OnceValue(func() *Counter {
	switch {
	case perf.works():
		return &perf
	case callgrind.works() && !raceDetector: // a program with the race detector does not run there
		return &callgrind
	}
	return nil
})

// works counts a small command.
func (c *Counter) works() bool {
	if c == &callgrind && runtime.GOARCH != "amd64" { // see clientRequest
		return false
	}
	_, err := c.result(func(dir, file string) error {
		args := append(c.command(file), "true")
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bytes.ToValidUTF8(out, nil))
		}
		return nil
	})
	return err == nil
}

// countedEnv makes a count repeatable: no threads that spin while they wait for work, and no signals, which callgrind does
// not survive.
var countedEnv = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1"}

// Run runs a job in a new process, and returns the number of instructions of what the job passes to Input.Count.
func (c *Counter) Run(ctx context.Context, in Input) (instructions float64, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	return c.run(ctx, exe, in)
}

func (c *Counter) run(ctx context.Context, exe string, in Input) (instructions float64, err error) {
	return c.result(func(dir, file string) error {
		for _, name := range []string{controlFIFO, ackFIFO} {
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				return fmt.Errorf("make FIFO: %w", err)
			}
		}
		in.Counted = &Counted{By: c.Name, Dir: dir}
		in.Profile = ""
		command := append(append(c.command(file), c.paused(dir)...), "--", exe)
		_, err := runAs(ctx, in, command, countedEnv)
		return err
	})
}

// result calls run with a folder and a file, and reads the result that is then in the file.
func (c *Counter) result(run func(dir, file string) error) (n float64, err error) {
	dir, err := os.MkdirTemp("", "tattler-bench-")
	if err != nil {
		return 0, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "count")
	if err := run(dir, file); err != nil {
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

// Counted tells a process how its instructions are counted.
type Counted struct {
	// By is the counter's name, Dir the folder of its FIFOs.
	By, Dir string
}

// Count calls do and counts its instructions, if this process is counted. A job calls it once.
func (in *Input) Count(do func() error) error {
	if in.Counted == nil {
		return do()
	}
	turn := turnCallgrind
	if in.Counted.By == perf.Name {
		turn = in.Counted.turnPerf
	}
	if err := turn(true); err != nil {
		return err
	}
	return errors.Join(do(), turn(false))
}

// The client requests by which a process tells callgrind to count and to stop.
//
// Source: callgrind.h and valgrind.h of Valgrind.
const (
	startInstrumentation = 'C'<<24 | 'T'<<16 + 4
	stopInstrumentation  = startInstrumentation + 1
)

func turnCallgrind(on bool) error {
	request := [6]uint64{startInstrumentation}
	if !on {
		request[0] = stopInstrumentation
	}
	clientRequest(&request)
	return nil
}

// turnPerf sends perf an order and waits for the answer.
func (c *Counted) turnPerf(on bool) error {
	order := "enable\n"
	if !on {
		order = "disable\n"
	}
	if err := os.WriteFile(filepath.Join(c.Dir, controlFIFO), []byte(order), 0); err != nil {
		return fmt.Errorf("control perf: %w", err)
	}
	ack, err := os.OpenFile(filepath.Join(c.Dir, ackFIFO), os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("wait for perf: %w", err)
	}
	defer ack.Close()
	if _, err := ack.Read(make([]byte, 16)); err != nil {
		return fmt.Errorf("wait for perf: %w", err)
	}
	return nil
}
