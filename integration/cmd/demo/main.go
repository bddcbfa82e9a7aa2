// Command demo shows what tattler does: it starts a control plane of its own and tattler run on it, lets
// things happen with kubectl, shows what is recorded, kills tattler on the way, and ends all. It leaves no
// process and, but for the cache of the control plane's programs, no file; also when it is interrupted.
//
//	demo [-tattler FILE] [-pause DURATION] [-nats] [LOG ARGUMENT…]
//
// The arguments go to tattler log; without any, it shows the namespace in which things happen. With -nats the
// changes are also delivered to a NATS server within the demo, and what a subscriber sees is shown at the end.
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
	flag.BoolVar(&o.NATS, "nats", false, "deliver to a NATS server, too, and show what a subscriber sees")
	flag.Parse()
	if o.Log = flag.Args(); len(o.Log) == 0 {
		o.Log = []string{"-n", namespace}
	}
	if fi, err := os.Stderr.Stat(); err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		o.Dim = true
	}
	return o
}
