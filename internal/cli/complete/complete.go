// Package complete declares how a shell completes the values of flags. Other flags have no completion: names of objects
// are not files.
package complete

import "github.com/spf13/cobra"

// Files makes declared flags of a command complete to files.
func Files(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		register(cmd, flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		})
	}
}

// Words makes a declared flag of a command complete to the given words.
func Words(cmd *cobra.Command, flag string, words ...cobra.Completion) {
	register(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func register(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is not declared, or has a completion already
	}
}
