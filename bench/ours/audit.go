package ours

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/informer"
)

// audit measures the cost of an audit of a synced view of pods.
func audit(ctx context.Context, in harness.Input) (harness.Sample, error) {
	const every = 10 * time.Second // the minimum; by then the deferred work of the sync is done
	done := make(chan informer.AuditInfo, 1)
	s, err := connect(in, informer.Options{AuditEvery: every, Hooks: informer.Hooks{Audit: func(i informer.AuditInfo) {
		select {
		case done <- i:
		default: // a later one
		}
	}}})
	if err != nil {
		return nil, err
	}
	pods, err := informer.For[*corev1.Pod](s.Cluster)
	if err != nil {
		return nil, err
	}
	if err := sync(ctx, s, pods, in.Server.Objects); err != nil {
		return nil, err
	}
	before, err := harness.TrimRSS()
	if err != nil {
		return nil, err
	}
	m := harness.NewMeter()
	var info informer.AuditInfo
	select {
	case info = <-done:
	case <-ctx.Done():
		return nil, fmt.Errorf("audit: %w", context.Cause(ctx))
	}
	m.Lap("waited")
	if info.Err != nil || info.Contents || info.Objects != int64(in.Server.Objects) {
		return nil, fmt.Errorf("audit: %+v", info)
	}
	sample := m.Sample()
	m.Set("audit s", info.Duration.Seconds())
	m.Set("audit cpu s", sample["waited cpu s"])
	m.Set("audit bytes B", float64(info.Bytes))
	m.Set("audit growth B", harness.PeakRSS()-before)
	runtime.KeepAlive(pods)
	return m.Sample(), s.stop(ctx)
}
