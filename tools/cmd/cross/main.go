// Command cross checks that all packages and tests of the module in the working directory compile for other systems.
//
//	cross GOOS…
//
// It reads the types of all dependencies from their source, and generates no code: that takes a fraction of the time that
// `go vet` or `go build` need to compile the dependencies first.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/tools/go/packages"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stderr, ".", os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cross:", err)
		os.Exit(1)
	}
}

// run checks the module in a directory for each system, and prints what does not compile.
func run(ctx context.Context, out io.Writer, dir string, systems []string) error {
	var broken []string
	for _, system := range systems {
		fmt.Fprintln(out, "cross:", system)
		problems, err := check(ctx, dir, system)
		if err != nil {
			return fmt.Errorf("load the packages for %s: %w", system, err)
		}
		for _, p := range problems {
			fmt.Fprintln(out, p)
		}
		if len(problems) > 0 {
			broken = append(broken, system)
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("not everything compiles for %s", strings.Join(broken, ", "))
	}
	return nil
}

// check returns what does not compile, sorted.
func check(ctx context.Context, dir, system string) ([]string, error) {
	all, err := packages.Load(&packages.Config{
		Context: ctx, Mode: packages.LoadAllSyntax, Tests: true, Dir: dir, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	problems := map[string]bool{} // a package and its test variant have the same
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			problems[e.Error()] = true
		}
	})
	return slices.Sorted(maps.Keys(problems)), nil
}
