// Package change holds a change as the tool's rooms hand it to each other, and makes one of two
// versions of an object: what differs, who wrote it, and what is quiet. It asks nobody: the versions
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
	Op       event.Op
	Resource Resource
	// Namespace and Name are empty for a gap.
	Namespace, Name string
	UID             string
	ResourceVersion string
	Owner           *event.Owner
	// Before and After are redacted and shared: read them, do not write them. Before is nil for
	// objects that appear, After for those that go.
	Before, After map[string]any
	// Fields are the differences of an update or a conversion, quiet ones included, in path order.
	Fields []FieldChange
	// Managers are the managedFields entries after the write.
	Managers []event.Manager
	// Manager wrote the change as a whole: the one owner of all that is not quiet; "?" otherwise.
	Manager string
	// Quiet is true for an update of which every field is quiet, and for every conversion.
	Quiet bool
	// At is when it was seen. Since is set where it can have happened long before: after Since. Net says that a list
	// derived it: what happened between the two came to this.
	At, Since time.Time
	Net       bool
	// Time is when it happened, where the object says so; else At.
	Time time.Time
	Gap  *event.GapInfo
	// Absence is set for an absence, which lasted from Since to At.
	Absence *event.Absence
	// Epoch counts the histories of the server, from 1 on; see event.Data.
	Epoch int64
	// Form distinguishes the conversions of one version; see event.Data.
	Form uint64
	// Away is true for a gap that an Away message sums up with others.
	Away bool
	// Blind is true for an update, a conversion, a deletion or what left of which is not known what was before: a
	// purge has removed it. It has no Fields then, whatever it changed.
	Blind bool

	severity event.Severity // see Judge
}

// FieldChange is one changed field and who owns it now.
type FieldChange struct {
	diff.Change
	Manager     string // "?" where the server does not say
	Subresource string
	Quiet       bool
}

// Resource is a kind that the server has, as discovery names it.
type Resource struct {
	Group, Version string
	// Resource is the plural, Singular the lower-case singular, Short the first short name.
	Resource, Singular, Short string
	Kind                      string
	Namespaced                bool
	Categories                []string
	ShortNames                []string
}

// GVR names the resource to the engine.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GroupResource is "deployments.apps", or "pods" in the core group.
func (r Resource) GroupResource() string { return r.GVR().GroupResource().String() }

// Span is when it happened: one moment where the object says so, or where it was seen as it happened; else the
// interval in which it happened.
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

// Gone tells the changes after which the object is not there, or not ours, any more.
func (c *Change) Gone() bool { return c.Op == event.Deleted || c.Op == event.Left }
