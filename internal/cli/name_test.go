package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// TestAnotherProgram: a program with the same verbs uses its own name, in help, completion and errors.
func TestAnotherProgram(t *testing.T) {
	program := &kinds.Program{Name: "tattler-more", Kinds: kinds.Builtin()}
	run := func(args ...string) (code int, text string) {
		var out bytes.Buffer
		code = execute(t.Context(), append([]string{"tattler-more"}, args...), &terminal.IO{Out: &out, Err: &out, Width: func() int { return 0 }}, program)
		return code, out.String()
	}
	for _, tc := range []struct{ args, want string }{
		{"run --help", "  tattler-more config check -c tattler.yaml"},
		{"run --help", "  tattler-more run deploy,cm -n shop,pay"},
		{"log --help", "from the journal that tattler-more run writes"},
		{"rbac --help", "--serviceaccount shop:tattler"},
		{"version", "tattler-more "},
		{"completion bash", "tattler-more"},
		{"wacth", "tattler-more: unknown command \"wacth\" (did you mean \"watch\"?); `tattler-more help` lists the commands"},
		{"log --journal /nonexistent/journal.db", "tattler-more: there is no journal at /nonexistent/journal.db: start tattler-more run"},
	} {
		if _, text := run(strings.Fields(tc.args)...); !strings.Contains(text, tc.want) {
			t.Errorf("%s: no %q in\n%s", tc.args, tc.want, text)
		}
	}
	root := newRoot("tattler-more", &terminal.IO{}, program)
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, text := range []string{c.Short, c.Long, c.Example, c.Flags().FlagUsages()} {
			if strings.Contains(text, "tattler run") || strings.Contains(text, "tattler watch") {
				t.Errorf("%s names another program:\n%s", c.CommandPath(), text)
			}
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(root)
}
