// Package version is the verb that prints the version.
package version

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/buildinfo"
	"github.com/tattler-dev/tattler/internal/cli/complete"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/usage"
)

const text = "text"

// build is what the program is, as JSON.
type build struct {
	Program  string `json:"program"`
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"` // of a release
	Time     string `json:"time,omitempty"`   // the commit's, in RFC 3339
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version [-o json]",
		Short: "Print the version",
		Long:  "Print the version of the program, its commit if it is a release, the version of\nGo that built it, and its platform.",
		Args:  cobra.NoArgs,

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build{Program: cmd.Root().Name(), Version: buildinfo.Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			b.Commit, b.Time = buildinfo.Commit()
			switch output {
			case text:
				_, err := fmt.Fprintln(io.Out, b)
				return err
			case "json":
				return json.NewEncoder(io.Out).Encode(b)
			}
			return usage.Errorf("unknown output %q: use text or json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", text, "`format`: text or json")
	complete.Words(cmd, "output", text, "json")
	return cmd
}

// String is the line for people: tattler v1.2.3 (commit 0123456789ab, 2026-11-24) go1.26.8 linux/amd64.
func (b build) String() string {
	line := b.Program + " " + b.Version
	if b.Commit != "" {
		day, _, _ := strings.Cut(b.Time, "T")
		line += fmt.Sprintf(" (commit %.12s, %s)", b.Commit, day)
	}
	return line + " " + b.Go + " " + b.Platform
}
