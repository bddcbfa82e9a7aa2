// Package version is the verb that prints the version.
package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(io.Out, "%s %s %s %s/%s\n", cmd.Root().Name(), buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
