// Package cli is the command line: its verbs, exit codes and signals.
//
// Each verb is a package below this one, such as log or watch; newRoot lists them. The others are shared by verbs: past
// opens the journal, kube finds the cluster, setup reads a configuration, scope the selecting flags and when times;
// report and terminal write, and complete helps shells.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/tattler-dev/tattler/internal/cli/blame"
	"github.com/tattler-dev/tattler/internal/cli/config"
	"github.com/tattler-dev/tattler/internal/cli/diff"
	"github.com/tattler-dev/tattler/internal/cli/doctor"
	"github.com/tattler-dev/tattler/internal/cli/get"
	"github.com/tattler-dev/tattler/internal/cli/journal"
	logverb "github.com/tattler-dev/tattler/internal/cli/log"
	"github.com/tattler-dev/tattler/internal/cli/rbac"
	"github.com/tattler-dev/tattler/internal/cli/run"
	"github.com/tattler-dev/tattler/internal/cli/show"
	"github.com/tattler-dev/tattler/internal/cli/sinks"
	statusverb "github.com/tattler-dev/tattler/internal/cli/status"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/cli/ui"
	"github.com/tattler-dev/tattler/internal/cli/version"
	"github.com/tattler-dev/tattler/internal/cli/watch"
	fileconfig "github.com/tattler-dev/tattler/internal/config"
	journaldb "github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/spell"
	"github.com/tattler-dev/tattler/internal/usage"
)

// Exit codes: done (also by SIGINT and SIGTERM), failed, wrong usage.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// Main runs the process's command line for a program, and returns its exit code.
func Main(program *kinds.Program) int {
	// net/http and client-go also return what they log; stderr is ours.
	log.SetOutput(io.Discard)
	klog.SetLogger(klog.Logger{})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	// Without this, writing to a closed pipe would kill the process before it could end its work.
	// Unlike an ignored signal, this is not inherited by credential plugins.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return execute(ctx, os.Args, terminal.System(), program)
}

// execute runs one command line.
func execute(ctx context.Context, args []string, io *terminal.IO, program *kinds.Program) int {
	root := newRoot(filepath.Base(args[0]), io, program)
	root.SetArgs(args[1:])
	understood := false
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }

	cmd, err := root.ExecuteContextC(ctx)
	named := programName(root)
	var wrong *usage.Error
	var file *fileconfig.Error
	failed := exitFailed
	if cmd != nil && cmd.Name() == "diff" {
		failed = exitUsage // as kubectl diff: 1 says that something differs
	}
	switch {
	case err == nil, brokenPipe(err):
		return exitDone
	case errors.Is(err, diff.ErrDiffers), // as kubectl diff
		errors.Is(err, doctor.ErrFindings): // which were printed
		return exitFailed
	case errors.As(err, &wrong):
		fmt.Fprintf(io.Err, "%s: %s\n", program.Name, named(ours(err.Error())))
		return exitUsage
	case !understood: // cobra's own errors have no type
		fmt.Fprintf(io.Err, "%s: %s; see `%s --help`\n", program.Name, terminal.Line(plainError(cmd, err)), cmd.CommandPath())
		return exitUsage
	case errors.As(err, &file):
		fmt.Fprintf(io.Err, "%s: %s\n", program.Name, named(ours(err.Error())))
		return failed
	}
	fmt.Fprintf(io.Err, "%s: %s\n", program.Name, named(terminal.Line(err.Error())+hint(err)))
	return failed
}

// hint returns advice for an error that any verb may have.
func hint(err error) string {
	var damage *journaldb.DamagedError
	if errors.As(err, &damage) {
		return "; tattler journal verify names all that is damaged"
	}
	return ""
}

// ours makes a text of ours safe for the terminal. It may have several lines, for example to point into an expression.
func ours(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = terminal.Line(line)
	}
	return strings.Join(lines, "\n")
}

// brokenPipe reports whether the reader of our output has closed it, which is not a failure. On a connection to a server,
// the same error number is one.
func brokenPipe(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && errors.Is(file, syscall.EPIPE)
}

func newRoot(binary string, io *terminal.IO, program *kinds.Program) *cobra.Command {
	name := program.Name
	if strings.HasPrefix(binary, "kubectl-") {
		name = "kubectl " + strings.ReplaceAll(name, "-", " ") // https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/
	}
	root := &cobra.Command{
		Use:           program.Name,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:         "Show what changed in a Kubernetes cluster",
		Long:          "Tattler shows what changed in a Kubernetes cluster: every change, once, with its\ndiff and the field manager that wrote it.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetUsageTemplate(usageTemplate)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.AddCommand(watch.NewCommand(io), run.NewCommand(io, program), logverb.NewCommand(io), show.NewCommand(io),
		diff.NewCommand(io), get.NewCommand(io), blame.NewCommand(io),
		statusverb.NewCommand(io), doctor.NewCommand(io, program), ui.NewCommand(io), sinks.NewCommand(io),
		journal.NewCommand(io), config.NewCommand(io, program), rbac.NewCommand(io, program), version.NewCommand(io))
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	addPluginCompletion(root, io, program.Name)
	rename(root, programName(root))
	for _, c := range root.Commands() {
		if !c.Runnable() { // cobra would print the help for an unknown subcommand
			c.Args, c.RunE = cobra.NoArgs, root.RunE
		}
	}
	return root
}

// unknownCommand returns the error for an unknown command; nil if there are no words.
func unknownCommand(cmd *cobra.Command, words []string) error {
	if len(words) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", words[0])
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := spell.Nearest(words[0], names); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return usage.Errorf("%s; `%s help` lists the commands", text, cmd.CommandPath())
}
