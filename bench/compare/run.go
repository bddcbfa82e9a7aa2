package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/devcluster"
)

// Plan is the length of each phase, and the rate of writes. During each phase, writes go on.
type Plan struct {
	Calm      time.Duration // at first, and after each fault
	Down      time.Duration // between kill -9 and the next start
	Failing   time.Duration // the receivers answer 503
	Settle    time.Duration // the longest wait for the rest, without writes
	PerSecond int           // changes of ConfigMaps
}

// Standard is the plan of `make compare`.
var Standard = Plan{Calm: 15 * time.Second, Down: 10 * time.Second, Failing: 10 * time.Second, Settle: time.Minute, PerSecond: 40}

// deployments is how many Deployments the load has, each with two pods.
const deployments = 5

// Result is what a run found about a peer.
type Result struct {
	Peer Peer
	Verdict
	Usage
	Leaks   int // requests to the receiver with the canary
	Files   int // files of the peer with the canary; a journal counts if its text has it
	Refused int // requests during the receiver's failure
}

// contestant is a peer in a run.
type contestant struct {
	Peer
	dir      string
	args     []string
	env      []string
	receiver *Receiver
	process  *Process
	usage    Usage
}

// Run puts the peers through the plan, all in the same minutes. Their logs and data are in dir.
func Run(ctx context.Context, plan Plan, peers []Peer, seed uint64, dir string, say io.Writer) (results []Result, err error) {
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: filepath.Join(dir, "cluster"), Nodes: 2, Out: say})
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	config := clientConfig(cluster)
	l, err := newLoad(config, seed)
	if err != nil {
		return nil, err
	}
	if err := l.deploy(ctx, deployments); err != nil {
		return nil, err
	}

	all := make([]*contestant, len(peers))
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.close())
		}
	}()
	for i, p := range peers {
		if all[i], err = enter(p, filepath.Join(dir, fmt.Sprintf("peer-%d", i)), cluster.Kubeconfig()); err != nil {
			return nil, err
		}
		if err := all[i].start(); err != nil {
			return nil, err
		}
	}
	if err := ready(ctx, l, all); err != nil {
		return nil, err
	}

	watching, stop := context.WithCancel(ctx)
	defer stop()
	observer, err := Watch(watching, config)
	if err != nil {
		return nil, err
	}
	if err := play(ctx, plan, l, all, say); err != nil {
		return nil, err
	}
	if err := settle(ctx, plan.Settle, observer, all); err != nil {
		return nil, err
	}
	stop()
	if err := observer.Wait(); err != nil {
		return nil, err
	}
	for _, c := range all {
		if err := c.process.end(os.Interrupt, &c.usage); err != nil {
			return nil, fmt.Errorf("stop %s: %w (see %s)", c.Name, err, c.log())
		}
		c.process = nil
		result, err := c.result(ctx, observer)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// result judges a peer that was stopped.
func (c *contestant) result(ctx context.Context, w *Observer) (Result, error) {
	var recorded []byte
	var quiet []Change
	files, err := leaking(c.dir)
	if err == nil && c.history != nil {
		if recorded, err = c.history(ctx, c.Program, c.dir); err == nil {
			quiet, err = quietOf(recorded)
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("judge %s: %w", c.Name, err)
	}
	if hasCanary(recorded) {
		files++
	}
	arrived, leaks := c.receiver.Received()
	return Result{
		Peer: c.Peer, Verdict: Judge(w.Seen(), arrived, quiet...), Usage: c.usage,
		Leaks: leaks, Files: files, Refused: c.receiver.Refused(),
	}, nil
}

// clientConfig returns the administrator's access, without a limit of requests.
func clientConfig(cluster *devcluster.Cluster) *rest.Config {
	return &rest.Config{
		Host: cluster.URL(), BearerToken: cluster.AdminToken(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: cluster.CAFile()},
	}
}

// enter gives a peer its folder, receiver and configuration.
func enter(p Peer, dir, kubeconfig string) (*contestant, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	r, err := Listen(canaries...)
	if err != nil {
		return nil, err
	}
	c := &contestant{Peer: p, dir: dir, env: environment(dir, kubeconfig), receiver: r}
	if c.args, err = p.configure(dir, r.URL); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return c, nil
}

func (c *contestant) log() string { return filepath.Join(c.dir, "log") }

func (c *contestant) start() (err error) {
	c.process, err = start(c.log(), c.env, c.Program, c.args...)
	return err
}

func (c *contestant) close() error {
	if c == nil {
		return nil
	}
	var err error
	if c.process != nil {
		err = c.process.end(syscall.SIGKILL, &c.usage)
	}
	return errors.Join(err, c.receiver.Close())
}

// ready waits until each peer delivers new changes of each kind.
func ready(ctx context.Context, l *load, all []*contestant) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("a peer delivers nothing after two minutes"))
	defer cancel()
	if err := l.create(ctx, secretsPath, fields{"apiVersion": "v1", "kind": "Secret", "metadata": fields{"name": "ready"}}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err := l.patch(ctx, secretsPath+"/ready", fields{"metadata": fields{"labels": fields{"n": fmt.Sprint(n)}}}); err != nil {
			return err
		}
		if err := errors.Join(l.step(ctx), l.rollout(ctx, n%deployments, n+2)); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(c *contestant) bool { return !c.delivers() }) {
			return nil
		}
		for _, c := range all {
			if c.process.ended() {
				return fmt.Errorf("%s ended by itself: see %s", c.Name, c.log())
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// delivers reports whether changes of all kinds arrived that were made after the first lists.
func (c *contestant) delivers() bool {
	arrived, _ := c.receiver.Received()
	found := map[string]bool{}
	for _, a := range arrived {
		if a.Type != "ADDED" || a.Kind == "configmaps" {
			found[a.Kind] = true
		}
	}
	return len(found) == len(kinds)
}

// play goes through the phases.
func play(ctx context.Context, plan Plan, l *load, all []*contestant, say io.Writer) error {
	phase := func(name string, d time.Duration) error {
		fmt.Fprintf(say, "compare: %s for %v\n", name, d)
		return l.write(ctx, d, plan.PerSecond)
	}
	if err := l.secret(ctx); err != nil {
		return err
	}
	if err := phase("writes", plan.Calm); err != nil {
		return err
	}
	for _, c := range all {
		if err := c.process.end(syscall.SIGKILL, &c.usage); err != nil {
			return fmt.Errorf("kill %s: %w (see %s)", c.Name, err, c.log())
		}
		c.process = nil
	}
	if err := phase("killed, and writes", plan.Down); err != nil {
		return err
	}
	for _, c := range all {
		if err := c.start(); err != nil {
			return err
		}
	}
	if err := phase("started again, and writes", plan.Calm); err != nil {
		return err
	}
	for _, c := range all {
		c.receiver.Fail(true)
	}
	err := phase("the receivers fail, and writes", plan.Failing)
	for _, c := range all {
		c.receiver.Fail(false)
	}
	if err != nil {
		return err
	}
	return phase("the receivers answer again, and writes", plan.Calm)
}

// settle waits until every peer delivered everything, or has delivered nothing new for a quarter of the limit.
func settle(ctx context.Context, limit time.Duration, w *Observer, all []*contestant) error {
	end := time.Now().Add(limit)
	count, since := 0, time.Now()
	for time.Now().Before(end) {
		done, n := true, len(w.Seen())
		for _, c := range all {
			arrived, _ := c.receiver.Received()
			n += len(arrived)
			done = done && Judge(w.Seen(), arrived).Lost == 0
		}
		if n != count {
			count, since = n, time.Now()
		}
		if done && time.Since(since) > 3*time.Second || time.Since(since) > limit/4 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
	return nil
}
