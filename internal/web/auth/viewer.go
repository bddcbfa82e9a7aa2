package auth

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// Viewer is who a request comes from. It is for one request: see From. The zero value may see nothing.
type Viewer struct {
	// User and UID are the name and the UID of the user; empty on an open page.
	User, UID string
	// Groups are the user's.
	Groups []string
	// Extra are further attributes, which authorizers may use.
	Extra map[string][]string

	all     bool // an open page: the viewer may see and do everything
	key     string
	rights  *rights
	again   func(context.Context) error // authenticates the request again
	timeout time.Duration               // of a stream's write
	streams *slots                      // of all viewers

	mu    sync.Mutex
	since time.Time // the start of the budget's interval
	spent int       // reviews in it
	notes []any
}

// viewerKey is the key of a request's *Viewer.
type viewerKey struct{}

// From returns the viewer of a request that passed Auth.Wrap; nil for any other context. A nil viewer may see
// nothing.
func From(ctx context.Context) *Viewer {
	v, _ := ctx.Value(viewerKey{}).(*Viewer)
	return v
}

// String names the viewer for people.
func (v *Viewer) String() string {
	switch {
	case v == nil:
		return "no viewer"
	case v.all:
		return "this machine"
	}
	return v.User
}

// Key is the same for viewers with the same rights; those of one name can have different groups.
func (v *Viewer) Key() string {
	if v == nil {
		return ""
	}
	return v.key
}

// Open reports whether the page is open, so that everyone on the machine may see and do everything.
func (v *Viewer) Open() bool { return v != nil && v.all }

// Note adds attributes to the audit log's line of this request, if it is a POST: what was done, in pairs as slog
// takes them. They must not hold credentials.
func (v *Viewer) Note(args ...any) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, args...)
}

func (v *Viewer) noted() []any {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.notes
}

// maxReviews is how many reviews one request may cause, or a stream in keepAllowed.
const maxReviews = 500

// spend takes reviews from the budget.
func (v *Viewer) spend(n int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); v.since.IsZero() || now.Sub(v.since) >= keepAllowed {
		v.since, v.spent = now, 0
	}
	if v.spent+n > maxReviews {
		return &TooManyReviews{Needed: v.spent + n, Limit: maxReviews}
	}
	v.spent += n
	return nil
}

// Left is how many reviews the viewer has left: see access.Limited.
func (v *Viewer) Left() int {
	if v == nil || v.all {
		return math.MaxInt
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.since.IsZero() || time.Since(v.since) >= keepAllowed {
		return maxReviews
	}
	return maxReviews - v.spent
}

// TooManyReviews means that a request concerns too many kinds and namespaces for a viewer who may not see them
// in the whole cluster.
type TooManyReviews struct{ Needed, Limit int }

func (e *TooManyReviews) Error() string {
	return fmt.Sprintf("this needs more than the %d access reviews that a request may make: choose a namespace, or fewer kinds", e.Limit)
}
