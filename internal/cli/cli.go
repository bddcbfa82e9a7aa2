// Package cli is the command line: its verbs, exit codes and signals.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/cli/version"
	"github.com/tattler-dev/tattler/internal/cli/watch"
)

// Exit codes: done (also by SIGINT and SIGTERM), failed, wrong usage.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// Main runs the command line of the process and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	// Without this, writing to a closed pipe would kill the process before it could end its work.
	signal.Ignore(syscall.SIGPIPE)
	return run(ctx, os.Args, terminal.System())
}

func run(ctx context.Context, args []string, io *terminal.IO) int {
	root := newRoot(filepath.Base(args[0]), io)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	var usage *capture.UsageError
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return exitDone
	case errors.As(err, &usage):
		fmt.Fprintf(io.Err, "tattler: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(io.Err, "tattler: %s\n", oneLine(err))
	return exitFailed
}

// oneLine keeps an error to a line: some of the server's span several.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

func newRoot(binary string, io *terminal.IO) *cobra.Command {
	use := "tattler"
	if strings.HasPrefix(binary, "kubectl-") {
		use = "kubectl tattler"
	}
	root := &cobra.Command{
		Use:           "tattler",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: use},
		Short:         "Tell what changed in a Kubernetes cluster",
		Long:          "Tattler tells what changed in a Kubernetes cluster: every change, once, with its diff\nand which manager wrote it.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &capture.UsageError{Text: fmt.Sprintf("unknown command %q; `tattler help` lists the commands", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &capture.UsageError{Text: fmt.Sprintf("%v; see `%s --help`", err, cmd.CommandPath())}
	})
	root.AddCommand(watch.NewCommand(io), version.NewCommand(io))
	return root
}
