package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// sinks reaches each sink, all at once.
func (x *examination) sinks(ctx context.Context) {
	if len(x.setup.Sinks) == 0 {
		x.add(Sinks, "reachable", OK, "no sinks: changes are journaled only", "", "")
		return
	}
	found := make([]Finding, len(x.setup.Sinks))
	var all sync.WaitGroup
	for i := range x.setup.Sinks {
		all.Go(func() { found[i] = x.sink(ctx, &x.setup.Sinks[i]) })
	}
	all.Wait()
	for i, f := range found {
		x.findings = append(x.findings, f)
		x.delivery(x.setup.Sinks[i].Name)
	}
}

// sink reaches one sink within its deadline.
func (x *examination) sink(ctx context.Context, c *config.Sink) Finding {
	return x.within(ctx, c, func(ctx context.Context) Finding { return x.reach(ctx, c) })
}

// within bounds the time of reach, even if it ignores its context. What does not end then, ends with the process.
func (x *examination) within(ctx context.Context, c *config.Sink, reach func(context.Context) Finding) Finding {
	done := make(chan Finding, 1)
	limit := x.host.time(checkSink, "", sinkTimeout)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() { done <- reach(bounded) }()
	late := time.NewTimer(limit + limit/10) // a sink that ends with its context may say why
	defer late.Stop()
	select {
	case f := <-done:
		return f
	case <-late.C:
	case <-ctx.Done(): // the examination was interrupted
	}
	return hangs(c, limit, nil)
}

// hangs is the finding about a sink that did not answer in time. last is its last error, if that says more.
func hangs(c *config.Sink, limit time.Duration, last error) Finding {
	title := fmt.Sprintf("%s does not answer within %s", c.Name, span(limit))
	if last != nil && !errors.Is(last, context.DeadlineExceeded) && !errors.Is(last, os.ErrDeadlineExceeded) {
		title += ": " + c.Hide(last.Error())
	}
	return finding("", Sinks, "reachable", Error, title, waits,
		"The address accepts connections or drops packets. Check that the receiver runs there, and that no firewall or proxy in between holds the connection.")
}

// waits is the meaning of an unreachable sink.
const waits = "Changes wait in the journal until it can be reached, or until retention removes them."

func unreachable(c *config.Sink, err error) Finding {
	action := "Check the receiver, its address, and its credentials."
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		action = "Check the receiver's certificate and the host in the address. For a CA that this machine does not know, set tls.ca of the sink."
	}
	return finding("", Sinks, "reachable", Error, fmt.Sprintf("%s cannot be reached: %s", c.Name, c.Hide(err.Error())), waits, action)
}

// reach probes a sink, or sends it a message.
func (x *examination) reach(ctx context.Context, c *config.Sink) Finding {
	s, err := x.setup.MakeSink(c, io.Discard)
	if err != nil {
		return finding("", Sinks, "configured", Error, err.Error(), "tattler run does not start.", "Correct the sink's options.")
	}
	defer func() { _ = s.Close(ctx) }() // what was found counts
	failed := func(err error) Finding {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return hangs(c, x.host.time(checkSink, "", sinkTimeout), err)
		}
		return unreachable(c, err)
	}
	ok := func(level Level, title, action string) Finding {
		return finding("", Sinks, "reachable", level, fmt.Sprintf("%s (%s) %s", c.Name, s, title), "", action)
	}
	if c.Type == "log" {
		return ok(OK, "writes to the standard output of tattler run", "")
	}
	if x.o.TestSinks {
		if err := x.test(ctx, s); err != nil {
			return failed(err)
		}
		return ok(OK, "took a test message", "")
	}
	p, can := s.(sink.Prober)
	if !can {
		err = sink.ErrNotProbed
	} else {
		err = p.Probe(ctx)
	}
	switch {
	case errors.Is(err, sink.ErrNotProbed):
		return ok(Note, "was not checked: only a message shows whether it can be reached", "To send it one: --test-sinks")
	case err != nil:
		return failed(err)
	}
	return ok(OK, "can be reached", "")
}

// test sends a message about an object that no cluster has.
func (x *examination) test(ctx context.Context, s sink.Sink) error {
	now := x.host.now()
	e := event.New(x.clusterName(), now, event.Data{
		Op: event.Created, Severity: event.Normal, Observed: event.Observed{At: now},
		Resource: event.Resource{
			Group: "tattler.dev", Version: "v1", Resource: "tests", Kind: "Test", Name: "doctor",
			UID: "doctor-" + fmt.Sprint(now.UnixNano()), ResourceVersion: "1",
		},
		After: map[string]any{
			"apiVersion": "tattler.dev/v1", "kind": "Test", "metadata": map[string]any{"name": "doctor"},
			"spec": map[string]any{"text": "A test message of tattler doctor. No object changed."},
		},
	})
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	n, err := s.Send(ctx, []sink.Message{{
		ID: e.ID, Key: e.Subject, Body: body, Event: &e, Again: true,
		Text: func(w io.Writer) error {
			_, err := io.WriteString(w, "A test message of tattler doctor. No object changed.\n")
			return err
		},
	}})
	if h, holds := s.(sink.Holder); holds && err == nil && n == 1 && !h.Due().IsZero() {
		err = h.Flush(ctx)
	}
	return err
}

// clusterName is the cluster in a test message: the first of several.
func (x *examination) clusterName() string {
	p := &x.parts[0]
	if p.Cluster == nil {
		return p.Name
	}
	return cmp.Or(p.Setup.Cluster.Name, p.Cluster.Name)
}

// delivery adds what the daemon reports of a sink that does not keep up.
func (x *examination) delivery(name string) {
	if x.status == nil {
		return
	}
	for _, k := range x.status.Sinks {
		switch {
		case k.Name != name:
		case k.State == "paused":
			x.add(Sinks, "delivery", Note, fmt.Sprintf("%s is paused, %s behind", name, terminal.Count(int(k.Behind), "change")), "", "To deliver them: tattler sinks resume "+name)
		case k.State != "running" && strings.TrimSpace(k.Error) != "":
			x.add(Sinks, "delivery", Error, fmt.Sprintf("%s is %s, %s behind: %s", name, k.State, terminal.Count(int(k.Behind), "change"), k.Error), "", "Correct the receiver. If it never takes one change, tattler status says how to skip it.")
		}
	}
}
