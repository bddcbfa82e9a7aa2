// Command tattler shows what changed in a Kubernetes cluster.
package main

import (
	"os"

	"github.com/tattler-dev/tattler/internal/cli"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

func main() { os.Exit(cli.Main(kinds.Tattler())) }
