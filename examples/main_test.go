// Package examples tests the examples as a user runs them: built, against a real control plane, with the rights of
// their manifests and no others.
package examples

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// cluster is the control plane that the tests share; each has a namespace, or names, of its own.
var cluster *devcluster.Cluster

// built is the folder with the programs.
var built string

func TestMain(m *testing.M) {
	if file := os.Getenv(envNATS); file != "" {
		if err := serveNATS(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(tests(m))
}

func tests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "examples")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	return clustertest.Main(m, clustertest.Options{
		Cluster: devcluster.Options{Nodes: 2},
		Begin: func(ctx context.Context, c *devcluster.Cluster) error {
			cluster = c
			return build(ctx, dir)
		},
	})
}

// build builds the programs as users do, without the race detector, which would take most of the time that the tests take.
func build(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./...")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the examples: %w\n%s", err, out)
	}
	return nil
}
