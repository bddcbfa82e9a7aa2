// Package complete says how a shell completes the values of flags. What is not said here has no completion:
// names of objects are no files.
package complete

import "github.com/spf13/cobra"

// Files has flags of a command, which are declared, complete to files.
func Files(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		register(cmd, flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		})
	}
}

// Words has a flag of a command, which is declared, complete to some words.
func Words(cmd *cobra.Command, flag string, words ...cobra.Completion) {
	register(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is not declared, or this is said twice
	}
}
