// Package journal implements "tattler journal": measure, verify, purge, back up and restore the journal.
package journal

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/when"
)

const long = `Measure, verify, purge, back up or restore the journal that tattler run writes:
the one that --journal, --config or $TATTLER_JOURNAL names. By default, this is
the journal of the only running daemon; without one, and always for purge and
restore, it is the journal of the current context. These commands do not contact
the cluster.`

// NewCommand returns the journal command.
func NewCommand(io *terminal.IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Measure, verify, purge or back up the journal",
		Long:  long,
	}
	cmd.AddCommand(newStats(io), newVerify(io), newPurge(io), newBackup(io), newRestore(io))
	return cmd
}

func newStats(io *terminal.IO) *cobra.Command {
	o := &StatsOptions{IO: io}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what the journal contains and how big it is",
		Long:  "Show what the journal contains, since when, and what takes up its space.\ntattler run may keep writing meanwhile. A journal with a million changes takes a\nfew seconds.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return Stats(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.Output, "output", "o", "text", "`format`: text or json")
	o.Past.Add(cmd)
	return cmd
}

func newVerify(io *terminal.IO) *cobra.Command {
	o := &VerifyOptions{IO: io}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read the whole journal and report damage",
		Long: "Read the whole journal, verify every checksum, and report what is damaged and\n" +
			"what to do. tattler run may keep writing meanwhile. The exit code is 1 if there\n" +
			"is damage. Other commands never return damaged data, whether or not you run this\n" +
			"one.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Verify(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.Stories, "stories", false, "also build the stories again from the changes, and compare; this can take minutes")
	o.Past.Add(cmd)
	return cmd
}

func newPurge(io *terminal.IO) *cobra.Command {
	o := &PurgeOptions{IO: io, In: os.Stdin, InTTY: term.IsTerminal(int(os.Stdin.Fd()))}
	cmd := &cobra.Command{
		Use:   "purge --older-rules | --until TIME [--cluster NAME]",
		Short: "Remove changes for good",
		Long: "Remove changes from the journal for good, so that no trace of them is left in\n" +
			"its files. --older-rules removes changes recorded under redaction rules other\n" +
			"than those of the last tattler run: such changes may show values that are now\n" +
			"hidden. --until removes changes seen before a time, of all clusters or of one.\n" +
			"The last states of existing objects stay. tattler run must not be running. The\n" +
			"command cannot reach delivered changes or copies of the journal.\n\nWrite times as " + when.Forms + ".",
		Example: "  tattler journal purge --older-rules\n  tattler journal purge --until 30d --yes\n  tattler journal purge --until 30d --cluster staging",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Purge(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.OlderRules, "older-rules", false, "remove changes recorded under other redaction rules")
	f.StringVar(&o.Until, "until", "", "remove changes seen before this `time`")
	f.StringVar(&o.Cluster, "cluster", "", "only changes of this cluster, by `name`")
	f.BoolVar(&o.Yes, "yes", false, "do not ask for confirmation")
	o.Past.AddOffline(cmd)
	return cmd
}

// number formats a count with commas.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural formats a count and its unit.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// size formats bytes with three digits.
func size(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1024, next
	}
	if unit == "B" || v >= 99.95 {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
}

// at formats a time in the local zone.
func at(t time.Time) string { return when.Moment(t) }

// file returns the journal's path, or an error if it does not exist.
func file(ctx context.Context, f *past.Flags) (string, error) {
	path, err := f.File(ctx)
	if err != nil {
		return "", err
	}
	return path, past.Exists(path)
}
