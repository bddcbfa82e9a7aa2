// Package integration tests the built command against a real control plane.
package integration

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
	"github.com/tattler-dev/tattler/internal/cli"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// cluster is the control plane shared by the scripts; each script has its own namespace. Tests that stop
// servers start their own control plane.
var cluster *devcluster.Cluster

// shared starts the shared cluster before the tests. testscript.Main calls it only in the test's process, not
// where that process acts as the command.
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

// parallel is how many of the parallel tests run at once: they mostly wait.
const parallel = "4"

func TestMain(m *testing.M) {
	if f := flag.Lookup("test.parallel"); f != nil && f.DefValue == f.Value.String() {
		if err := f.Value.Set(parallel); err != nil {
			panic(err)
		}
	}
	testscript.Main(shared{m}, map[string]func(){
		"tattler": func() { os.Exit(cli.Main(kinds.Tattler())) },
	})
}
