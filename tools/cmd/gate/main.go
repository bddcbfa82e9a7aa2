// Command gate runs steps of `make test` in the repository's root.
//
//	gate GROUP…
//
// The groups are lint, cross, unit and integration.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tattler-dev/tattler/tools/gate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate: FAILED:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	var steps []gate.Step
	for _, name := range names {
		group := groups[name]
		if group == nil {
			return fmt.Errorf("unknown group of steps %q", name)
		}
		steps = append(steps, group...)
	}
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	return gate.Run(ctx, gate.Options{
		Root:      root,
		Gotestsum: filepath.Join(root, "bin", "gotestsum"),
		Reports:   filepath.Join(root, "bin", "test"),
		Out:       os.Stdout,
	}, steps)
}
