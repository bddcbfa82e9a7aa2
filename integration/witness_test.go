package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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

// witness watches objects by client-go alone, and keeps every version: what tattler log says is compared with them.
type witness struct {
	mu      sync.Mutex
	objects map[string][]sighting           // by "namespace/type/name", in the words of the log
	owned   map[types.UID]map[string]string // the keys of what an object owns
	answers []time.Time                     // when the API server answered
}

// sighting is a version of an object, and when it was seen.
type sighting struct {
	*unstructured.Unstructured
	at   time.Time
	gone bool
}

// witnessed are the kinds that it watches.
var witnessed = map[string]schema.GroupVersionResource{
	"deploy": {Group: "apps", Version: "v1", Resource: "deployments"}, "rs": {Group: "apps", Version: "v1", Resource: "replicasets"},
	"sts": {Group: "apps", Version: "v1", Resource: "statefulsets"}, "pod": {Version: "v1", Resource: "pods"},
	"job": {Group: "batch", Version: "v1", Resource: "jobs"}, "cj": {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"cm": {Version: "v1", Resource: "configmaps"}, "secret": {Version: "v1", Resource: "secrets"}, "node": {Version: "v1", Resource: "nodes"},
	"hpa": {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

// startWitness watches until the test ends.
func startWitness(t *testing.T, c *devcluster.Cluster) *witness {
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
	w := &witness{objects: map[string][]sighting{}, owned: map[types.UID]map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	watching.Go(func() {
		for ; ctx.Err() == nil; wait(500 * time.Millisecond) {
			w.ask(ctx, client.Resource(witnessed["cm"]).Namespace("kube-system"))
		}
	})
	for word, gvr := range witnessed {
		list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			w.see(word, &list.Items[i], false)
		}
		watching.Go(func() {
			if err := w.watch(ctx, client.Resource(gvr), word, list.GetResourceVersion()); ctx.Err() == nil {
				t.Errorf("the witness of %s: %v", word, err)
			}
		})
	}
	return w
}

// ask notes when the API server answers.
func (w *witness) ask(ctx context.Context, client dynamic.ResourceInterface) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := client.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, time.Now())
}

// silence is the longest time between two answers of the API server, from one moment to another.
func (w *witness) silence(from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, last := time.Duration(0), from
	for _, at := range append(slices.Clone(w.answers), to) {
		if at.After(last) && !at.After(to) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return longest
}

// watch sees what follows a version, also where an API server was frozen or away for a while.
func (w *witness) watch(ctx context.Context, client dynamic.ResourceInterface, word, version string) error {
	for ctx.Err() == nil {
		stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			pause()
			continue
		}
		for e := range stream.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if status, bad := e.Object.(*metav1.Status); bad && status.Code != http.StatusGone { // it was frozen
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

func (w *witness) see(word string, o *unstructured.Unstructured, gone bool) {
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
func (w *witness) of(ns, word, name string) []sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.objects[ns+"/"+word+"/"+name]; len(seen) > 0 {
		return seen
	}
	return w.objects["/"+word+"/"+name]
}

// family returns the versions of all that objects own, by their keys.
func (w *witness) family(of []sighting) map[string][]sighting {
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

// podsOf are the versions of a family's pods. Pods of a StatefulSet have the same name one after another.
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

// times are all times that a version of an object says: its managers', its conditions' and its containers'.
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

// wroteSpec is when the spec of a version was written: the last time of a manager, but for those of the status.
func (s sighting) wroteSpec() time.Time {
	var last time.Time
	for _, m := range s.GetManagedFields() {
		if m.Subresource != "status" && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// mayHaveWrittenSpec are the times at which the spec of the first version of a generation may have been written. The API
// server records none for the subresource scale: then it is when the version was seen, give or take a second.
func (s sighting) mayHaveWrittenSpec() []time.Time {
	for _, m := range s.GetManagedFields() {
		if m.Time == nil {
			at := s.at.Truncate(time.Second)
			return []time.Time{at.Add(-time.Second), at, at.Add(time.Second), s.wroteSpec()}
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
