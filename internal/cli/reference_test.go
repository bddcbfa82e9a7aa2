package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

const referenceHead = `# Commands and flags

<!-- Generated from the commands: go test ./internal/cli -update -->

Every command and flag of tattler except ` + "`completion`" + ` (see [install.md](install.md#completion)), as
` + "`tattler COMMAND --help`" + ` prints them. tattler-cloud has the same commands, and more sinks.

Exit codes: 0 for success, or after Ctrl-C; 1 for a failure; 2 for wrong usage. ` + "`tattler diff` and `tattler doctor`" + `
use these codes differently, as described below.

`

// TestReference compares docs/cli.md with the commands.
func TestReference(t *testing.T) {
	root := newRoot("tattler", terminal.System(), kinds.Tattler())
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("| command | |\n|---|---|\n")
	contents(&b, root)
	reference(&b, root)

	const file = "../../docs/cli.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is stale: run go test ./internal/cli -update", file)
	}
}

// listed reports whether the reference describes a command. The completion scripts are cobra's.
func listed(c *cobra.Command) bool {
	return c.IsAvailableCommand() && c.Name() != "completion" && c.Name() != "help"
}

func contents(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if listed(sub) {
			path := sub.CommandPath()
			fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), sub.Short)
			contents(b, sub)
		}
	}
}

func reference(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if !listed(sub) {
			continue
		}
		about := sub.Long
		if about == "" {
			about = sub.Short
		}
		fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n\n```text\n%s\n```\n", sub.CommandPath(), strings.TrimSpace(about), sub.UseLine())
		if sub.HasExample() {
			fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.TrimRight(sub.Example, "\n"))
		}
		var rows strings.Builder
		sub.InitDefaultHelpFlag()
		flag := func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				rows.WriteString(row(f))
			}
		}
		sub.LocalFlags().VisitAll(flag)
		sub.InheritedFlags().VisitAll(flag)
		if rows.Len() > 0 {
			b.WriteString("\n| flag | |\n|---|---|\n" + rows.String())
		}
		reference(b, sub)
	}
}

// row describes one flag. A default that is empty, zero or false is not mentioned.
func row(f *pflag.Flag) string {
	name := "`--" + f.Name
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		name += " " + value
	} else if f.Value.Type() == "" {
		name += "[=" + f.NoOptDefVal + "]" // the value is optional
	}
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
	default:
		usage += fmt.Sprintf(" (default `%s`)", f.DefValue)
	}
	escape := strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace
	return "| " + name + "` | " + escape(strings.Join(strings.Fields(usage), " ")) + " |\n"
}
