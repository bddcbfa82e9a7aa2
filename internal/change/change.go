// Package change defines a change, as passed between the tool's packages, and builds one from two versions of
// an object: its differences, their writers, and whether they are quiet. It makes no requests: the versions
// come from a stream or from the journal.
package change

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
)

// Change is one change of one object, a gap or an absence.
type Change struct {
	// Seq is the change's number in the journal; 0 if it was not read from one.
	Seq      int64
	Op       event.Op
	Resource Resource
	// Namespace and Name are empty for a gap.
	Namespace, Name string
	UID             string
	ResourceVersion string
	Owner           *event.Owner
	// Before and After are redacted and shared; do not modify them. Before is nil for objects that appear,
	// After for objects that disappear.
	Before, After map[string]any
	// Fields are the differences of an update or a conversion, quiet ones included, in path order.
	Fields []FieldChange
	// Managers are the managedFields entries after the write.
	Managers []event.Manager
	// Manager wrote the change as a whole: the only owner of all fields that are not quiet; otherwise "?".
	Manager string
	// Quiet is set for an update whose fields are all quiet, and for every conversion.
	Quiet bool
	// At is when the change was seen. Since is set if it may have happened long before: then it happened after
	// Since. Net is set if a list derived the change, as the net result of that interval.
	At, Since time.Time
	Net       bool
	// Time is when it happened, if the object records that; else At.
	Time time.Time
	Gap  *event.GapInfo
	// Absence is set for an absence, which lasted from Since to At.
	Absence *event.Absence
	// Epoch counts the histories of the server, from 1; see event.Data.
	Epoch int64
	// Form distinguishes the conversions of one version; see event.Data.
	Form uint64
	// Away is set for a gap that an Away message reports together with others.
	Away bool
	// Blind is set for an update, conversion, deletion or departure whose earlier state is unknown, because a
	// purge removed it. It has no Fields then, whatever it changed.
	Blind bool

	severity event.Severity // see Judge
}

// FieldChange is a changed field and its current owner.
type FieldChange struct {
	diff.Change
	Manager     string // "?" if the server does not record it
	Subresource string
	Quiet       bool
}

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

// GVR returns the resource's name for the engine.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GroupResource is "deployments.apps", or "pods" in the core group.
func (r Resource) GroupResource() string { return r.GVR().GroupResource().String() }

// Span returns when the change happened: a single moment if the object records it or it was seen as it
// happened; otherwise the interval in which it happened.
func (c *Change) Span() (from, to time.Time) {
	at := c.Time
	if at.IsZero() {
		at = c.At
	}
	if c.Since.IsZero() || !at.Equal(c.At) || c.Since.After(c.At) {
		return at, at
	}
	return c.Since, c.At
}

// Gone reports whether the object no longer exists, or no longer matches, after the change.
func (c *Change) Gone() bool { return c.Op == event.Deleted || c.Op == event.Left }
