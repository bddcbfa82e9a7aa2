package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/integration/bus"
)

// options configure the demo.
type options struct {
	Tattler  string        // the program: a path, or a name to look up
	Log      []string      // arguments of tattler log --follow
	Pause    time.Duration // after each step
	NATS     bool          // also deliver to a NATS server in this process, and show what a subscriber receives
	Dim      bool          // narrate in faint letters
	Stay     bool          // leave the page up after the last step, until the context ends
	Out, Err io.Writer     // for tattler's output; the narration is also written to Err, concurrently
}

// demo is a running control plane and the clients of it.
type demo struct {
	options
	cluster *devcluster.Cluster
	dir     string // the manifests, kubectl's home, and tattler's files; removed with the cluster
	daemon  *process
	bus     *bus.Server // nil without NATS
}

// run plays the demo. When it returns, everything that it started has ended.
func run(ctx context.Context, o options) (err error) {
	tattler, err := exec.LookPath(o.Tattler)
	if err != nil {
		return fmt.Errorf("find tattler: %w", err)
	}
	if o.Tattler, err = filepath.Abs(tattler); err != nil {
		return fmt.Errorf("find tattler: %w", err)
	}
	o.narrate("starting a control plane (10 to 20 seconds)")
	cluster, err := devcluster.Start(ctx, devcluster.Options{Nodes: 2, Out: o.Err})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // without the logs of servers that we stopped
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	d := &demo{options: o, cluster: cluster, dir: filepath.Join(cluster.Dir(), "demo")}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if o.NATS {
		o.narrate("starting a NATS server with JetStream, in this process")
		if d.bus, err = bus.Start(filepath.Join(d.dir, "nats")); err != nil {
			return err
		}
		defer d.bus.Close() // before the cluster removes its folder
	}
	if err := d.show(ctx); err != nil {
		return err
	}
	o.narrate("done; stopping the control plane. For a cluster to play with: make cluster")
	return nil
}

// prepare writes the manifests and creates the initial objects.
func (d *demo) prepare(ctx context.Context) error {
	files, err := fs.Sub(manifests, "manifests")
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	if err := os.CopyFS(d.dir, files); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	for _, args := range preparation {
		if err := d.kubectl(ctx, args); err != nil {
			return err
		}
	}
	return nil
}

// show starts the daemon, plays the steps while it records, and then queries the journal.
func (d *demo) show(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := d.record(ctx, cancel); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.daemon.stop()) }()
	page, err := d.start(ctx, "", "ui") // it prints the page's address
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.stop()) }()
	follower, err := d.start(ctx, "", append([]string{"log", "--follow"}, d.Log...)...)
	if err != nil {
		return err
	}
	follower.guard(ctx, cancel)
	err = d.play(ctx, cancel)
	if err = errors.Join(err, follower.stop()); err != nil {
		return err
	}
	if err := d.ask(ctx); err != nil {
		return err
	}
	if d.bus != nil {
		if err := d.daemon.stop(); err != nil { // after its sinks have received everything
			return err
		}
		if err := d.showBus(ctx); err != nil {
			return err
		}
	}
	return d.stay(ctx)
}

// stay leaves the page up until the user interrupts, which is not an error. It fails if the daemon exits meanwhile.
func (d *demo) stay(ctx context.Context) error {
	if !d.Stay {
		return nil
	}
	d.narrate("the page stays up until Ctrl-C")
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// record starts the daemon and waits until it records.
func (d *demo) record(ctx context.Context, cancel context.CancelCauseFunc) error {
	args := []string{"run", "--to", "file:" + eventsFile}
	if d.bus != nil {
		args = append(args, "--to", d.bus.Address(""))
	}
	daemon, err := d.start(ctx, recordingMark, args...)
	if err != nil {
		return err
	}
	d.daemon = daemon
	if err := daemon.waitReady(ctx); err != nil {
		return errors.Join(err, daemon.stop())
	}
	daemon.guard(ctx, cancel)
	return nil
}

// play plays the steps until the end or until the daemon exits.
func (d *demo) play(ctx context.Context, cancel context.CancelCauseFunc) error {
	for _, s := range steps {
		if err := d.step(ctx, cancel, s); err != nil {
			return err
		}
		if err := d.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) pause(ctx context.Context) error {
	select {
	case <-time.After(d.Pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask runs the questions with tattler and checks the file of events.
func (d *demo) ask(ctx context.Context) error {
	for _, q := range questions {
		d.narrate(q.say)
		p, err := d.start(ctx, "", q.args...)
		if err != nil {
			return err
		}
		<-p.done
		if p.err != nil {
			return fmt.Errorf("%s: %w", p.name, p.err)
		}
	}
	ids, err := idsIn(filepath.Join(d.dir, eventsFile))
	if err != nil {
		return err
	}
	d.narrate(fmt.Sprintf("%s has %d events, each of them once", eventsFile, len(ids)))
	return nil
}

func (d *demo) step(ctx context.Context, cancel context.CancelCauseFunc, s step) error {
	d.narrate(s.say)
	for _, args := range s.do {
		d.narrate("  kubectl " + shell(args))
		if err := d.kubectl(ctx, args); err != nil {
			return err
		}
	}
	if s.crash {
		d.narrate("  kill -9 of tattler run, in the middle of it")
		d.daemon.kill()
	}
	for _, args := range s.wait {
		if err := d.kubectl(ctx, args); err != nil {
			return err
		}
	}
	if !s.crash {
		return nil
	}
	return d.record(ctx, cancel)
}

// shell returns the arguments as typed in a shell.
func shell(args []string) string {
	typed := make([]string, len(args))
	for i, a := range args {
		if typed[i] = a; strings.ContainsAny(a, `{}[]"?& `) {
			typed[i] = "'" + a + "'"
		}
	}
	return strings.Join(typed, " ")
}

// narrate writes a line that is distinguishable from tattler's.
func (o options) narrate(line string) {
	line = "# " + line
	if o.Dim {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	fmt.Fprintln(o.Err, line)
}

// kubectl runs the control plane's kubectl in the folder of the manifests; its output is only used in errors. While the API
// server has not announced a new kind, kubectl tries again.
func (d *demo) kubectl(ctx context.Context, args []string) error {
	for end := time.Now().Add(readyLimit); ; {
		out, err := d.kubectlOnce(ctx, args)
		if err == nil || !strings.Contains(out, "no matches for kind") || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d *demo) kubectlOnce(ctx context.Context, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, d.cluster.Binaries().Path("kubectl"), args...)
	cmd.Dir = d.dir
	cmd.Env = []string{"HOME=" + d.dir, "KUBECONFIG=" + d.cluster.Kubeconfig()}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
