package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tattler-dev/tattler/internal/informerdiff"
)

// quietLimit bounds the wait for quiescence. After failures client-go backs off for up to a minute.
const quietLimit = 3 * time.Minute

// TestJudge compares two managers with client-go's informers, to test the comparison itself.
func TestJudge(t *testing.T) {
	compare(t, func(*testing.T, *rest.Config, *cache.Options) {}, here.writes/4)
}

func compare(t *testing.T, with func(*testing.T, *rest.Config, *cache.Options), writes int) {
	w := newWorkload(t)
	for range writes / 4 {
		w.write()
	}
	theirs := newOperator(t, "client-go", func(*rest.Config, *cache.Options) {})
	ours := newOperator(t, "ours", func(cfg *rest.Config, o *cache.Options) { with(t, cfg, o) })
	theirs.run(t)
	ours.run(t)
	w.quiet(theirs, ours, true) // a first list may be older than the last write, which then arrives as an event
	for i := range writes {
		w.write()
		if i%50 == 49 {
			w.quiet(theirs, ours, i%100 < 50 && i > 99)
		}
		if i%100 == 99 {
			theirs.line.cut()
			ours.line.cut()
		}
	}
	w.quiet(theirs, ours, true)
}

// quiet waits until both operators have reconciled the server's state and have the same caches, and until their handlers
// have received the same events, which may come after the reconciles. After a failure it does not compare events: each may
// have received a different series. It then makes sure that all watches work again, and that the handlers have received
// everything: what failed or came later would make the next comparison fail.
func (w *workload) quiet(theirs, ours *operator, failed bool) {
	w.Helper()
	var marks []mark
	if failed {
		marks = w.mark()
	}
	truth, err := w.truth()
	if err != nil {
		w.Fatal(err)
	}
	until(w.T, quietLimit, func() error {
		for _, o := range []*operator{theirs, ours} {
			record := o.record()
			maps.DeleteFunc(record, func(_, what string) bool { return what == "gone" })
			if d := difference(truth, record); d != "" {
				return fmt.Errorf("%s: %s", o.name, d)
			}
		}
		if err := w.same(theirs, ours); err != nil {
			return err
		}
		if failed {
			return errors.Join(theirs.received(marks), ours.received(marks))
		}
		return events(theirs, ours)
	})
	for _, o := range []*operator{theirs, ours} {
		if failed { // otherwise, what both have yet to receive belongs to the next comparison
			o.collect()
		}
		clear(o.events)
		o.requests.clear()
	}
}

// events compares the events of all handlers since the last comparison.
func events(theirs, ours *operator) error {
	theirs.collect()
	ours.collect()
	for _, kind := range slices.Sorted(maps.Keys(theirs.handlers)) {
		a, b := informerdiff.PerKey(theirs.events[kind]), informerdiff.PerKey(ours.events[kind]) // ConfigMaps have two informers
		if d := informerdiff.Differ(a, b, false); d != "" {
			return fmt.Errorf("handler of %s: %s\nrequests since the last comparison\n%s:\n  %s\n%s:\n  %s",
				kind, d, theirs.name, &theirs.requests, ours.name, &ours.requests)
		}
	}
	return nil
}

func difference(want, got map[string]string) string {
	var out []string
	for key := range want {
		if want[key] != got[key] {
			out = append(out, fmt.Sprintf("%s: want %q, got %q", key, want[key], got[key]))
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			out = append(out, fmt.Sprintf("%s: got %q, it is gone", key, got[key]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n  ")
}

// same compares the results of all kinds of reads from the caches.
func (w *workload) same(theirs, ours *operator) error {
	widgets, secrets := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	widgets.SetGroupVersionKind(widgetKind)
	secrets.SetGroupVersionKind(secretKind)
	for _, tc := range []struct {
		what string
		list client.ObjectList
		opts []client.ListOption
	}{
		{"pods", &corev1.PodList{}, nil},
		{"pods of a namespace", &corev1.PodList{}, []client.ListOption{client.InNamespace("default")}},
		{"pods of a node", &corev1.PodList{}, []client.ListOption{client.MatchingFields{byNode: "node-1"}}},
		{"pods of a node and namespace", &corev1.PodList{}, []client.ListOption{client.InNamespace("default"), client.MatchingFields{byNode: "node-2"}}},
		{"pods with a label", &corev1.PodList{}, []client.ListOption{client.HasLabels{"n"}}},
		{"pods, not copied", &corev1.PodList{}, []client.ListOption{client.UnsafeDisableDeepCopy}},
		{"ConfigMaps of some namespaces", &corev1.ConfigMapList{}, nil},
		{"widgets", widgets, nil},
		{"widgets of a namespace", widgets.DeepCopy(), []client.ListOption{client.InNamespace("kube-public")}},
		{"secrets", secrets, nil},
	} {
		a, err := listed(theirs, tc.list, tc.opts)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", theirs.name, tc.what, err)
		}
		b, err := listed(ours, tc.list, tc.opts)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", ours.name, tc.what, err)
		}
		if len(a) != len(b) {
			return fmt.Errorf("%s: client-go has %d, ours %d", tc.what, len(a), len(b))
		}
		for i := range a {
			if !equality.Semantic.DeepEqual(a[i], b[i]) {
				return fmt.Errorf("%s:\n  %+v\n  %+v", tc.what, a[i], b[i])
			}
		}
	}
	return nil
}

// listed returns the objects of a list, sorted by key.
func listed(o *operator, list client.ObjectList, opts []client.ListOption) ([]runtime.Object, error) {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := o.mgr.GetClient().List(context.Background(), list, opts...); err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(objects, func(a, b runtime.Object) int {
		return strings.Compare(client.ObjectKeyFromObject(a.(client.Object)).String(), client.ObjectKeyFromObject(b.(client.Object)).String())
	})
	return objects, nil
}
