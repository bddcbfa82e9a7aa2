package dropin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/internal/informerdiff"
)

// catchUpLimit bounds the wait for informers that were cut off; client-go waits up to a minute between
// attempts.
const catchUpLimit = 3 * time.Minute

// world is the pods on the server, and the informers.
type world struct {
	*testing.T
	rng   *rand.Rand
	pairs []*pair
	made  int
	marks int
	trace []string
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	last := w.trace[max(0, len(w.trace)-60):]
	w.Fatalf("%s\nafter:\n  %s\nrepeat with %s=%d", fmt.Sprintf(format, args...), strings.Join(last, "\n  "), seedEnv, here.seed)
}

// each does something on all sides.
func (w *world) each(do func(*side)) {
	for _, p := range w.pairs {
		do(p.theirs)
		do(p.ours)
	}
}

// write changes a random pod; the change may be refused.
func (w *world) write() {
	w.made++
	namespace, name := []string{"default", "kube-public"}[w.rng.IntN(2)], fmt.Sprintf("p%d", w.rng.IntN(12))
	what := w.rng.IntN(8)
	w.note("write %s/%s: %d", namespace, name, what)
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	api := here.client.CoreV1().Pods(namespace)
	var err error
	switch {
	case what < 3:
		_, err = api.Create(ctx, w.pod(name), metav1.CreateOptions{})
	case what < 5:
		patch := fmt.Sprintf(`{"metadata":{"labels":{"app":"a%d"},"annotations":{"n":"%d"}}}`, w.rng.IntN(3), w.made)
		_, err = api.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	case what < 6:
		patch := fmt.Sprintf(`{"status":{"phase":"Running","podIP":"10.0.0.%d","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`, w.made%250)
		_, err = api.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	case what < 7:
		err = api.Delete(ctx, name, now)
	default: // recreate it under the same name
		if err = api.Delete(ctx, name, now); err == nil {
			_, err = api.Create(ctx, w.pod(name), metav1.CreateOptions{})
		}
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		w.fail("write: %v", err)
	}
}

var now = metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

func (w *world) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": fmt.Sprintf("a%d", w.rng.IntN(3))}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: fmt.Sprintf("image:%d", w.made), Env: []corev1.EnvVar{{Name: "TEXT", Value: "<é\n\">"}},
		}}},
	}
}

// awaitAll waits until every handler has received all writes. The first mark may arrive within a list, before
// other objects of it; the second arrives by a watch.
func (w *world) awaitAll() {
	w.Helper()
	for range 2 {
		key, version := w.mark()
		deadline := time.After(catchUpLimit)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for err := errors.New("not checked yet"); err != nil; {
			err = nil
			for _, p := range w.pairs {
				err = errors.Join(err, named(p.theirs.has(key, version), "client-go beside "+p.name), named(p.ours.has(key, version), p.name))
			}
			select {
			case <-tick.C:
			case <-deadline:
				if err != nil {
					w.fail("after %v: %v", catchUpLimit, err)
				}
			}
		}
	}
}

func named(err error, who string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", who, err)
}

// mark writes to a separate pod, and returns its key and version.
func (w *world) mark() (key, version string) {
	w.Helper()
	w.marks++
	api := here.client.CoreV1().Pods("default")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"mark":"%d"}}}`, w.marks)
	p, err := api.Patch(w.Context(), "mark", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		mark := w.pod("mark")
		mark.Labels["app"] = "a0" // selected by every informer
		p, err = api.Create(w.Context(), mark, metav1.CreateOptions{})
	}
	if err != nil {
		w.fail("mark: %v", err)
	}
	return "default/mark", p.ResourceVersion
}

// compare compares the sides after a step. If stormy, writes continued while the informers were cut off, so
// each may have skipped different versions; if failed, relists may repeat known states.
func (w *world) compare(failed, stormy bool) {
	w.Helper()
	for _, p := range w.pairs {
		for n := range p.theirs.handlers {
			a, b := p.theirs.handlers[n].Take(), p.ours.handlers[n].Take()
			if n == 0 {
				if err := errors.Join(named(follow(p.theirs.state, a), "client-go"), named(follow(p.ours.state, b), "ours")); err != nil {
					w.fail("%s: %v", p.name, err)
				}
			}
			if stormy {
				continue
			}
			if failed {
				a, b = informerdiff.News(a), informerdiff.News(b)
			}
			if d := informerdiff.Differ(a, b, failed); d != "" {
				w.fail("%s: handler %d: %s", p.name, n, d)
			}
		}
		if d := informerdiff.Views(p.theirs.informer.GetIndexer(), p.ours.informer.GetIndexer(), unnamed(p)); d != "" {
			w.fail("%s: the stores differ: %s", p.name, d)
		}
		if a, b := fmt.Sprint(p.theirs.state), fmt.Sprint(p.ours.state); a != b {
			w.fail("%s: client-go's handler has %s, ours %s", p.name, a, b)
		}
	}
}

// unnamed is an object that does not exist.
func unnamed(p *pair) any {
	return &metav1.ObjectMeta{Namespace: "default", Name: "nobody", Labels: map[string]string{"app": "a1"}}
}

// follow applies calls to a handler's state, and returns an error for calls that contradict it.
func follow(state map[string]string, calls []informerdiff.Call) error {
	for _, c := range calls {
		known, ok := state[c.Key]
		switch c.Kind {
		case informerdiff.Added:
			if ok {
				return fmt.Errorf("%s, but it existed at %s", c, known)
			}
			state[c.Key] = informerdiff.Version(c.New)
		case informerdiff.Updated:
			if known != informerdiff.Version(c.Old) {
				return fmt.Errorf("%s, but it was at %s", c, known)
			}
			state[c.Key] = informerdiff.Version(c.New)
		case informerdiff.Deleted:
			if !ok {
				return fmt.Errorf("%s, but it did not exist", c)
			}
			delete(state, c.Key)
		}
	}
	return nil
}
