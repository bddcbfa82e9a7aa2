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
)

// options say what to show, and where.
type options struct {
	Tattler  string        // the program: a path, or a name to look up
	Watch    []string      // arguments of tattler watch
	Pause    time.Duration // after each step
	Dim      bool          // narrate in a terminal's faint letters
	Out, Err io.Writer     // tattler's; the narration goes to Err as well, at the same time
}

// demo is a running control plane, and how to talk to it.
type demo struct {
	options
	cluster *devcluster.Cluster
	dir     string // the manifests, and kubectl's home; goes with the cluster
}

// run shows the demo. On return, all that it started has ended.
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
		return context.Cause(ctx) // without the logs of servers that we ended
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	d := &demo{options: o, cluster: cluster, dir: filepath.Join(cluster.Dir(), "demo")}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if err := d.show(ctx); err != nil {
		return err
	}
	o.narrate("that was all; ending the control plane. For a cluster to play with: make cluster")
	return nil
}

// prepare makes the manifests and the objects that are there from the beginning.
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

// show runs tattler watch and, below its eyes, the steps.
func (d *demo) show(ctx context.Context) error {
	d.narrate("tattler watch " + strings.Join(d.Watch, " "))
	w, err := startWatch(ctx, d.options, d.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	return errors.Join(d.play(ctx, w), w.stop())
}

// play lets the steps happen, as long as tattler lives.
func (d *demo) play(ctx context.Context, w *watch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-w.done:
			cancel(errEarly)
		case <-ctx.Done():
		}
	}()
	if err := w.waitLive(ctx); err != nil {
		return err
	}
	for _, s := range steps {
		if err := d.step(ctx, s); err != nil {
			return err
		}
		select {
		case <-time.After(d.Pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (d *demo) step(ctx context.Context, s step) error {
	d.narrate(s.say)
	for _, args := range s.do {
		d.narrate("  kubectl " + shell(args))
		if err := d.kubectl(ctx, args); err != nil {
			return err
		}
	}
	for _, args := range s.wait {
		if err := d.kubectl(ctx, args); err != nil {
			return err
		}
	}
	return nil
}

// shell is how one would type the arguments.
func shell(args []string) string {
	typed := make([]string, len(args))
	for i, a := range args {
		if typed[i] = a; strings.ContainsAny(a, `{}[]" `) {
			typed[i] = "'" + a + "'"
		}
	}
	return strings.Join(typed, " ")
}

// narrate writes a line that cannot be taken for tattler's.
func (o options) narrate(line string) {
	line = "# " + line
	if o.Dim {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	fmt.Fprintln(o.Err, line)
}

// kubectl runs the control plane's own kubectl beside the manifests; what it says is for errors only.
func (d *demo) kubectl(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, d.cluster.Binaries().Path("kubectl"), args...)
	cmd.Dir = d.dir
	cmd.Env = []string{"HOME=" + d.dir, "KUBECONFIG=" + d.cluster.Kubeconfig()}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
