package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// named returns what makes a text say the program's own name where it tells people to run tattler with one
// of its commands: another program may be built of the same verbs. Names of files and accounts stay.
func named(root *cobra.Command) func(text string) string {
	if root.Name() == "tattler" {
		return func(text string) string { return text }
	}
	var verbs []string
	for _, c := range root.Commands() {
		verbs = append(verbs, regexp.QuoteMeta(c.Name()))
	}
	command := regexp.MustCompile(`\btattler(\s+(?:` + strings.Join(verbs, "|") + `)\b)`)
	return func(text string) string { return command.ReplaceAllString(text, root.Name()+"$1") }
}

// rename has the help of a command, and of those below it, say so.
func rename(c *cobra.Command, named func(text string) string) {
	c.Short, c.Long, c.Example = named(c.Short), named(c.Long), named(c.Example)
	flag := func(f *pflag.Flag) { f.Usage = named(f.Usage) }
	c.Flags().VisitAll(flag)
	c.PersistentFlags().VisitAll(flag)
	for _, below := range c.Commands() {
		rename(below, named)
	}
}
