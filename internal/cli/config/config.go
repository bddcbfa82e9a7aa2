// Package config is the verb that creates, checks, explains and imports a configuration.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
	"github.com/tattler-dev/tattler/internal/usage"
)

// NewCommand returns the verb.
func NewCommand(io *terminal.IO, program *kinds.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Create, check, explain or import a configuration",
		Long:  "Create, check, explain or import a configuration of tattler run.",
		Args:  cobra.NoArgs, // a word that is no command
	}
	cmd.AddCommand(newCheck(io, program), newInit(io), newImport(io), newExplain(io))
	return cmd
}

func newInit(io *terminal.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a sample configuration",
		Long: `Write a sample configuration to stdout or to a new file.

Most keys are commented out, for you to enable. An existing file is left alone.`,
		Example: `  tattler config init tattler.yaml`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprint(io.Out, config.Example())
				return err
			}
			return initialize(args[0])
		},
	}
}

// initialize writes a new file, which is the owner's alone: credentials may come into it.
func initialize(path string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and was left alone: give another FILE, or none to write to stdout", path)
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteString(config.Example()); err != nil {
		return errors.Join(fmt.Errorf("write configuration: %w", err), os.Remove(path))
	}
	return nil
}

func newExplain(io *terminal.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a key and the keys below it",
		Long: `Explain a key, and list the keys below it. Without KEY, list the top-level keys.

docs/config.md lists all keys.`,
		Example: `  tattler config explain sinks
  tattler config explain journal.retain.age`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key := ""
			if len(args) > 0 {
				key = args[0]
			}
			text, err := config.Explain(key)
			if err != nil {
				return usage.Errorf("%v", err)
			}
			_, err = fmt.Fprint(io.Out, text)
			return err
		},
	}
}
