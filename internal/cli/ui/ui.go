// Package ui is the verb that shows the journal in a browser.
package ui

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/ops"
	"github.com/tattler-dev/tattler/internal/usage"
	"github.com/tattler-dev/tattler/internal/web"
	"github.com/tattler-dev/tattler/internal/web/auth"
)

// Options are the verb's flags.
type Options struct {
	IO     *terminal.IO
	Past   past.Flags
	Listen string
	Open   bool
	// Browser opens a URL; nil is the system's browser.
	Browser func(ctx context.Context, url string) error
}

const long = `Show in a browser what changed: a timeline of the journal that tattler run
writes, and each change with its diff. New changes appear as they are recorded.
On the page of streams and sinks, you can control the sinks through the daemon,
as with tattler sinks.

The pages are for this machine only: they are served on a loopback address,
without a password. To serve them to others, configure web.address for tattler
run.`

const examples = `  tattler ui --open
  tattler ui --journal /var/lib/tattler/journal.db
  tattler ui --listen 127.0.0.1:8090`

// NewCommand returns the verb.
func NewCommand(io *terminal.IO) *cobra.Command {
	o := &Options{IO: io}
	cmd := &cobra.Command{
		Use:     "ui",
		Short:   "Show the journal in a browser",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "loopback `address` of the page; port 0: any free port")
	f.BoolVar(&o.Open, "open", false, "open the page in the browser")
	o.Past.Add(cmd)
	return cmd
}

// console shows the sinks of a journal, and controls them through the socket of the daemon that writes it.
func console(j *past.Journal) *sinkadmin.Console {
	r := j.Reader()
	if r == nil {
		return nil
	}
	c := &control.Client{Journal: j.Path()}
	return &sinkadmin.Console{
		Status: c.Status,
		Orders: func() control.Orders { return c },
		Read:   func(_ context.Context, use func(*journal.Reader) error) error { return use(r) },
	}
}

// Run serves the page until ctx ends, which is not an error.
func Run(ctx context.Context, o *Options) error {
	j, err := o.Past.Open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	log := slog.New(slog.NewTextHandler(o.IO.Err, nil))
	check, err := samePlace(j.Path())
	if err != nil {
		return err
	}
	page, err := web.New(web.Options{
		Source: j.Source(), Log: log, Check: check,
		Recording: func(ctx context.Context) bool { return control.Recording(ctx, j.Path()) },
		Console:   console(j),
	})
	if err != nil {
		return err
	}
	l, err := ops.Listen(ctx, "--listen", o.Listen, false)
	if err != nil {
		return err
	}
	defer l.Close()
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return usage.Errorf("--listen %s: the page has no password here, so it is served on a loopback address only, such as 127.0.0.1:8090; tattler run serves it to others, with web.address", o.Listen)
	}
	protection, err := auth.New(auth.Options{Address: l.Addr().String(), Log: log})
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String() + "/"
	fmt.Fprintf(o.IO.Out, "%s\n", url)
	if o.Open {
		if err := o.browse(ctx, url); err != nil {
			fmt.Fprintf(o.IO.Err, "cannot open a browser: %s\n", terminal.Line(err.Error()))
		}
	}
	return protection.Serve(ctx, l, ownOrders(page, sameUser))
}
