// Command compare puts Tattler and an OpenTelemetry Collector with the k8sobjects receiver through the same minutes on a real
// API server, several times, and prints a table of medians. See docs/comparison.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tattler-dev/tattler/bench/compare"
)

func main() {
	tattler := flag.String("tattler", "", "path of tattler")
	collector := flag.String("collector", "", "path of the collector")
	runs := flag.Int("runs", 3, "how many runs")
	keep := flag.String("keep", "", "keep the peers' logs and data in this new folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *tattler, *collector, *runs, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, tattler, collector string, runs int, keep string) (err error) {
	if tattler == "" || collector == "" || runs < 1 || flag.NArg() > 0 {
		return errors.New("usage: compare -tattler FILE -collector FILE [-runs N] [-keep FOLDER]")
	}
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "compare"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	ours, err := compare.Tattler(ctx, tattler)
	if err != nil {
		return err
	}
	peer, err := compare.Collector(ctx, collector)
	if err != nil {
		return err
	}
	peers := []compare.Peer{ours, peer}
	var all [][]compare.Result
	for i := range runs {
		if i%2 == 1 { // who starts first alternates
			peers[0], peers[1] = peers[1], peers[0]
		}
		fmt.Fprintf(os.Stderr, "compare: run %d of %d\n", i+1, runs)
		results, err := compare.Run(ctx, compare.Standard, peers, uint64(i+1), filepath.Join(dir, fmt.Sprint("run-", i+1)), os.Stderr)
		if err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
		all = append(all, results)
		compare.Explain(os.Stderr, results)
	}
	return compare.Table(os.Stdout, all)
}
