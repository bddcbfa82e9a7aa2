// Package capture turns what the API server says into changes: which kinds to watch, what happened to
// their objects, and what must stay hidden.
package capture

import "github.com/tattler-dev/tattler/internal/change"

// Resource is a kind that the server has.
type Resource = change.Resource
