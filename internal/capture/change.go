// Package capture turns what the API server says into changes: which kinds to watch, what happened to
// their objects, and what must stay hidden.
package capture

import "github.com/tattler-dev/tattler/internal/change"

// DELETED does not always mean deleted: with a selector, the watch says so when an object merely stopped matching. So
// capture requests the object; if it exists with the same UID, it has left. An object that appears under a selector
// was created if it has one managed-fields entry, as old as itself; otherwise it entered.
//
// Objects of a kind that existed at the start are snapshots. Objects in the first list of a kind that appeared later
// were created, unless the kind's API group had never answered discovery before: then it is unknown.

// Resource is a kind that the server has.
type Resource = change.Resource
