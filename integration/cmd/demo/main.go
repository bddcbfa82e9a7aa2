// Command demo shows what tattler watch shows: it starts a control plane of its own, lets things
// happen in it with kubectl, and ends both. It leaves no process and, but for the cache of the
// control plane's programs, no file; also when it is interrupted.
//
//	demo [-tattler FILE] [-pause DURATION] [WATCH ARGUMENT…]
//
// The arguments go to tattler watch; without any, it watches the namespace in which things happen.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Exit statuses: failed, and interrupted as a shell counts it.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, parse())
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted:
		fmt.Fprintf(os.Stderr, "demo: interrupted: %v\n", err)
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(exitFailed)
	}
}

func parse() options {
	o := options{Out: os.Stdout, Err: os.Stderr}
	flag.StringVar(&o.Tattler, "tattler", "tattler", "the program to show")
	flag.DurationVar(&o.Pause, "pause", 2500*time.Millisecond, "time to read, after each thing that happens")
	flag.Parse()
	if o.Watch = flag.Args(); len(o.Watch) == 0 {
		o.Watch = []string{"-n", namespace}
	}
	if fi, err := os.Stderr.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		o.Dim = true
	}
	return o
}
