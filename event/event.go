// Package event holds the public form of a change: what `-o json`, files and webhooks carry.
//
// An event is a CloudEvents 1.0 JSON object. Its id is a hash of what happened, so that a consumer
// that remembers ids sees each change once, however often it is delivered.
package event

import "time"

// Op is the kind of a change.
type Op string

// The operations. Snapshot is an object seen by the first list; Entered and Left tell that an
// existing object began or ceased to match a selector; Gap that versions were missed.
const (
	Snapshot Op = "snapshot"
	Created  Op = "created"
	Updated  Op = "updated"
	Deleted  Op = "deleted"
	Entered  Op = "entered"
	Left     Op = "left"
	Gap      Op = "gap"
)

// Event is a CloudEvents 1.0 envelope around Data.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	Type            string    `json:"type"`
	Source          string    `json:"source"`
	ID              string    `json:"id"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	PartitionKey    string    `json:"partitionkey,omitempty"`
	DataContentType string    `json:"datacontenttype"`
	Data            Data      `json:"data"`
}

// Data is what changed.
type Data struct {
	Op       Op       `json:"op"`
	Resource Resource `json:"resource"`
	// Changes are the differences of an update, in path order.
	Changes []Change `json:"changes,omitempty"`
	// Managers are the field managers that own something after the write; empty for deletions.
	Managers []Manager `json:"managers,omitempty"`
	// Before is the last known object of a deletion; After the object of a creation or snapshot.
	Before map[string]any `json:"before,omitempty"`
	After  map[string]any `json:"after,omitempty"`
	// Observed is when Tattler saw it.
	Observed Observed `json:"observed"`
	// Gap says what was missed where Op is Gap.
	Gap *GapInfo `json:"gap,omitempty"`
	// Quiet is true where every changed field is quiet.
	Quiet bool `json:"quiet,omitempty"`
}

// Resource names the object that changed. For a gap, name and namespace may be empty.
type Resource struct {
	Group           string `json:"group"`
	Version         string `json:"version"`
	Resource        string `json:"resource"`
	Kind            string `json:"kind"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Owner is the object's controller, if it has one.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is the controlling owner of an object.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Change is one changed field.
type Change struct {
	// Path is in the grammar of docs/paths.md.
	Path string `json:"path"`
	// Op is add, remove or replace.
	Op   string `json:"op"`
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
	// Manager owns the field after the write; "?" where the server does not say.
	Manager     string `json:"manager"`
	Subresource string `json:"subresource,omitempty"`
	// Quiet is true for a field that a quiet rule names.
	Quiet bool `json:"quiet,omitempty"`
}

// Manager is one entry of the object's managedFields, without its fields.
type Manager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource"`
	// Time is when the entry last changed, in RFC 3339; empty where the server keeps none.
	Time string `json:"time,omitempty"`
}

// Observed is the moment at which a change was seen, or, where a list derived it, the interval in
// which it happened.
type Observed struct {
	// After is the last moment at which the old state was known to be current; nil for a change
	// that the server sent as it happened.
	After *time.Time `json:"after,omitempty"`
	At    time.Time  `json:"at"`
}

// GapInfo says which versions of a stream were not seen, and why.
type GapInfo struct {
	// From and To are the resource versions between which changes are known only as net changes.
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}
