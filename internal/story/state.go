package story

import (
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/health"
)

// IsState reports whether a field describes an object's state rather than what somebody wants it to be: its status, the
// steps of its deletion, and fields that the controllers of Kubernetes write elsewhere.
func IsState(c *change.Change, f *change.FieldChange) bool {
	first, second, key := field(f.Path, 0), field(f.Path, 1), field(f.Path, 2)
	kind := c.Kind.GroupKind()
	switch {
	case first == "status":
		return true
	case first == "metadata":
		switch second {
		case "resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds":
			return true
		case "finalizers": // a Job's controller removes its finalizer from counted pods
			return health.Terminating(c.After) || kind == "Pod"
		case "annotations":
			return controllersAnnotation(key)
		}
		return false
	}
	switch kind {
	case "Pod": // the scheduler's binding
		return first == "spec" && second == "nodeName"
	case "PersistentVolumeClaim":
		return first == "spec" && second == "volumeName"
	case "ReplicaSet.apps": // a rollout's steps, but not a person's kubectl scale
		return first == "spec" && second == "replicas" && c.Owner != nil &&
			(f.Manager == "kube-controller-manager" || f.Manager == change.Unknown)
	}
	return false
}

// controllersAnnotation reports whether the controllers of kube-controller-manager use an annotation for themselves
// (k8s.io/kubernetes: pkg/controller/deployment/util, pkg/controller/volume).
func controllersAnnotation(key string) bool {
	return strings.HasPrefix(key, "deployment.kubernetes.io/") || strings.HasPrefix(key, "pv.kubernetes.io/") ||
		strings.HasPrefix(key, "volume.kubernetes.io/")
}

// field returns the name of a path's step; empty if it does not exist or is not a field.
func field(p diff.Path, i int) string {
	if i >= len(p) || p[i].Kind != diff.Field {
		return ""
	}
	return p[i].Name
}
