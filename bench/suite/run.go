package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/bench/fill"
	"github.com/tattler-dev/tattler/bench/harness"
)

// Scenario is a server, the jobs that run against it, and the rows that they yield.
type Scenario struct {
	Name string
	// Real selects a real API server instead of the synthetic one.
	Real bool
	// Objects is the number of pods. A real server has as many Widgets.
	Objects int
	// Apps is the number of applications of the synthetic server's pods; 0 means 200.
	Apps int
	// Events is the number of changes.
	Events int
	// Warm jobs run once, before the first round.
	Warm []string
	// Jobs run in this order in each round.
	Jobs []Step
	Rows []RowSpec
	// MaxRounds limits the rounds of a long scenario; 0 means no limit.
	MaxRounds int
}

// Step is a job of a scenario.
type Step struct {
	Job string
	// Part limits the job to one of its parts; empty means all.
	Part string
	// Limit is the job's time limit; 0 means five minutes.
	Limit time.Duration
	// MemoryLimit is the job's GOMEMLIMIT, bytes; 0 means no limit.
	MemoryLimit int64
	// Prepare marks a job that only prepares for later jobs: its samples do not count.
	Prepare bool
}

// Options configure a run.
type Options struct {
	// Select selects scenarios by name; nil means all.
	Select *regexp.Regexp
	Rounds int
	Seed   uint64
	// Profiles is a folder for a CPU profile of each job, of the last round; empty means no profiles.
	Profiles string
	// Out receives progress.
	Out io.Writer
	// PeerVersion names the peer.
	PeerVersion string
}

// Run runs the selected scenarios and returns their rows. If one fails, the others still run, and the
// error names the failures.
func Run(ctx context.Context, scenarios []Scenario, o Options) ([]Row, error) {
	s := &servers{o: o}
	defer s.stop()
	var rows []Row
	var errs []error
	for _, sc := range scenarios {
		if o.Select != nil && !o.Select.MatchString(sc.Name) {
			continue
		}
		r, err := sc.run(ctx, s, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("scenario %s: %w", sc.Name, err))
		}
		for _, spec := range sc.Rows {
			rows = append(rows, spec.row(r, o.PeerVersion, sc.Objects))
		}
		if ctx.Err() != nil {
			return rows, errors.Join(append(errs, context.Cause(ctx))...)
		}
	}
	return rows, errors.Join(errs...)
}

func (sc Scenario) run(ctx context.Context, s *servers, o Options) (Results, error) {
	server, done, err := s.open(ctx, sc)
	if err != nil {
		return nil, err
	}
	defer done()
	r := Results{}
	var errs []error
	for _, job := range sc.Warm { // fill the server's caches before the first measured request
		if err := sc.step(ctx, Step{Job: job, Prepare: true}, server, "", r, o); err != nil {
			return nil, err
		}
	}
	rounds := o.Rounds
	if sc.MaxRounds > 0 {
		rounds = min(rounds, sc.MaxRounds)
	}
	for round := range rounds {
		if err := sc.round(ctx, server, r, o); err != nil {
			errs = append(errs, fmt.Errorf("round %d: %w", round+1, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return r, errors.Join(errs...)
}

// round runs each job once, in a new folder.
func (sc Scenario) round(ctx context.Context, server harness.Server, r Results, o Options) error {
	dir, err := os.MkdirTemp("", "tattler-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(dir)
	var errs []error
	for _, step := range sc.Jobs {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, sc.step(ctx, step, server, dir, r, o))
	}
	return errors.Join(errs...)
}

// step runs a job and adds its sample to the results.
func (sc Scenario) step(ctx context.Context, step Step, server harness.Server, dir string, r Results, o Options) error {
	if step.Limit == 0 {
		step.Limit = 5 * time.Minute
	}
	in := harness.Input{Job: step.Job, Server: server, Events: sc.Events, Part: step.Part, Dir: dir, Seconds: int(step.Limit.Seconds()), MemoryLimit: step.MemoryLimit}
	if o.Profiles != "" {
		in.Profile = filepath.Join(o.Profiles, sc.Name+"_"+strings.ReplaceAll(step.Job, "/", "_")+".pprof")
	}
	start := time.Now()
	sample, err := harness.Run(ctx, in)
	fmt.Fprintf(o.Out, "bench: %s: %s: %.1f s\n", sc.Name, step.Job, time.Since(start).Seconds())
	if err != nil {
		fmt.Fprintf(o.Out, "bench: %v\n", err)
		return err
	}
	if !step.Prepare {
		r[step.Job] = append(r[step.Job], sample)
	}
	return nil
}

// servers starts the scenarios' servers. It keeps a real server for the next scenarios.
type servers struct {
	o    Options
	n    int
	real *fill.Cluster
}

// open returns the scenario's server and a function that releases it.
func (s *servers) open(ctx context.Context, sc Scenario) (harness.Server, func(), error) {
	if !sc.Real {
		return s.synthetic(ctx, sc)
	}
	if s.real == nil || s.n != sc.Objects {
		s.stop()
		c, err := fill.Open(ctx, fill.Options{Pods: sc.Objects, Widgets: sc.Objects, Seed: s.o.Seed, Out: s.o.Out})
		if err != nil {
			return harness.Server{}, nil, err
		}
		s.real, s.n = c, sc.Objects
	}
	return harness.Server{URL: s.real.URL(), CAFile: s.real.CAFile(), Token: s.real.AdminToken(), Objects: sc.Objects, Widgets: sc.Objects}, func() {}, nil
}

// ServiceName is the name of the synthetic server as a service of the harness.
const ServiceName = "synth"

func (s *servers) synthetic(ctx context.Context, sc Scenario) (harness.Server, func(), error) {
	dir, err := os.MkdirTemp("", "tattler-bench-")
	if err != nil {
		return harness.Server{}, nil, fmt.Errorf("make folder: %w", err)
	}
	p, err := harness.Start(ctx, harness.Input{
		Job: ServiceName, Server: harness.Server{Objects: sc.Objects, Apps: sc.Apps}, Dir: dir, Seconds: int((6 * time.Hour).Seconds()), Seed: s.o.Seed,
	})
	if err != nil {
		return harness.Server{}, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p.Server, func() {
		if err := errors.Join(p.Stop(), os.RemoveAll(dir)); err != nil {
			fmt.Fprintf(s.o.Out, "bench: %v\n", err)
		}
	}, nil
}

func (s *servers) stop() {
	if s.real == nil {
		return
	}
	if err := s.real.Stop(); err != nil {
		fmt.Fprintf(s.o.Out, "bench: %v\n", err)
	}
	s.real = nil
}
