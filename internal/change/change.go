// Package change defines a change, as passed between the tool's packages, and builds one from two versions of
// an object: its differences, their writers, and whether they are quiet. It makes no requests: the versions
// come from a stream or from the journal.
package change

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/meta"
)

// Change is one change of one object, a gap or an absence.
type Change struct {
	Meta
	Names
	// Seq is the change's number in the journal; 0 if it was not read from one.
	Seq int64
	// Before and After are redacted and shared; do not modify them. Before is nil for objects that appear,
	// After for objects that disappear.
	Before, After map[string]any
	// Fields are the differences of an update or a conversion, quiet ones included, in path order.
	Fields []FieldChange
	// Managers are the managedFields entries after the write.
	Managers []event.Manager
	// Away is set for a gap that an Away message reports together with others.
	Away bool
	// Unkeyed is set for an update or a conversion of which lists were compared without the kind's schema.
	Unkeyed bool
	// Blind is set for an update, conversion, deletion or departure whose earlier state is unknown, because a
	// purge removed it. It has no Fields then, whatever it changed.
	Blind bool
	// Known are further versions of an object that is gone, which Build uses to narrow the interval, and Successor is the
	// next object of that name. Build removes them.
	Known     []map[string]any
	Successor map[string]any

	unmoved []bool // for each of Managers, whether its entry is older than the change; nil: unknown
}

// FieldChange is a changed field and its current owner.
type FieldChange struct {
	diff.Change
	Manager     string // "?" if the server does not record it
	Subresource string
	Quiet       bool
}

// Meta is the identity of a change.
type Meta = meta.Meta

// Kind is the kind of a changed object.
type Kind = meta.Kind

// Names are a kind's names for people: the lower-case singular and the first short name.
type Names struct{ Singular, Short string }

// Resource is a resource type of the server, as named by discovery.
type Resource struct {
	Group, Version string
	// Resource is the plural, Singular the lower-case singular, Short the first short name.
	Resource, Singular, Short string
	Kind                      string
	Namespaced                bool
	Categories                []string
	ShortNames                []string
}

// ID returns the kind of a change of the resource.
func (r Resource) ID() Kind {
	return Kind{Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind, Namespaced: r.Namespaced}
}

// Names returns the resource's names for people.
func (r Resource) Names() Names { return Names{r.Singular, r.Short} }

// GVR returns the resource's name for the engine.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GroupResource is "deployments.apps", or "pods" in the core group.
func (r Resource) GroupResource() string { return r.GVR().GroupResource().String() }

// Crossed reports whether the object entered or left the selection.
func (c *Change) Crossed() bool { return c.Op == event.Entered || c.Op == event.Left }

// Gone reports whether the object no longer exists, or no longer matches, after the change.
func (c *Change) Gone() bool { return c.Op == event.Deleted || c.Op == event.Left }
