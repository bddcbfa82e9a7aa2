// Package integration tests the built command against a real control plane.
package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tattler-dev/tattler/devcluster"
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
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // cold, it is built first
	defer cancel()
	var err error
	cluster, err = devcluster.Start(ctx, devcluster.Options{Nodes: 2, Out: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	code := t.m.Run()
	if err := cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(shared{m}, map[string]func(){
		"tattler": func() { os.Exit(cli.Main(kinds.Tattler())) },
	})
}
