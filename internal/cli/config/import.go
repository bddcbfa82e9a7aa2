package config

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/migrate"
	"github.com/tattler-dev/tattler/internal/usage"
)

const importLong = `Convert the configuration of another watcher to one for Tattler, and write it to
stdout.

TOOL is kubewatch or kubediff. FILE is the tool's configuration file
(.kubewatch.yaml or config.yaml), or a manifest with a ConfigMap that contains
it; - is stdin. Credentials are not copied: the result refers to environment
variables. stderr lists the variables to set, and the settings that have no
counterpart.`

func newImport(io *terminal.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "import TOOL FILE",
		Short: "Convert a configuration of kubewatch or kubediff",
		Long:  importLong,
		Example: `  tattler config import kubewatch .kubewatch.yaml > tattler.yaml
  kubectl get cm kubewatch -o yaml | tattler config import kubewatch -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf("want TOOL and FILE, such as `%s kubewatch .kubewatch.yaml`", cmd.CommandPath())
			}
			return importFile(io, cmd.InOrStdin(), args[0], args[1])
		},
	}
}

// maxImport bounds what is read, in bytes.
const maxImport = 1 << 20

func importFile(to *terminal.IO, stdin io.Reader, tool, path string) error {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("import from %s: %w", tool, err)
		}
		defer f.Close()
		stdin = f
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxImport+1))
	if err == nil && len(text) > maxImport {
		err = fmt.Errorf("%s has more than 1 MiB: this is no configuration", path)
	}
	if err != nil {
		return fmt.Errorf("import from %s: %w", tool, err)
	}
	r, err := migrate.File(tool, text)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(to.Out, r.YAML); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintln(to.Err, strings.Join(strings.Fields(note), " "))
	}
	return nil
}
