// Package integration tests the built command against a real control plane.
package integration

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/internal/cli"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// cluster is the control plane that the scripts share; each script has a namespace of its own.
// Tests that stop servers start their own.
var cluster *devcluster.Cluster

// shared starts what the tests share before they run. testscript.Main calls it in the test's own
// process only, not where that process plays the command.
type shared struct{ m *testing.M }

func (t shared) Run() int {
	return clustertest.Main(t.m, clustertest.Options{
		Cluster: devcluster.Options{Nodes: 2},
		Begin: func(_ context.Context, c *devcluster.Cluster) error {
			cluster = c
			return nil
		},
	})
}

func TestMain(m *testing.M) {
	testscript.Main(shared{m}, map[string]func(){
		"tattler": func() { os.Exit(cli.Main(kinds.Tattler())) },
	})
}
