package informer

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
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
