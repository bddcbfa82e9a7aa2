package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubewatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/devcluster"
)

// observer watches objects with client-go alone and keeps every version, for comparison with the output of
// tattler log.
type observer struct {
	mu      sync.Mutex
	objects map[string][]sighting           // by "namespace/type/name", in the words of the log
	owned   map[types.UID]map[string]string // the keys of an object's dependents
	answers []time.Time                     // times of the API server's responses
}

// sighting is a version of an object and the time at which it was seen.
type sighting struct {
	*unstructured.Unstructured
	at   time.Time
	gone bool
}

// observedKinds are the kinds that an observer watches.
var observedKinds = map[string]schema.GroupVersionResource{
	"deploy": {Group: "apps", Version: "v1", Resource: "deployments"}, "rs": {Group: "apps", Version: "v1", Resource: "replicasets"},
	"sts": {Group: "apps", Version: "v1", Resource: "statefulsets"}, "pod": {Version: "v1", Resource: "pods"},
	"job": {Group: "batch", Version: "v1", Resource: "jobs"}, "cj": {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"cm": {Version: "v1", Resource: "configmaps"}, "secret": {Version: "v1", Resource: "secrets"}, "node": {Version: "v1", Resource: "nodes"},
	"hpa": {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

// startObserver watches until the test ends.
func startObserver(t *testing.T, c *devcluster.Cluster) *observer {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &observer{objects: map[string][]sighting{}, owned: map[types.UID]map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	watching.Go(func() {
		for ; ctx.Err() == nil; wait(500 * time.Millisecond) {
			w.ask(ctx, client.Resource(observedKinds["cm"]).Namespace("kube-system"))
		}
	})
	for word, gvr := range observedKinds {
		list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			w.see(word, &list.Items[i], false)
		}
		watching.Go(func() {
			if err := w.watch(ctx, client.Resource(gvr), word, list.GetResourceVersion()); ctx.Err() == nil {
				t.Errorf("observe %s: %v", word, err)
			}
		})
	}
	return w
}

// ask records when the API server answers.
func (w *observer) ask(ctx context.Context, client dynamic.ResourceInterface) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // the next attempt counts
	defer cancel()
	if _, err := client.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, time.Now())
}

// silence returns the longest time between two responses of the API server in an interval, or in the part of it that the
// observer saw.
func (w *observer) silence(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest time.Duration
	for i, at := range w.answers {
		if i > 0 && at.After(from) && w.answers[i-1].Before(to) {
			longest = max(longest, at.Sub(w.answers[i-1]))
		}
	}
	return longest
}

// watch receives the events after a version, also across outages of the API server.
func (w *observer) watch(ctx context.Context, client dynamic.ResourceInterface, word, version string) error {
	for ctx.Err() == nil {
		stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			pause()
			continue
		}
		for e := range stream.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if status, bad := e.Object.(*metav1.Status); bad && status.Code != http.StatusGone { // the server was frozen
				break
			}
			if !ok || e.Type == kubewatch.Error {
				stream.Stop()
				return fmt.Errorf("%v", e.Object)
			}
			if version = o.GetResourceVersion(); e.Type != kubewatch.Bookmark {
				w.see(word, o, e.Type == kubewatch.Deleted)
			}
		}
		stream.Stop()
		pause()
	}
	return nil
}

func (w *observer) see(word string, o *unstructured.Unstructured, gone bool) {
	key := o.GetNamespace() + "/" + word + "/" + o.GetName()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[key] = append(w.objects[key], sighting{o, time.Now(), gone})
	for _, owner := range o.GetOwnerReferences() {
		if w.owned[owner.UID] == nil {
			w.owned[owner.UID] = map[string]string{}
		}
		w.owned[owner.UID][key] = word
	}
}

// of returns the versions of an object.
func (w *observer) of(ns, word, name string) []sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.objects[ns+"/"+word+"/"+name]; len(seen) > 0 {
		return seen
	}
	return w.objects["/"+word+"/"+name]
}

// family returns the versions of all dependents, by their keys.
func (w *observer) family(of []sighting) map[string][]sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string][]sighting{}
	var add func(of []sighting)
	add = func(of []sighting) {
		for _, s := range of {
			for key := range w.owned[s.GetUID()] {
				if _, known := all[key]; !known {
					all[key] = w.objects[key]
					add(all[key])
				}
			}
		}
	}
	add(of)
	return all
}

// podsOf returns the versions of a family's pods. Successive pods of a StatefulSet have the same name.
func podsOf(family map[string][]sighting) map[types.UID][]sighting {
	pods := map[types.UID][]sighting{}
	for key, seen := range family {
		for _, s := range seen {
			if strings.Contains(key, "/pod/") {
				pods[s.GetUID()] = append(pods[s.GetUID()], s)
			}
		}
	}
	return pods
}

// times returns all times in a version of an object: its managers', its conditions' and its containers'.
func (s sighting) times() map[int64]bool {
	all := map[int64]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				all[at.Unix()] = true
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(s.Object)
	return all
}

// wroteSpec returns the time at which the spec was written: the last time of a manager that does not write the
// status.
func (s sighting) wroteSpec() time.Time {
	var last time.Time
	for _, m := range s.GetManagedFields() {
		if m.Subresource != "status" && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// mayHaveWrittenSpec returns the possible times, the earliest first, of the write of the spec of the first version of a generation.
// The API server records no time for the subresource scale: then it is the time at which the version was seen,
// plus or minus the delay of one of the two.
func (s sighting) mayHaveWrittenSpec() []time.Time {
	for _, m := range s.GetManagedFields() {
		if m.Time == nil {
			var all []time.Time
			for d := -near; d <= near; d += time.Second {
				all = append(all, s.at.Truncate(time.Second).Add(d))
			}
			return append(all, s.wroteSpec())
		}
	}
	return []time.Time{s.wroteSpec()}
}

// get reads a field.
func (s sighting) get(path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(s.Object, path...)
	return v
}

func (s sighting) number(path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(s.Object, path...)
	return n
}

// list reads a list of objects.
func (s sighting) list(path ...string) (all []sighting) {
	list, _ := s.get(path...).([]any)
	for _, e := range list {
		if o, ok := e.(map[string]any); ok {
			all = append(all, sighting{Unstructured: &unstructured.Unstructured{Object: o}})
		}
	}
	return all
}

// condition reads a condition.
func (s sighting) condition(kind string) sighting {
	for _, c := range s.list("status", "conditions") {
		if c.get("type") == kind {
			return c
		}
	}
	return sighting{Unstructured: &unstructured.Unstructured{}}
}
