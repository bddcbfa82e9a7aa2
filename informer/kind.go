package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOf returns the kind of a Go type: from the user's scheme, or from the package path within k8s.io/api. That avoids
// linking every Kubernetes type, as client-go's scheme would.
func kindOf(t reflect.Type, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, errors.New("the type must be a pointer to a struct, such as *corev1.Pod")
	}
	if scheme != nil {
		obj, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
		if kinds, _, err := scheme.ObjectKinds(obj); ok && err == nil && len(kinds) > 0 {
			return kinds[0], nil
		}
	}
	if gv, ok := builtin(t.Elem().PkgPath()); ok {
		return gv.WithKind(t.Elem().Name()), nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("unknown kind of %v: add it to Options.Scheme", t)
}

// groups maps directories of k8s.io/api to groups that are not named directory + ".k8s.io".
var groups = map[string]string{
	"core":              "",
	"apps":              "apps",
	"autoscaling":       "autoscaling",
	"batch":             "batch",
	"extensions":        "extensions",
	"policy":            "policy",
	"rbac":              "rbac.authorization.k8s.io",
	"flowcontrol":       "flowcontrol.apiserver.k8s.io",
	"apiserverinternal": "internal.apiserver.k8s.io",
}

// builtin returns the group and version of a package of k8s.io/api.
func builtin(pkg string) (schema.GroupVersion, bool) {
	if _, vendored, ok := strings.Cut(pkg, "/vendor/"); ok {
		pkg = vendored
	}
	rest, ours := strings.CutPrefix(pkg, "k8s.io/api/")
	dir, version, ok := strings.Cut(rest, "/")
	if !ours || !ok || strings.Contains(version, "/") {
		return schema.GroupVersion{}, false
	}
	group, ok := groups[dir]
	if !ok {
		group = dir + ".k8s.io"
	}
	return schema.GroupVersion{Group: group, Version: version}, true
}

// resourceOf guesses a kind's resource by the usual plural rules, which is right for every built-in kind and for custom
// resources with a regular plural.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

// kindRetry is the wait after the API server did not answer.
const kindRetry = time.Second

// Kind asks the API server for the kind of the source's resource, and whether it is namespaced. It returns an error if the server refuses or does not serve
// the resource; while the server does not answer, or fails, it retries until ctx ends.
func (s *Source) Kind(ctx context.Context) (kind schema.GroupKind, namespaced bool, err error) {
	for {
		kind, namespaced, err = s.askKind(ctx)
		var answered apierrors.APIStatus
		if err == nil || errors.As(err, &answered) && answered.Status().Code/100 == 4 && !apierrors.IsTooManyRequests(err) {
			return kind, namespaced, err
		}
		select {
		case <-time.After(kindRetry):
		case <-ctx.Done():
			return kind, false, errors.Join(ctx.Err(), err)
		}
	}
}

func (s *Source) askKind(ctx context.Context) (kind schema.GroupKind, namespaced bool, err error) {
	gvr := s.served()
	raw, err := s.cluster.Get(ctx, path.Dir(s.cluster.ResourcePath(gvr, "", "")), nil)
	if err != nil {
		return kind, false, fmt.Errorf("find the kind of %s: %w", gvr.GroupResource(), err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return kind, false, fmt.Errorf("find the kind of %s: %w", gvr.GroupResource(), err)
	}
	for _, r := range list.APIResources {
		if r.Name == gvr.Resource {
			return schema.GroupKind{Group: gvr.Group, Kind: r.Kind}, r.Namespaced, nil
		}
	}
	return kind, false, fmt.Errorf("find the kind of %s: %w", gvr.GroupResource(), apierrors.NewNotFound(gvr.GroupResource(), ""))
}
