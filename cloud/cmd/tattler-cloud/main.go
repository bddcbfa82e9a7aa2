// Command tattler-cloud is tattler with the sinks for the buses of cloud providers.
package main

import (
	"os"

	"github.com/tattler-dev/tattler/cloud"
	"github.com/tattler-dev/tattler/internal/cli"
)

func main() { os.Exit(cli.Main(cloud.Program())) }
