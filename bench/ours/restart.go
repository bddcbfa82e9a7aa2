package ours

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/bench/synth"
	"github.com/tattler-dev/tattler/informer"
)

// kept returns a session with a checkpoint, and its view of pods.
func kept(in harness.Input) (*session, *informer.Informer[*corev1.Pod], error) {
	s, err := connect(in, informer.Options{Checkpoint: filepath.Join(in.Dir, "state")})
	if err != nil {
		return nil, nil, err
	}
	pods, err := informer.For[*corev1.Pod](s.Cluster)
	return s, pods, err
}

// checkpoint writes a checkpoint for restart.
func checkpoint(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	s, pods, err := kept(in)
	if err != nil {
		return nil, err
	}
	if err := sync(ctx, s, pods, in.Server.Objects); err != nil {
		return nil, err
	}
	m.Lap("sync")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	return m.Sample(), s.stop(ctx)
}

// restart measures a start from a checkpoint, until the objects can be read (Loaded) and until they
// are current (sync).
func restart(ctx context.Context, in harness.Input) (harness.Sample, error) {
	control := synth.NewControl(in.Server.Control)
	if _, err := control.Requests(ctx); err != nil { // discard those of earlier jobs
		return nil, err
	}
	m := harness.NewMeter()
	s, pods, err := kept(in)
	if err != nil {
		return nil, err
	}
	s.run(ctx)
	if err := pods.Source().WaitForLoad(ctx); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if n := pods.Len(); n != in.Server.Objects {
		return nil, fmt.Errorf("load: there are %d objects, not %d", n, in.Server.Objects)
	}
	m.Lap("loaded")
	if err := s.Wait(ctx); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	m.Lap("sync")
	m.AwaitIdle(ctx)
	m.Lap("settled")
	requests, err := control.Requests(ctx)
	if err != nil {
		return nil, err
	}
	m.Set("requests", float64(len(requests)))
	m.Set("lists", float64(lists(requests)))
	m.Memory("steady")
	runtime.KeepAlive(pods)
	return m.Sample(), s.stop(ctx)
}

// lists counts the requests that list more than one object.
func lists(requests []string) int {
	n := 0
	for _, r := range requests {
		path, query, _ := strings.Cut(r, "?")
		q, err := url.ParseQuery(query)
		if err != nil || !strings.HasSuffix(path, "/pods") {
			continue
		}
		watch := q.Get("watch") == "true" || q.Get("watch") == "1"
		if watch && q.Get("sendInitialEvents") == "true" || !watch && q.Get("limit") != "1" {
			n++
		}
	}
	return n
}
