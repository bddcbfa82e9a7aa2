package chart

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

const repository = "../.."

var (
	update  = flag.Bool("update", false, "rewrite the golden files and what the chart copies")
	cluster *devcluster.Cluster
)

func TestMain(m *testing.M) {
	if os.Getenv(podEnv) != "" {
		os.Exit(becomePod())
	}
	code := clustertest.Main(m, clustertest.Options{
		Cluster: devcluster.Options{Nodes: 1},
		Begin: func(_ context.Context, c *devcluster.Cluster) error {
			cluster = c
			return nil
		},
	})
	for _, file := range built.paths {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// golden compares a text with a file of testdata, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(read(t, file)) != text {
		t.Errorf("%s differs (-update writes it):\n%s", file, text)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
