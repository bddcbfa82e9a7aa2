// Package version is the verb that says which tattler this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
)

// stamped is set by the linker in builds from a checkout; `go install …@version` needs none.
var stamped string

// String is the version: the stamped one, or the module's.
func String() string {
	if stamped != "" {
		return stamped
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(io.Out, "tattler %s %s %s/%s\n", String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
