// Package compare puts Tattler and its peers through the same timed steps on a real API server, and counts what each one lost,
// repeated, reordered and leaked.
//
// An observer of its own, with its own connection and encoding/json, records every change of the cluster. Each peer runs as a
// separate process, is killed once, and delivers to a receiver of its own that fails for a while. [Judge] compares
// what arrived with what the observer saw.
package compare

import "time"

// Change is one change of an object, as the API server's watch reports it.
type Change struct {
	UID     string
	Kind    string // the plural, such as "configmaps"
	Name    string // namespace/name
	Version int64  // metadata.resourceVersion
	Type    string // ADDED, MODIFIED or DELETED
	At      time.Time
}

// Arrival is one record that a receiver accepted.
type Arrival struct {
	Change
	// ID is the record's identity, with which a consumer can drop repeats. It is "" if the record has none.
	ID string
}
