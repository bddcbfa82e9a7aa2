package ours

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/bench/harness"
	"github.com/tattler-dev/tattler/informer"
)

// hotObjects is the number of objects that are read repeatedly.
const hotObjects = 100

// shuffled returns the keys of all objects, in random order.
func shuffled[T informer.Object](inf *informer.Informer[T]) ([]informer.Key, error) {
	var keys []informer.Key
	for k, err := range inf.Keys() {
		if err != nil {
			return nil, fmt.Errorf("read keys: %w", err)
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b informer.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys, nil
}

// getting repeatedly reads the objects of the first keys.
func getting[T informer.Object](inf *informer.Informer[T], keys []informer.Key) func(int) error {
	return func(i int) error {
		k := keys[i%len(keys)]
		obj, err := inf.Get(k.Namespace, k.Name)
		if err != nil {
			return fmt.Errorf("read %v: %w", k, err)
		}
		runtime.KeepAlive(obj)
		return nil
	}
}

// ranging reads all objects.
func ranging[T informer.Object](inf *informer.Informer[T], want int) func(int) error {
	return func(int) error {
		n := 0
		for obj, err := range inf.All() {
			if err != nil {
				return err
			}
			runtime.KeepAlive(obj)
			n++
		}
		if n != want {
			return fmt.Errorf("there are %d objects, not %d", n, want)
		}
		return nil
	}
}

// selecting lists the objects that match a selector.
func selecting[T informer.Object](inf *informer.Informer[T], selector labels.Selector) func(int) error {
	return func(int) error {
		n := 0
		for obj, err := range inf.List("", selector) {
			if err != nil {
				return err
			}
			runtime.KeepAlive(obj)
			n++
		}
		if n == 0 {
			return fmt.Errorf("nothing matches %s", selector)
		}
		return nil
	}
}

// readTyped measures reads of one form of storage: all objects for the first time, all again, few
// repeatedly, all in random order.
func readTyped(storage informer.Storage) func(context.Context, harness.Input) (harness.Sample, error) {
	return func(ctx context.Context, in harness.Input) (harness.Sample, error) {
		m := harness.NewMeter()
		s, pods, err := open(ctx, in, informer.WithStorage(storage))
		if err != nil {
			return nil, err
		}
		m.AwaitIdle(ctx)
		keys, err := shuffled(pods)
		if err != nil {
			return nil, err
		}
		hot := keys[:min(hotObjects, len(keys))]
		all, allShared := ranging(pods, len(keys)), ranging(pods.Shared(), len(keys))
		start := time.Now()
		if err := all(0); err != nil {
			return nil, fmt.Errorf("all cold: %w", err)
		}
		m.Set("all cold ns", float64(time.Since(start)))
		if err := each(ctx, m, []timed{{"all hot", all}, {"all shared", allShared}}); err != nil {
			return nil, err
		}
		m.Set("read heap B", m.Heap())
		selector, err := harness.FewOf(func(yield func(map[string]string) bool) {
			for p, err := range pods.Shared().All() {
				if err == nil && !yield(p.Labels) {
					return
				}
			}
		})
		if err != nil {
			return nil, err
		}
		if err := each(ctx, m, []timed{{"select shared", selecting(pods.Shared(), selector)}, {"select copied", selecting(pods, selector)}}); err != nil {
			return nil, err
		}
		err = each(ctx, m, []timed{{"get hot", getting(pods, hot)}, {"get cold", getting(pods, keys)}, {"get shared", getting(pods.Shared(), hot)}})
		if err != nil {
			return nil, err
		}
		runtime.KeepAlive(pods)
		return m.Sample(), s.stop(ctx)
	}
}

// readUntyped measures reads of maps.
func readUntyped(ctx context.Context, in harness.Input) (harness.Sample, error) {
	m := harness.NewMeter()
	s, err := connect(in, informer.Options{})
	if err != nil {
		return nil, err
	}
	pods, err := informer.Unstructured(s.Cluster, podResource)
	if err != nil {
		return nil, err
	}
	if err := sync(ctx, s, pods, in.Server.Objects); err != nil {
		return nil, err
	}
	m.AwaitIdle(ctx)
	keys, err := shuffled(pods)
	if err != nil {
		return nil, err
	}
	err = each(ctx, m, []timed{{"get hot", getting(pods, keys[:min(hotObjects, len(keys))])}, {"get cold", getting(pods, keys)}})
	if err != nil {
		return nil, err
	}
	runtime.KeepAlive(pods)
	return m.Sample(), s.stop(ctx)
}

// timed is a function to time, with the name of its values.
type timed struct {
	name string
	do   func(int) error
}

func each(ctx context.Context, m *harness.Meter, list []timed) error {
	for _, t := range list {
		if err := m.Time(ctx, t.name, t.do); err != nil {
			return err
		}
	}
	return nil
}
