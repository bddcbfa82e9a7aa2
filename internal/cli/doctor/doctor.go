// Package doctor is the verb that examines everything that tattler run needs: rights, the API server, the journal and its
// disk, sinks and memory. Each check has a deadline, so that a server that does not answer gives a finding, and not a hang.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Options are the verb's flags and arguments.
type Options struct {
	IO     *terminal.IO
	Setup  setup.Flags
	Output string
	// TestSinks sends each sink a message.
	TestSinks bool

	// host is the machine that runs the checks; its zero value is this one.
	host host
}

const long = `Examine everything that tattler run needs, with the same flags or file: rights,
the API server, the journal and its disk, sinks, memory, and the daemon if one
is running. Each finding says what it means and what to do.

The command changes nothing, except that it creates a file beside the journal
and removes that file again. It contacts sinks without sending a message; with
--test-sinks, it sends a test message to each. To examine the rights of a
service account, use --as.

If the configuration has several clusters, the command examines one after the
other, and findings name their cluster. A cluster that does not answer delays
the others by at most a minute. With --cluster, only one is examined, and
estimates of memory and space count the objects of that cluster alone.

The exit code is 1 if there is a warning or an error.`

const examples = `  tattler doctor
  tattler doctor -c tattler.yaml --as system:serviceaccount:tattler:tattler
  tattler doctor deploy,cm -n shop --to https://example.com/hook --test-sinks
  tattler doctor -c tattler.yaml --cluster prod-eu
  tattler doctor -o json | jq '.findings[] | select(.level == "error")'`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO, program *kinds.Program) *cobra.Command {
	o := &Options{IO: io, Setup: setup.Flags{Program: program}}
	cmd := &cobra.Command{
		Use:     "doctor [TYPE[,TYPE...] [NAME...] | TYPE/NAME...]",
		Short:   "Examine what tattler run needs: rights, disk, sinks",
		Long:    long,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Setup.Types = args
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.Output, "output", "o", "text", "`format`: text or json")
	complete.Words(cmd, "output", "text", "json")
	f.BoolVar(&o.TestSinks, "test-sinks", false, "send each sink a test message")
	o.Setup.AddCluster(cmd)
	o.Setup.Add(cmd)
	return cmd
}

// ErrFindings means that something is wrong; the findings say what.
var ErrFindings = errors.New("something is wrong: see the findings")

// Run examines, and prints the findings. It fails if something is wrong.
func Run(ctx context.Context, o *Options) error {
	if o.Output != "text" && o.Output != "json" {
		return usage.Errorf("unknown output %q: use text or json", o.Output)
	}
	s, err := o.Setup.Load()
	if err != nil {
		return err
	}
	parts, err := o.Setup.Parts(s)
	if err != nil {
		return err
	}
	x := begin(o, s, parts)
	x.all(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the examination was interrupted: %w", err)
	}
	return x.print()
}

// print prints the findings. It fails if something is wrong.
func (x *examination) print() (err error) {
	o := x.o
	if o.Output == "json" {
		err = render.WriteJSON(o.IO.Out, Report{Findings: x.findings, Summary: summary(x.findings)})
	} else {
		err = write(o.IO, x.findings)
	}
	if n := summary(x.findings); err == nil && n[Warning]+n[Error] > 0 {
		err = ErrFindings
	}
	return err
}

// Deadlines of the checks.
const (
	// clusterTimeout bounds all checks of one of several clusters.
	clusterTimeout = time.Minute
	reachTimeout   = 10 * time.Second
	featureTimeout = 10 * time.Second
	rightsTimeout  = 20 * time.Second
	countTimeout   = 20 * time.Second
	historyTimeout = 15 * time.Second
	journalTimeout = 10 * time.Second
	sinkTimeout    = 10 * time.Second
	daemonTimeout  = 5 * time.Second
)

// examination collects findings. One goroutine runs the checks, in order.
type examination struct {
	o     *Options
	setup *setup.Setup // of all clusters
	parts []setup.Part
	host  host

	// What earlier checks found out, for later ones.
	journal string          // its path; empty if unknown
	objects int64           // counted objects of all clusters; -1 if unknown
	status  *control.Status // of the running daemon; nil if none runs

	findings []Finding
}

// begin returns an examination that has not found anything.
func begin(o *Options, s *setup.Setup, parts []setup.Part) *examination {
	if len(parts) == 1 {
		s = parts[0].Setup
	}
	return &examination{o: o, setup: s, parts: parts, host: o.host.orThis()}
}

func (x *examination) add(section Section, check string, level Level, title, meaning, action string) {
	x.of("", section, check, level, title, meaning, action)
}

// of adds a finding about one of several clusters.
func (x *examination) of(cluster string, section Section, check string, level Level, title, meaning, action string) {
	x.findings = append(x.findings, finding(cluster, section, check, level, title, meaning, action))
}

// all runs the checks.
func (x *examination) all(ctx context.Context) {
	x.configuration()
	x.askDaemon(ctx)
	x.clusters(ctx)
	x.journalFile(ctx)
	x.sinks(ctx)
	x.traces(ctx)
	x.memory()
	x.daemon()
	x.sort()
}
