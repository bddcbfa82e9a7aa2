package cli

import (
	"github.com/spf13/cobra"
)

// usageTemplate is cobra's, shorter and at most 80 columns wide. A command that also runs without a subcommand, which is one
// with a journal, shows its flags too.
const usageTemplate = `{{$does := .LocalFlags.Lookup "journal"}}Usage:
  {{if and .HasAvailableSubCommands (not $does)}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}

Commands:
{{- range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}}  {{.Short}}
{{- end}}{{end}}

` + "`{{.CommandPath}} COMMAND --help` shows more about a command." + `
{{- end}}
{{- if and .HasAvailableLocalFlags (or $does (not .HasAvailableSubCommands))}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}
{{- end}}
`

// newHelp returns the help command. Unlike cobra's, it fails for an unknown command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show help for a command",

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil {
				err = unknownCommand(cmd.Root(), rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
