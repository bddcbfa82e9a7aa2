package browser

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

// cluster is the control plane of the tests that change objects.
var cluster *devcluster.Cluster

// shared starts the control plane before the tests. testscript.Main calls it only in the test's process, not where that
// process acts as the command.
type shared struct{ m *testing.M }

func (s shared) Run() int {
	flag.Parse()
	if *update { // pictures need a journal only
		return browsing(s).Run()
	}
	return clustertest.Main(browsing(s), clustertest.Options{
		Cluster: devcluster.Options{Nodes: 2},
		Begin: func(_ context.Context, c *devcluster.Cluster) error {
			cluster = c
			return nil
		},
	})
}

// browsing ends the browser after the tests.
type browsing struct{ m *testing.M }

func (b browsing) Run() int {
	code := b.m.Run()
	theBrowser.close()
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(shared{m}, map[string]func(){
		"tattler": func() { os.Exit(cli.Main(kinds.Tattler())) },
	})
}
