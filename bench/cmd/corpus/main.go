// Command corpus records the objects that package gen multiplies, gen/corpus/corpus.json.gz, from a real control plane:
//
//	go run -C bench ./cmd/corpus
//
// It applies gen/corpus/manifests with kubectl, lets the real controllers and the real scheduler create and bind the
// pods, and reports nodes and pods as kubelets do, because no container runs. Each workload gets a pod in each state:
// running, restarted, not ready, crashing, and for a Job succeeded. The API server writes defaults and managedFields.
// A recording takes about a minute; the programs of the control plane are built at first, which takes ten.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/devcluster"
)

func main() {
	dir := flag.String("dir", filepath.Join("gen", "corpus"), "`folder` with manifests; the recording goes to corpus.json.gz in it")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *dir)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Minute, errors.New("not recorded after 30 minutes"))
	defer cancel()
	started, err := devcluster.Start(ctx, devcluster.Options{Controllers: true, Out: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, started.Stop()) }()
	cfg, err := clientcmd.BuildConfigFromFlags("", started.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	r, err := newRecorder(started, cfg, filepath.Join(dir, "manifests"))
	if err != nil {
		return err
	}
	corpus, err := r.record(ctx)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "corpus.json.gz"), corpus)
}

// write writes the corpus. Equal objects make equal files.
func write(path string, c *gen.Corpus) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode corpus: %w", err)
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(text)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("compress corpus: %w", err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write corpus: %w", err)
	}
	fmt.Fprintf(os.Stderr, "corpus: %d workloads, %d bytes, %d compressed\n", len(c.Workloads), len(text), b.Len())
	return nil
}
