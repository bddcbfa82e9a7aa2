package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

const (
	reportGroup = "wgpolicyk8s.io"
	manager     = "crd-audit"
	managedBy   = "app.kubernetes.io/managed-by"
	stampKey    = "crd-audit/object"
)

var (
	namespaced = schema.GroupVersionResource{Group: reportGroup, Version: "v1alpha2", Resource: "policyreports"}
	ofCluster  = schema.GroupVersionResource{Group: reportGroup, Version: "v1alpha2", Resource: "clusterpolicyreports"}
)

// reports keeps a report for each object that violates a policy. It is named after the object's UID and owned by the
// object, so that it is deleted with it.
type reports struct {
	client dynamic.Interface
	queue  workqueue.TypedRateLimitingInterface[place]

	mu      sync.Mutex
	written map[place]*unstructured.Unstructured // what the API server has, as far as we know
	wanted  map[place]*unstructured.Unstructured // what it should have; nil: none
}

// place is where a report is.
type place struct{ namespace, name string }

// newReports reads the reports that exist.
func newReports(ctx context.Context, cfg *rest.Config) (*reports, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	r := &reports{
		client: client, written: map[place]*unstructured.Unstructured{}, wanted: map[place]*unstructured.Unstructured{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[place](200*time.Millisecond, time.Minute)),
	}
	for _, gvr := range []schema.GroupVersionResource{namespaced, ofCluster} {
		list, err := client.Resource(gvr).List(ctx, metav1.ListOptions{LabelSelector: managedBy + "=" + manager})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("--report: the API server has no %s: install the CRDs of %s/v1alpha2", gvr.Resource, reportGroup)
		} else if err != nil {
			return nil, fmt.Errorf("read reports: %w", err)
		}
		for i := range list.Items {
			r.written[place{list.Items[i].GetNamespace(), list.Items[i].GetName()}] = &list.Items[i]
		}
	}
	return r, nil
}

func placeOf(object *unstructured.Unstructured) place {
	return place{object.GetNamespace(), manager + "-" + string(object.GetUID())}
}

// carried returns the violations that an earlier run reported for an object, if it has not changed since.
func (r *reports) carried(object *unstructured.Unstructured) []finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.written[placeOf(object)]
	if report == nil || report.GetAnnotations()[stampKey] != stamp(object.Object) {
		return nil
	}
	var all []finding
	results, _, _ := unstructured.NestedSlice(report.Object, "results")
	for _, item := range results {
		result, _ := item.(map[string]any)
		policy, _ := result["policy"].(string)
		text, _ := result["message"].(string)
		all = append(all, finding{policy: policy, text: text, stamp: stamp(object.Object)})
	}
	return all
}

// set queues the report of an object to be written or, without findings, deleted.
func (r *reports) set(object *unstructured.Unstructured, found []finding) {
	at := placeOf(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	var now *unstructured.Unstructured
	if len(found) > 0 {
		now = report(at, object, found)
	}
	if _, pending := r.wanted[at]; pending || !equal(r.written[at], now) {
		r.wanted[at] = now
		r.queue.Add(at)
	}
}

// equal compares what reports say.
func equal(a, b *unstructured.Unstructured) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.GetAnnotations()[stampKey] == b.GetAnnotations()[stampKey] && equality.Semantic.DeepEqual(a.Object["results"], b.Object["results"])
}

func report(at place, object *unstructured.Unstructured, found []finding) *unstructured.Unstructured {
	var results []any
	for _, f := range found {
		results = append(results, map[string]any{"source": manager, "policy": f.policy, "message": f.text, "result": "fail"})
	}
	kind := "PolicyReport"
	if at.namespace == "" {
		kind = "ClusterPolicyReport"
	}
	ref := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "name": object.GetName(), "uid": string(object.GetUID())}
	scope := map[string]any{"namespace": object.GetNamespace()}
	for k, v := range ref {
		scope[k] = v
	}
	meta := map[string]any{
		"name": at.name, "labels": map[string]any{managedBy: manager}, "ownerReferences": []any{ref},
		"annotations": map[string]any{stampKey: stamp(object.Object)},
	}
	if at.namespace != "" {
		meta["namespace"] = at.namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": namespaced.GroupVersion().String(), "kind": kind, "metadata": meta,
		"scope": scope, "results": results, "summary": map[string]any{"fail": int64(len(found))},
	}}
}

// run writes reports until ctx ends. Failures are retried, at longer and longer intervals.
func (r *reports) run(ctx context.Context) {
	defer context.AfterFunc(ctx, r.queue.ShutDown)()
	for {
		at, over := r.queue.Get()
		if over {
			return
		}
		if err := r.write(ctx, at); err == nil {
			r.queue.Forget(at)
		} else if ctx.Err() == nil {
			slog.Warn("a report cannot be written, and is tried again", "namespace", at.namespace, "report", at.name, "error", err)
			r.queue.AddRateLimited(at)
		}
		r.queue.Done(at)
	}
}

// write writes or deletes one report.
func (r *reports) write(ctx context.Context, at place) error {
	r.mu.Lock()
	wanted := r.wanted[at]
	r.mu.Unlock()
	var api dynamic.ResourceInterface = r.client.Resource(ofCluster)
	if at.namespace != "" {
		api = r.client.Resource(namespaced).Namespace(at.namespace)
	}
	var err error
	if wanted != nil {
		_, err = api.Apply(ctx, at.name, wanted, metav1.ApplyOptions{FieldManager: manager, Force: true})
	} else if err = api.Delete(ctx, at.name, metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
		err = nil
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written[at] = wanted; wanted == nil {
		delete(r.written, at)
	}
	if r.wanted[at] == wanted {
		delete(r.wanted, at)
	}
	return nil
}
