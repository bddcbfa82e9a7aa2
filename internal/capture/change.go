// Package capture turns API server responses into changes: it decides which kinds to watch, builds the changes
// of their objects, and redacts secret values.
package capture

import "github.com/tattler-dev/tattler/internal/change"

// Resource is a resource type of the server.
type Resource = change.Resource
