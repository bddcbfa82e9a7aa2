package peer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/bench/harness"
)

// hotObjects is the number of objects that are read repeatedly.
const hotObjects = 100

// reads measures Get with a copy, of few objects and of all in random order, and List, with and
// without copies.
func reads(ctx context.Context, in harness.Input) (harness.Sample, error) {
	cfg := config(in.Server)
	cfg.ContentType = apiruntime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	m := harness.NewMeter()
	f := informers.NewSharedInformerFactory(client, 0)
	pods := f.Core().V1().Pods()
	inf := informer{pods.Informer(), f.Start, in.Server.Objects}
	if err := inf.sync(ctx); err != nil {
		return nil, err
	}
	lister := pods.Lister()
	all, err := lister.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	get := func(i int) (*corev1.Pod, error) { return lister.Pods(all[i].Namespace).Get(all[i].Name) }
	copied := func(of int) func(int) error {
		return func(i int) error {
			p, err := get(i % of)
			runtime.KeepAlive(p.DeepCopy())
			return err
		}
	}
	shared := func(i int) error {
		p, err := get(i % min(hotObjects, len(all)))
		runtime.KeepAlive(p)
		return err
	}
	list := func(deep bool) func(int) error {
		return func(int) error {
			all, err := lister.List(labels.Everything())
			for _, p := range all {
				if deep {
					p = p.DeepCopy()
				}
				runtime.KeepAlive(p)
			}
			return err
		}
	}
	selector, err := harness.FewOf(func(yield func(map[string]string) bool) {
		for _, p := range all {
			if !yield(p.Labels) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	selecting := func(deep bool) func(int) error {
		return func(int) error {
			found, err := lister.List(selector)
			if len(found) == 0 {
				return fmt.Errorf("nothing matches %s", selector)
			}
			for _, p := range found {
				if deep {
					p = p.DeepCopy()
				}
				runtime.KeepAlive(p)
			}
			return err
		}
	}
	for _, t := range []struct {
		name string
		do   func(int) error
	}{
		{"get hot", copied(min(hotObjects, len(all)))},
		{"get cold", copied(len(all))},
		{"get shared", shared},
		{"all shared", list(false)},
		{"all copied", list(true)},
		{"select shared", selecting(false)},
		{"select copied", selecting(true)},
	} {
		if err := m.Time(ctx, t.name, t.do); err != nil {
			return nil, err
		}
	}
	m.Set("read heap B", m.Heap())
	runtime.KeepAlive(inf)
	return m.Sample(), nil
}
