package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/bench/gen"
	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

const (
	// batchSize is the number of changes in a batch of a daemon that has fallen behind.
	batchSize = 500
	// fleet is the number of objects that change in turn: few enough that whole states, which are part
	// of the cost of a change, occur.
	fleet = 500
	// rate is the rate of changes for timing commits, per second.
	rate = 1000
)

var epoch = time.Unix(gen.Epoch, 0).UTC()

// objects generates successive versions of some objects.
type objects struct {
	kind    journal.Kind
	manager string
	quiet   bool
	// object is object i in its n-th version.
	object func(i, n int, version string, at time.Time) any

	made int
	last [fleet][]byte
}

// nodes change by heartbeats: the times of four conditions, the version, the time of a manager.
func nodes(g *gen.Generator) *objects {
	all := make([]*corev1.Node, fleet)
	return &objects{
		kind: journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}, manager: "kubelet", quiet: true,
		object: func(i, _ int, version string, at time.Time) any {
			if all[i] == nil {
				all[i] = g.Node(i % gen.Nodes)
				all[i].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
				all[i].UID = types.UID(uid("n", i))
				all[i].ManagedFields = append(all[i].ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status",
					FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{}}}}}`),
				})
			}
			n := all[i]
			n.ResourceVersion = version
			n.ManagedFields[len(n.ManagedFields)-1].Time = &metav1.Time{Time: at}
			for k := range n.Status.Conditions {
				n.Status.Conditions[k].LastHeartbeatTime = metav1.Time{Time: at}
			}
			return n
		},
	}
}

// images are workloads whose image changes, with the version, the generation, and the time of a manager.
func images(g *gen.Generator) *objects {
	all := make([]*corev1.Pod, fleet)
	return &objects{
		kind: journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}, manager: "kubectl-set",
		object: func(i, n int, version string, at time.Time) any {
			if all[i] == nil {
				all[i] = g.Pod(i)
				all[i].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			}
			p := all[i]
			p.ResourceVersion, p.Generation = version, int64(n)
			p.Spec.Containers[0].Image = fmt.Sprintf("registry.example.com/team/app:1.%d.%d", n, i%7)
			p.ManagedFields[0].Time = &metav1.Time{Time: at}
			return p
		},
	}
}

func uid(prefix string, i int) string {
	return fmt.Sprintf("%s%07x-0000-4000-8000-%012x", prefix, i, i*7919)
}

// batch generates the next changes.
func (o *objects) batch(count int) ([]journal.Batch, error) {
	b := journal.Batch{Stream: journal.Stream{GroupResource: o.kind.Resource}, Head: journal.Head{Live: true, EverLive: true, At: epoch}}
	for range count {
		i, n := o.made%fleet, o.made/fleet
		o.made++
		at := epoch.Add(time.Duration(o.made) * 37 * time.Millisecond)
		b.Head.Version = strconv.Itoa(4_000_000 + 7*o.made)
		object := o.object(i, n, b.Head.Version, at.Truncate(time.Second))
		text, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode object: %w", err)
		}
		meta, ok := object.(metav1.Object)
		if !ok {
			return nil, fmt.Errorf("a %T has no metadata", object)
		}
		r := journal.Row{Before: o.last[i], After: text, Meta: journal.Meta{
			Op: event.Updated, Kind: o.kind, Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: string(meta.GetUID()),
			ResourceVersion: b.Head.Version, Time: at.Truncate(time.Second), At: at, Manager: o.manager, Quiet: o.quiet,
		}}
		if r.Before == nil {
			r.Op, r.Quiet = event.Snapshot, false
		}
		o.last[i] = text
		b.Rows = append(b.Rows, r)
	}
	return []journal.Batch{b}, nil
}

// written measures the journal: prepared batches, each synced to disk; single changes at a rate; and
// the bytes of a change in the file, with all overhead.
func written(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	g := gen.New(1)
	for what, o := range map[string]*objects{"heartbeat": nodes(g), "image": images(g)} {
		if err := fill(ctx, m, filepath.Join(in.Dir, what+".db"), what, o, in.Events); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return m.Sample(), nil
}

func fill(ctx context.Context, m *harness.Meter, path, what string, o *objects, count int) (err error) {
	j, err := journal.Open(ctx, path, journal.Options{Cluster: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var took time.Duration
	write := func(count int) (time.Duration, error) {
		batch, err := o.batch(count)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		_, err = j.Append(ctx, batch)
		return time.Since(start), err
	}
	if _, err := write(fleet); err != nil {
		return err
	}
	before, err := used(ctx, path)
	if err != nil {
		return err
	}
	for done := 0; done < count; done += batchSize {
		d, err := write(min(batchSize, count-done))
		if err != nil {
			return err
		}
		took += d
	}
	after, err := used(ctx, path)
	if err != nil {
		return err
	}
	m.Set(what+" B", float64(after-before)/float64(o.made-fleet))
	m.Set(what+" rows/s", float64(o.made-fleet)/took.Seconds())
	late, err := pace(ctx, count/10, write)
	m.Set(what+" p99 ms", late)
	return err
}

// used is the number of bytes in use in the file.
func used(ctx context.Context, path string) (int64, error) {
	r, err := journal.OpenReader(ctx, path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	s, err := r.Stats(ctx)
	return s.Used, err
}

// pace appends changes that arrive at a rate, in batches of those that have arrived, and returns the 99th
// percentile of the time from arrival to durability, in milliseconds.
func pace(ctx context.Context, count int, write func(int) (time.Duration, error)) (float64, error) {
	var late []float64
	start, written := time.Now(), 0
	for written < count {
		came := min(int(time.Since(start).Seconds()*rate), count)
		if came == written {
			if err := harness.Wait(ctx, func() bool { return int(time.Since(start).Seconds()*rate) > written }); err != nil {
				return 0, err
			}
			continue
		}
		if _, err := write(came - written); err != nil {
			return 0, err
		}
		now := time.Since(start)
		for ; written < came; written++ {
			late = append(late, float64((now-time.Duration(written+1)*time.Second/rate).Microseconds())/1000)
		}
	}
	slices.Sort(late)
	return late[len(late)*99/100], nil
}

// remove deletes a journal.
func remove(path string) error {
	var errs []error
	for _, end := range []string{"", "-wal", "-shm", ".lock"} {
		if err := os.Remove(path + end); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
