// Command bench measures Tattler's informers beside client-go's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/tattler-dev/tattler/bench/controllers"
	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/operator"
	"github.com/tattler-dev/tattler/bench/ours"
	"github.com/tattler-dev/tattler/bench/peer"
	"github.com/tattler-dev/tattler/bench/recorder"
	"github.com/tattler-dev/tattler/bench/sinks"
	"github.com/tattler-dev/tattler/bench/stages"
	"github.com/tattler-dev/tattler/bench/suite"
	"github.com/tattler-dev/tattler/bench/synth"
)

func main() {
	begin()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// begin does the work of a child process. It returns if this process is not a child.
func begin() {
	harness.Main(jobs(), []harness.Service{{Name: suite.ServiceName, Run: serve}})
}

// jobs returns all measurements.
func jobs() []harness.Job {
	return slices.Concat(ours.Jobs(), peer.Jobs(), operator.Jobs(), controllers.Jobs(), recorder.Jobs(), stages.Jobs(), sinks.Jobs())
}

// unprepared is the number of objects up to which the server starts without seconds of preparation.
const unprepared = 1000

// serve runs the synthetic server in its process.
func serve(ctx context.Context, in harness.Input, ready func(harness.Server)) error {
	g := gen.New(in.Seed)
	if in.Server.Apps > 0 {
		g = gen.NewApps(in.Seed, in.Server.Apps)
	}
	s := synth.NewServer(g, in.Server.Objects)
	if in.Server.Objects > unprepared { // runs with fewer objects only check that everything works
		s.Prepare()
	}
	return s.Listen(ctx, in.Dir, func(a synth.Address) {
		ready(harness.Server{URL: a.URL, CAFile: a.CAFile, Control: a.Control, Objects: in.Server.Objects})
	})
}

func run(args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var (
		which  = flags.String("run", "", "run the scenarios whose names match this `regexp`")
		n      = flags.Int("n", 20_000, "`number` of objects where a scenario does not say otherwise")
		rounds = flags.Int("rounds", 5, "`number` of rounds; the results are medians")
		quick  = flags.Bool("quick", false, "check that everything works: few objects, few events, one round")
		seed   = flags.Uint64("seed", 1, "`seed` of the generated objects")
		out    = flags.String("out", "out/latest.jsonl", "`file` for the rows; with -run or -quick it is written only if -out is given")
		cpu    = flags.String("profiles", "", "`folder` for a CPU profile of every job; profiling distorts the numbers a little")
		list   = flags.Bool("list", false, "list the scenarios")
	)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 || *n <= 0 || *rounds <= 0 {
		return errors.New("invalid usage: numbers must be positive, and only flags are allowed")
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if *quick && !given["n"] {
		*n = 1000
	}
	if *quick && !given["rounds"] {
		*rounds = 1
	}
	scenarios := suite.Scenarios(suite.Size{Objects: *n, Quick: *quick})
	if *list {
		for _, s := range scenarios {
			fmt.Println(s.Name)
		}
		return nil
	}
	o := suite.Options{Rounds: *rounds, Seed: *seed, Out: os.Stderr, PeerVersion: peer.Version()}
	if *cpu != "" {
		var err error
		if o.Profiles, err = filepath.Abs(*cpu); err == nil {
			err = os.MkdirAll(o.Profiles, 0o755)
		}
		if err != nil {
			return fmt.Errorf("make folder for profiles: %w", err)
		}
	}
	if *which != "" {
		var err error
		if o.Select, err = regexp.Compile(*which); err != nil {
			return fmt.Errorf("read -run: %w", err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	rows, err := suite.Run(ctx, scenarios, o)
	err = errors.Join(err, suite.Print(os.Stdout, rows))
	if given["out"] || *which == "" && !*quick && ctx.Err() == nil {
		err = errors.Join(err, suite.Write(*out, rows))
	}
	return err
}
