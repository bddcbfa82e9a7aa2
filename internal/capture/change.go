// Package capture turns API server responses into changes: it decides which kinds to watch, builds the changes
// of their objects, and redacts secret values.
package capture

import "github.com/tattler-dev/tattler/internal/change"

// DELETED does not always mean deleted: with a selector, the watch says so when an object merely stopped matching. So
// capture requests the object; if it exists with the same UID, it has left. An object that appears under a selector
// was created if it has one managed-fields entry, as old as itself; otherwise it entered.
//
// Objects of a kind that existed at the start are snapshots. Objects in the first list of a kind that appeared later
// were created, unless the kind's API group had never answered discovery before: then it is unknown.

// Resource is a resource type of the server.
type Resource = change.Resource
