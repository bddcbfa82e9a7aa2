// Command tattler tells what changed in a Kubernetes cluster.
package main

import (
	"os"

	"github.com/tattler-dev/tattler/internal/cli"
)

func main() { os.Exit(cli.Main()) }
