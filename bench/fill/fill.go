// Package fill starts a real control plane and fills it with generated objects. It sends the
// requests of controllers, scheduler and kubelets, so that defaults, admission and managedFields
// come from the API server.
//
//   - No controllers run: nothing else writes or deletes objects.
//   - A filled control plane is kept in the user's cache folder and used again; it starts in seconds.
package fill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/devcluster"
)

// Options configure a filled control plane.
type Options struct {
	Pods, Widgets int
	Seed          uint64
	// Dir is the folder of the control planes; "" is tattler/bench in the user's cache folder.
	Dir string
	// Out receives progress; it may be nil.
	Out io.Writer
}

// Cluster is a filled control plane.
type Cluster struct {
	*devcluster.Cluster
	// Config connects to it as the admin.
	Config *rest.Config
	unlock func()
}

// Stop ends the control plane and keeps its data.
func (c *Cluster) Stop() error {
	err := c.Cluster.Stop()
	c.unlock()
	return err
}

// receipt is the file that marks a filled control plane.
const receipt = "filled.json"

// Open starts a filled control plane. The first call fills it, which takes about a minute for
// 10,000 objects. Open fails if another process uses the same control plane.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find cache folder: %w", err)
		}
		o.Dir = filepath.Join(cache, "tattler", "bench")
	}
	dir := filepath.Join(o.Dir, fmt.Sprintf("kubernetes-%s-data-%d-seed-%d-pods-%d-widgets-%d",
		devcluster.KubernetesVersion, gen.Version, o.Seed, o.Pods, o.Widgets))
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, o, dir)
	if err != nil {
		unlock()
		return nil, err
	}
	c.unlock = unlock
	return c, nil
}

func open(ctx context.Context, o Options, dir string) (*Cluster, error) {
	full := func() bool { _, err := os.Stat(filepath.Join(dir, receipt)); return err == nil }
	if !full() { // remove the remains of an interrupted fill
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("remove interrupted fill: %w", err)
		}
	}
	started, err := devcluster.Start(ctx, devcluster.Options{Dir: dir, Out: o.Out})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Cluster: started}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", started.Kubeconfig()); err != nil {
		return nil, errors.Join(fmt.Errorf("read kubeconfig: %w", err), started.Stop())
	}
	if full() {
		return c, nil
	}
	start := time.Now()
	if err = c.fill(ctx, o); err == nil {
		err = started.Compact(ctx)
	}
	if err == nil {
		b, _ := json.Marshal(map[string]any{"pods": o.Pods, "widgets": o.Widgets, "seconds": int(time.Since(start).Seconds())})
		err = os.WriteFile(filepath.Join(dir, receipt), b, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fill control plane: %w", err), started.Stop())
	}
	fmt.Fprintf(o.Out, "fill: %d pods and %d widgets in %.0f s\n", o.Pods, o.Widgets, time.Since(start).Seconds())
	return c, nil
}

// lock locks a control plane against other processes. The kernel unlocks it when this process ends.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make cache folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: another benchmark uses it: %w", strings.TrimSuffix(path, ".lock"), err)
	}
	return func() { _ = f.Close() }, nil
}
