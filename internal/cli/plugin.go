package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// newPluginCompletion returns `completion kubectl`: kubectl completes the command line of a plugin with a program on
// the PATH that is named after it, see https://kubernetes.io/docs/reference/kubectl/generated/kubectl_plugin/.
func newPluginCompletion(io *terminal.IO, program string) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl",
		Short: "Generate the program that completes `kubectl tattler`",
		Long: `Generate the program that kubectl runs to complete the command line of
"kubectl tattler". Save it as kubectl_complete-tattler in a directory on your
PATH:

	tattler completion kubectl > ~/.local/bin/kubectl_complete-tattler
	chmod +x ~/.local/bin/kubectl_complete-tattler

On Windows, the name is kubectl_complete-tattler.cmd. In PowerShell 5, write the
file with "| Out-File -Encoding ascii FILE" instead of ">".

kubectl's own completion must be set up in your shell; see
"kubectl completion --help". Tattler must be on your PATH as kubectl-tattler.`,
		Args: cobra.NoArgs,

		DisableFlagsInUseLine: true,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(io.Out, pluginCompletion(runtime.GOOS, program))
			return err
		},
	}
}

// pluginCompletion returns the program for an operating system.
func pluginCompletion(system, program string) string {
	if system == "windows" {
		return "@echo off\r\nkubectl-" + program + " __complete %*\r\n"
	}
	return "#!/bin/sh\nexec kubectl-" + program + " __complete \"$@\"\n"
}

// addPluginCompletion adds it to cobra's completion command.
func addPluginCompletion(root *cobra.Command, io *terminal.IO, program string) {
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.AddCommand(newPluginCompletion(io, program))
		}
	}
}
