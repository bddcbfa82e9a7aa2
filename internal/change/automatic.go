package change

import (
	"slices"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// components are the field managers of Kubernetes' own programs, including single-binary distributions.
//
// Source: k8s.io/kubernetes 1.36, whose programs use their names as managers, and the API server's own writes.
var components = []string{
	"kube-controller-manager", "cloud-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kube-apiserver", "k3s", "k0s",
}

// bookkeeping are kinds that components and operators write to find each other or to report what they do.
var bookkeeping = map[string]bool{
	"Event": true, "Event.events.k8s.io": true, "Lease.coordination.k8s.io": true, "Endpoints": true, "EndpointSlice.discovery.k8s.io": true,
}

// Automatic reports whether a change is controllers' routine: a status, a write by a Kubernetes component,
// objects with a controller that appear and disappear, conversions, and bookkeeping kinds. An operator's other
// writes cannot be distinguished from those of a person's tool. Gaps and absences are not automatic.
//
// The server does not record who deleted an object; the deletion of an object with a controller counts as the
// controller's.
func (c *Change) Automatic() bool {
	kind := c.Kind.GroupKind()
	switch {
	case c.Op == event.Gap, c.Op == event.Absent:
		return false
	case c.Op == event.Converted, bookkeeping[kind]:
		return true
	case c.Op == event.Updated:
		return c.writtenByComponents(kind)
	default:
		return c.Owner != nil || slices.Contains(components, c.Manager)
	}
}

// writtenByComponents judges an update by its fields that are not quiet. The writer of a removed field is
// unknown: it is judged like the other fields, or as a person's if there are no others.
func (c *Change) writtenByComponents(kind string) bool {
	unknown := 0
	for _, f := range c.Fields {
		switch {
		case f.Quiet, isStatus(kind, f), c.counted(kind, f):
		case f.Manager == "?":
			unknown++
		case !slices.Contains(components, f.Manager):
			return false
		default:
			return true
		}
	}
	return unknown == 0
}

// counted reports whether a field is the finalizer that a Job's controller removes from a pod once it has
// counted it.
func (c *Change) counted(kind string, f FieldChange) bool {
	return kind == "Pod" && c.Owner != nil && c.Owner.Kind == "Job" && f.Manager == "?" &&
		len(f.Path) > 1 && f.Path[0].Name == "metadata" && f.Path[1].Name == "finalizers"
}

// isStatus reports whether a field describes an object's state, as opposed to its desired state.
func isStatus(kind string, f FieldChange) bool {
	switch name := func(i int) string {
		if i >= len(f.Path) || f.Path[i].Kind != diff.Field {
			return ""
		}
		return f.Path[i].Name
	}; {
	case f.Subresource == "status", name(0) == "status":
		return true
	case name(0) == "metadata":
		return slices.Contains([]string{"resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"}, name(1))
	case kind == "Pod":
		return name(0) == "spec" && name(1) == "nodeName" // written by the scheduler
	case kind == "PersistentVolumeClaim":
		return name(0) == "spec" && name(1) == "volumeName"
	}
	return false
}

// IsComponent reports whether a field manager is one of Kubernetes' own programs.
func IsComponent(manager string) bool { return slices.Contains(components, manager) }
