package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// programName returns a function that replaces tattler by the program's name where a text mentions one of its commands:
// other programs, such as tattler-cloud, have the same verbs. Names of files and accounts stay.
func programName(root *cobra.Command) func(text string) string {
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

// rename applies the replacement to the help of a command and of its subcommands.
func rename(c *cobra.Command, named func(text string) string) {
	c.Short, c.Long, c.Example = named(c.Short), named(c.Long), named(c.Example)
	flag := func(f *pflag.Flag) { f.Usage = named(f.Usage) }
	c.Flags().VisitAll(flag)
	c.PersistentFlags().VisitAll(flag)
	for _, below := range c.Commands() {
		rename(below, named)
	}
}
