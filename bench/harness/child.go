package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// inputVariable holds a child's Input; a program that finds it is a child.
const inputVariable = "TATTLER_BENCH_JOB"

// answerFile is the descriptor on which a child answers, so that its standard output stays free.
const answerFile = 3

// answer is a child's report, one line of JSON.
type answer struct {
	Sample Sample `json:"sample,omitempty"`
	Error  string `json:"error,omitempty"`
	// Ready is set by a service, which runs until its standard input ends.
	Ready *Server `json:"ready,omitempty"`
}

// Service is a job that serves other jobs. It reports when it is ready, and serves until ctx ends.
type Service struct {
	Name string
	Run  func(ctx context.Context, in Input, ready func(Server)) error
}

// Main runs one job and exits if this process was started for that; otherwise it returns.
func Main(jobs []Job, services []Service) {
	text, ok := os.LookupEnv(inputVariable)
	if !ok {
		return
	}
	out := os.NewFile(answerFile, "answer")
	var a answer
	var in Input
	err := json.Unmarshal([]byte(text), &in)
	if err == nil {
		a.Sample, err = do(jobs, services, in, func(s Server) { say(out, answer{Ready: &s}) })
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	say(out, a)
	os.Exit(0)
}

func say(out *os.File, a answer) {
	if err := json.NewEncoder(out).Encode(a); err != nil {
		fmt.Fprintln(os.Stderr, "answer:", err)
		os.Exit(1)
	}
}

func do(jobs []Job, services []Service, in Input, ready func(Server)) (Sample, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), in.limit(), fmt.Errorf("not done after %v", in.limit()))
	defer cancel()
	if i := slices.IndexFunc(services, func(s Service) bool { return s.Name == in.Job }); i >= 0 {
		return nil, services[i].Run(untilEOF(ctx), in, ready)
	}
	i := slices.IndexFunc(jobs, func(j Job) bool { return j.Name == in.Job })
	if i < 0 {
		return nil, fmt.Errorf("find job %q: no such job", in.Job)
	}
	if in.Counted != nil { // the parent's child is perf, which does not end this process when it dies
		ctx = untilEOF(ctx)
	}
	if in.NoGC {
		debug.SetGCPercent(-1)
	}
	stop, err := profile(in.Profile)
	if err != nil {
		return nil, err
	}
	s, err := jobs[i].Run(ctx, in)
	err = errors.Join(err, stop())
	if err != nil && ctx.Err() != nil && !strings.Contains(err.Error(), context.Cause(ctx).Error()) {
		err = errors.Join(context.Cause(ctx), err)
	}
	return s, err
}

// profile begins a CPU profile; stop ends it. Without a path it does nothing.
func profile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("start profile: %w", errors.Join(err, f.Close()))
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// untilEOF returns a context that ends with standard input: when the parent closes it or dies.
func untilEOF(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		var b [64]byte
		for {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				return
			}
		}
	}()
	return ctx
}

// Wait waits until done returns true; it polls every millisecond.
func Wait(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
