// Command demo demonstrates tattler: it starts a separate control plane and tattler run on it, changes objects
// with kubectl, shows what is recorded, and kills tattler on the way. On a terminal, the web page then stays up until
// Ctrl-C. In the end it stops everything: even when interrupted, it leaves no process and no file except the cache of
// the control plane's programs.
//
//	demo [-tattler FILE] [-pause DURATION] [-nats] [LOG ARGUMENT…]
//
// The arguments are passed to tattler log; by default, it shows the namespace of the demo. With -nats the
// changes are also delivered to a NATS server within the demo, and the events that a subscriber receives are
// shown at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Exit statuses: failed, and interrupted in the convention of shells.
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
	flag.StringVar(&o.Tattler, "tattler", "tattler", "path or name of the tattler command")
	flag.DurationVar(&o.Pause, "pause", 2500*time.Millisecond, "pause after each step")
	flag.BoolVar(&o.NATS, "nats", false, "also deliver to a NATS server, and show what a subscriber receives")
	flag.Parse()
	if o.Log = flag.Args(); len(o.Log) == 0 {
		o.Log = []string{"-n", namespace}
	}
	o.Stay = term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
	if fi, err := os.Stderr.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		o.Dim = true
	}
	return o
}
