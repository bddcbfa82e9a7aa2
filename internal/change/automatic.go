package change

import (
	"slices"
	"strings"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// components are the field managers of the programs of Kubernetes itself. Distributions that are one program are
// named, too.
//
// Source: k8s.io/kubernetes 1.36, whose programs take their names for it, and the API server's own writes.
var components = []string{
	"kube-controller-manager", "cloud-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kube-apiserver", "k3s", "k0s",
}

// bookkeeping are kinds that components and operators write to find each other, or to say what they do.
var bookkeeping = map[string]bool{
	"Event": true, "Event.events.k8s.io": true, "Lease.coordination.k8s.io": true, "Endpoints": true, "EndpointSlice.discovery.k8s.io": true,
}

// Automatic reports whether a change is what controllers do of their own accord: a status, what a component of
// Kubernetes wrote, the coming and going of objects that have a controller, conversions, and kinds that are nothing
// but bookkeeping. What an operator writes elsewhere is not known from what a person's tool writes. A gap and an
// absence are not automatic.
//
// The server does not say who deleted an object: of one that has a controller, that counts as the controller's.
func (c *Change) Automatic() bool {
	kind := c.Resource.Kind
	if c.Resource.Group != "" {
		kind += "." + c.Resource.Group
	}
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

// writtenByComponents judges an update by its fields that are not quiet. Of a field that was removed nobody knows who
// did it: such a field is judged as the others are, and a person's if there are no others.
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

// counted reports whether a field is the finalizer that a Job's controller takes away from a pod that it has counted.
func (c *Change) counted(kind string, f FieldChange) bool {
	return kind == "Pod" && c.Owner != nil && c.Owner.Kind == "Job" && f.Manager == "?" && strings.HasPrefix(f.Path.String(), "metadata.finalizers")
}

// isStatus reports whether a field says how an object is, and not what somebody wants it to be.
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
		return name(0) == "spec" && name(1) == "nodeName" // the scheduler's
	case kind == "PersistentVolumeClaim":
		return name(0) == "spec" && name(1) == "volumeName"
	}
	return false
}
