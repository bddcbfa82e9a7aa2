// Package meta is the identity of a change: what happened to which object, when, and who wrote it.
//
// A recorded row, a change that is built and an event share it, so no code copies its fields one by one. It is a package
// of its own because the journal and the changes do not import each other.
package meta

import (
	"cmp"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// Meta is what is known of a change without its objects.
type Meta struct {
	// Op is what happened.
	Op event.Op
	// Kind is the object's kind; for a gap, the kind of the stream.
	Kind Kind
	// Namespace is the object's; for a gap, the stream's.
	Namespace string
	// Name and UID name the object. Without a UID (client-go's fakes) its namespace and name identify it.
	Name, UID string
	// ResourceVersion is the object's version after the change.
	ResourceVersion string
	// Time is when the change happened, if the object records that; else the latest moment at which it can have happened:
	// At, when it was seen, except that a missed deletion came before the creation of the object's successor.
	Time, At time.Time
	// Since is set if the change happened between Since and At; see Span. Net says that a list derived it: the sum of all changes
	// between the two.
	Since time.Time
	Net   bool
	// Manager wrote the change as a whole: the only owner of all fields that are not quiet; otherwise "?", or empty.
	Manager string
	// Owner is the object's controller; nil if it has none.
	Owner *event.Owner
	// Quiet marks an update of quiet fields only, and every conversion.
	Quiet bool
	// Routine marks a change that a story tells, such as a status during a rollout or the creation of a workload's pod. Readers
	// that show stories leave it out.
	Routine bool
	// Severity is how severe the change is, judged once by its objects; empty: not judged yet. See change.Change.Severity.
	Severity event.Severity
	// Gap describes what was missed where Op is Gap; else nil.
	Gap *event.GapInfo
	// Absence describes the absence between Since and At where Op is Absent; else nil. Kind is then AbsenceKind.
	Absence *event.Absence
	// Epoch counts the server's histories: ResourceVersion belongs to this one. 0 and 1 both mean the first.
	Epoch int64
	// Form distinguishes changes that would otherwise have the same id (see event.Data); usually 0.
	Form uint64
}

// Kind is a resource type in the version in which it is watched.
type Kind struct {
	Group, Version, Resource, Kind string
	Namespaced                     bool
	// Cluster is the name of the cluster that serves the kind. It is empty for the one cluster of a source, and for the
	// cluster that a journal is named after.
	Cluster string
}

// AbsenceKind is the Kind of an absence.
var AbsenceKind = Kind{
	Group: event.AbsenceResource.Group, Version: event.AbsenceResource.Version,
	Resource: event.AbsenceResource.Resource, Kind: event.AbsenceResource.Kind,
}

// ClusterOr returns the cluster that serves the kind: own if the kind names none.
func (k Kind) ClusterOr(own string) string { return cmp.Or(k.Cluster, own) }

// GroupResource is the kind's name, whatever its version: deployments.apps, or pods for the core group.
func (k Kind) GroupResource() string { return join(k.Resource, k.Group) }

// GroupKind is the kind with its group: Deployment.apps, or Pod for the core group.
func (k Kind) GroupKind() string { return join(k.Kind, k.Group) }

func join(name, group string) string {
	if group == "" {
		return name
	}
	return name + "." + group
}

// Dated reports whether Time is when the change happened, as the object records it.
func (m *Meta) Dated() bool {
	return !m.Time.IsZero() && !m.Time.Equal(m.At) && (m.Op != event.Deleted || m.Since.IsZero())
}

// Span returns when the change happened: a single moment if the object records it or it was seen as it happened;
// otherwise the interval in which it happened.
func (m *Meta) Span() (from, to time.Time) {
	to = m.Time
	if to.IsZero() {
		to = m.At
	}
	if m.Since.IsZero() || m.Dated() || m.Since.After(to) {
		return to, to
	}
	return m.Since, to
}

// Resource returns the public form of the object's names. It shares the owner.
func (m *Meta) Resource() event.Resource {
	return event.Resource{
		Group: m.Kind.Group, Version: m.Kind.Version, Resource: m.Kind.Resource, Kind: m.Kind.Kind,
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Owner: m.Owner,
	}
}

// Event completes the event of the change in the named cluster, unless the kind names another one. The caller has set in d what comes from the objects:
// differences, managers, severity.
func (m *Meta) Event(cluster string, d event.Data) event.Event {
	cluster = m.Kind.ClusterOr(cluster)
	d.Op, d.Resource, d.Gap, d.Absence, d.Epoch, d.Quiet, d.Form = m.Op, m.Resource(), m.Gap, m.Absence, m.Epoch, m.Quiet, m.Form
	d.Observed = event.Observed{At: m.At}
	if !m.Since.IsZero() {
		since := m.Since
		d.Observed.After, d.Observed.Net = &since, m.Net
	}
	at := m.Time
	if at.IsZero() {
		at = m.At
	}
	return event.New(cluster, at, d)
}

// ID returns the id of the change's event.
func (m *Meta) ID(cluster string) string { return m.Event(cluster, event.Data{}).ID }
