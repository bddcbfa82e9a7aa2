// Package controllers measures the same controller on informer/controller and on controller-runtime. Each reconcile
// gets its pod by key and lists the pods of its group, about five, by an index.
package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/bench/harness"
)

const (
	workers = 4
	// writes is the number of changes per second; during is for how long.
	writes = 300
	during = 20 * time.Second
	// written is the annotation with the start time of the last write, Unix nanoseconds.
	written = "bench"
	// byGroup is the name of the index.
	byGroup = "group"
)

// Jobs are the measurements of this package.
func Jobs() []harness.Job {
	return []harness.Job{
		{Name: "controller/tattler", Run: run(ours)},
		{Name: "controller/controller-runtime", Run: run(theirs)},
	}
}

// program is a controller with its caches.
type program struct {
	run func(context.Context) error
	// synced returns once the caches have synced.
	synced func(context.Context) error
	// list returns the names of the pods.
	list func() ([]types.NamespacedName, error)
}

// counts counts reconciles.
type counts struct {
	reconciles atomic.Int64
	seen       atomic.Int64 // reconciles that saw a write
	mu         sync.Mutex
	took       []time.Duration   // from a write to the reconcile that saw it
	last       map[string]string // the last write that was seen, by pod
}

// reconciled is called by each reconcile with the pod and the number of pods in its group.
func (c *counts) reconciled(pod *corev1.Pod, group int) error {
	if group == 0 {
		return fmt.Errorf("the index does not have %s", pod.Name)
	}
	now := time.Now()
	if at := pod.Annotations[written]; at != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		key := pod.Namespace + "/" + pod.Name
		if nano, err := strconv.ParseInt(at, 10, 64); err == nil && c.last[key] != at {
			c.last[key] = at
			c.took = append(c.took, now.Sub(time.Unix(0, nano)))
			c.seen.Add(1)
		}
	}
	c.reconciles.Add(1)
	return nil
}

// group is the index value of a pod: its controller and the last character of its name.
func group(p *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return p.Namespace + "/" + p.Name
	}
	return p.Namespace + "/" + owner.Name + "/" + p.Name[len(p.Name)-1:]
}

func restConfig(s harness.Server) *rest.Config {
	return &rest.Config{
		Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf},
	}
}

// run measures the first reconcile of every pod, the memory afterwards, and the latency and CPU while 300 pods a
// second are written.
func run(program func(*rest.Config, *counts) (*program, error)) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		m := harness.NewMeter()
		c := &counts{last: map[string]string{}}
		p, err := program(restConfig(in.Server), c)
		if err != nil {
			return nil, err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- p.run(running) }()
		err = p.measure(ctx, in, m, c)
		stop()
		return m.Sample(), errors.Join(err, <-ended)
	}
}

func (p *program) measure(ctx context.Context, in harness.Input, m *harness.Meter, c *counts) error {
	if err := p.synced(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	m.Lap("sync")
	synced := time.Now()
	want := int64(in.Server.Objects)
	if err := harness.Wait(ctx, func() bool { return c.reconciles.Load() >= want }); err != nil {
		return fmt.Errorf("reconcile %d of %d objects: %w", c.reconciles.Load(), want, err)
	}
	m.Lap("reconciled")
	m.Set("reconciles 1/s", float64(want)/time.Since(synced).Seconds())
	m.AwaitIdle(ctx)
	m.Lap("settled")
	m.Memory("steady")
	pods, err := p.list()
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	before, begun := c.reconciles.Load(), m.Sample()["settled cpu s"]
	n, err := write(ctx, in.Server, pods, m)
	if err != nil {
		return err
	}
	if err := harness.Wait(ctx, func() bool { return c.seen.Load() >= n }); err != nil {
		return fmt.Errorf("see %d of %d writes: %w", c.seen.Load(), n, err)
	}
	m.Lap("loaded")
	m.Set("load cpu s", m.Sample()["loaded cpu s"]-begun)
	m.Set("load reconciles", float64(c.reconciles.Load()-before))
	m.Memory("loaded")
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.took)
	m.Set("median ms", c.took[len(c.took)/2].Seconds()*1000)
	m.Set("p99 ms", c.took[len(c.took)*99/100].Seconds()*1000)
	return nil
}

// write changes pods at a steady rate, each at most once, and returns their number. It retries a write that the API
// server fails, because the benchmark does not measure the server's availability.
func write(ctx context.Context, s harness.Server, pods []types.NamespacedName, m *harness.Meter) (int64, error) {
	cfg := restConfig(s)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	slices.SortFunc(pods, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	n := min(len(pods), int(writes*during.Seconds()))
	limit := rate.NewLimiter(writes, 1)
	var failed error
	var mu sync.Mutex
	var done sync.WaitGroup
	begun := time.Now()
	free := make(chan struct{}, 64)
	for _, pod := range pods[:n] {
		if err := limit.Wait(ctx); err != nil {
			return 0, fmt.Errorf("wait: %w", err)
		}
		free <- struct{}{}
		done.Go(func() {
			defer func() { <-free }()
			var err error
			for range 3 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, written, time.Now().UnixNano())
				_, err = client.CoreV1().RESTClient().Patch(types.MergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).Body(patch).DoRaw(ctx)
				if err == nil {
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, fmt.Errorf("patch %s: %w", pod, err))
		})
	}
	done.Wait()
	m.Set("writes 1/s", float64(n)/time.Since(begun).Seconds())
	return int64(n), failed
}
