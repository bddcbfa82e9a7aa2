// Command notices writes the licences of what a program links to stdout.
//
//	notices NAME DIR PACKAGE OS/ARCH…
//
// PACKAGE is the program's, as in the go command, which runs in DIR. A licence that is unknown or not allowed is an error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tattler-dev/tattler/tools/licenses"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) < 4 {
		return errors.New("want NAME DIR PACKAGE OS/ARCH…")
	}
	parts, err := licenses.Collect(ctx, args[1], args[2], args[3:])
	if err != nil {
		return err
	}
	if err := licenses.Check(parts); err != nil {
		return err
	}
	_, err = out.Write(licenses.Text(args[0], parts))
	return err
}
