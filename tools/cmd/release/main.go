// Command release makes the files of a release in dist/.
//
//	release [-out DIR] [-version V] [-platforms OS/ARCH,…] [-programs NAME,…] [-url URL] [-dirty] [-replace] [-twice]
//
// With -twice, it makes the release a second time, elsewhere and with an empty build cache, and fails if a byte differs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tattler-dev/tattler/tools/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log io.Writer) error {
	o := release.Options{Log: log}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.Repository, "repository", "..", "the root of the work tree")
	flags.StringVar(&o.Out, "out", "../dist", "the directory to write")
	flags.StringVar(&o.Version, "version", "", "the version (default: from the tag of the commit)")
	flags.StringVar(&o.URL, "url", "", "where the archives will be, for krew (default: the release on GitHub)")
	flags.BoolVar(&o.Dirty, "dirty", false, "release uncommitted changes, too")
	flags.BoolVar(&o.Replace, "replace", false, "replace an earlier release in the directory")
	platforms := flags.String("platforms", "", "comma-separated OS/ARCH (default: all six)")
	programs := flags.String("programs", "", "comma-separated programs (default: both)")
	twice := flags.Bool("twice", false, "make it twice and compare the bytes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *programs != "" {
		o.Programs = strings.Split(*programs, ",")
	}
	if *platforms != "" {
		for _, name := range strings.Split(*platforms, ",") {
			system, arch, found := strings.Cut(name, "/")
			if !found {
				return fmt.Errorf("platform %q: write it as linux/amd64", name)
			}
			o.Platforms = append(o.Platforms, release.Platform{OS: system, Arch: arch})
		}
	}
	var err error
	if o.Repository, err = filepath.Abs(o.Repository); err != nil {
		return fmt.Errorf("find the work tree: %w", err)
	}
	if o.Out, err = filepath.Abs(o.Out); err != nil {
		return fmt.Errorf("find the directory of the release: %w", err)
	}
	if err := release.Run(ctx, o); err != nil {
		return err
	}
	if *twice {
		return again(ctx, o)
	}
	return nil
}

// again makes a release with nothing in common with the first one but the source, and compares them.
func again(ctx context.Context, o release.Options) (err error) {
	dir, err := os.MkdirTemp("", "tattler-again-")
	if err != nil {
		return fmt.Errorf("make a directory for the second build: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	first := o.Out
	o.Out, o.Cache = filepath.Join(dir, "dist"), filepath.Join(dir, "cache")
	fmt.Fprintln(o.Log, "again, with an empty build cache")
	if err := release.Run(ctx, o); err != nil {
		return err
	}
	differ, err := release.Differences(first, o.Out)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return fmt.Errorf("the second build has other bytes:\n%s", strings.Join(differ, "\n"))
	}
	fmt.Fprintln(o.Log, "both builds have the same bytes")
	return nil
}
