package config

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/rights"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// Check are the flags and arguments of `config check`.
type Check struct {
	IO      *terminal.IO
	Setup   setup.Flags
	Offline bool
}

const checkLong = `Show what tattler run would do with the same flags or file: which objects it
would watch and how many, which rights are missing, and what each sink would
get. Nothing is recorded or sent, and no file is created.

The check fails if tattler run would not start, or would not be allowed to watch
anything. Any other problem is a warning.

With --offline, the file may be for another machine: the keys, certificates,
credentials and environment variables that it names are not read, and what they
contain is not checked.`

const checkExamples = `  tattler config check -c tattler.yaml
  tattler config check -c tattler.yaml --as system:serviceaccount:shop:tattler
  tattler config check deploy,cm -n shop
  tattler config check -c tattler.yaml --offline`

func newCheck(io *terminal.IO, program *kinds.Program) *cobra.Command {
	o := &Check{IO: io, Setup: setup.Flags{Program: program}}
	cmd := &cobra.Command{
		Use:     "check [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Show what tattler run would do",
		Long:    checkLong,
		Example: checkExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Setup.Types = args
			return o.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.Offline, "offline", false, "check the file alone: ask no cluster, and open no other file")
	o.Setup.AddCluster(cmd)
	o.Setup.Add(cmd)
	return cmd
}

// checkTimeout bounds all questions together.
const checkTimeout = 2 * time.Minute

// Run checks, and writes what it found.
func (o *Check) Run(ctx context.Context) error {
	o.Setup.Alone = o.Offline
	s, err := o.Setup.Load()
	if err != nil {
		return err
	}
	if o.Offline {
		r := &report{w: o.IO.Out, setup: s, alone: true}
		r.offline()
		return r.end()
	}
	s, cluster, err := o.Setup.Only(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	plan, err := s.Plan(ctx, cluster)
	if err != nil {
		return err
	}
	counter, err := setup.NewCounter(cluster.Config)
	if err != nil {
		return fmt.Errorf("context %q of the kubeconfig: %w", cluster.Name, err)
	}
	reviewer, err := rights.NewReviewer(cluster.Config)
	if err != nil {
		return fmt.Errorf("context %q of the kubeconfig: %w", cluster.Name, err)
	}
	found := (&survey{web: setup.WebRights(s.Web), reviewer: reviewer, counter: counter}).of(ctx, plan)
	if err := ctx.Err(); err != nil {
		return cluster.Explain(fmt.Errorf("ask the server: %w", err))
	}
	r := &report{w: o.IO.Out, setup: s}
	r.cluster(ctx, cluster, plan, found)
	return r.end()
}
