package store

import (
	"strings"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// Op tells what a Delta does. The values are those of package informer.
type Op uint8

// The operations of a Delta.
const (
	Added Op = iota + 1
	Updated
	Deleted
)

// Phase tells whether a stream's state is complete.
type Phase uint8

// The phases of a Batch.
const (
	Listing Phase = iota + 1
	Live
	// Resuming is the phase of a loaded state that is known to be of the server's history, but not yet to be current.
	Resuming
)

// Delta is one change of one object.
type Delta struct {
	Key Key
	// Old is what the consumer knew: nil for Added. New is nil for Deleted, where Final is the
	// server's last word, if it sent one.
	Old, New, Final *compact.Version
	// At is when the change was seen. After is, for a Relisted delta and for one that was delivered late (see
	// Commit.Late), the last moment at which the old state was known to be current.
	At, After time.Time
	Op        Op
	// Initial is true for an object of the state that a consumer starts with: that of the stream's
	// first completed list, or that of the moment at which its queue joined. It stays true where
	// that object was updated before the consumer took it; New is then the latest version.
	Initial bool
	// Relisted is true for a difference found by comparing a list with what was known, and for the first of
	// an object after such a list that compared contents and could not read it; never of an
	// Initial object.
	Relisted bool

	sum uint32 // the hash of Key
}

// UID is the UID of the object that the delta is about.
func (d *Delta) UID() string {
	if d.New != nil {
		return d.New.UID()
	}
	return d.Old.UID()
}

// perDelta is what a queued delta costs beside its versions, roughly, in bytes.
const perDelta = 256

// size is an upper bound of what the delta keeps in memory: Old and New may be shared.
func (d *Delta) size() int64 {
	return int64(perDelta + d.Old.Size() + d.New.Size() + d.Final.Size())
}

// Batch is an ordered group of deltas of one store.
type Batch struct {
	Stream  int
	Epoch   int64
	Phase   Phase
	Version string // empty while Listing, and while an object is out of date: see Change.Unread
	// Served is the Commit's or Head's, of the last state of which it was said.
	Served uint64
	// Synced says that, with this batch, the consumer was handed all of the state that it starts
	// with. It stays true. Unlike Live it also comes to a consumer that is never idle.
	Synced bool
	Gap    *Gap
	Deltas []Delta

	forming bool // the stream's first list is under way
}

// Gap says that versions are missing before a batch's deltas.
type Gap struct {
	From, To     string
	Since, Until time.Time
	Reason       string
}

// Merge returns a gap that covers both; either may be nil.
func (g *Gap) Merge(later *Gap) *Gap {
	if g == nil {
		return later
	}
	if later == nil {
		return g
	}
	m := *g
	m.To, m.Until = later.To, later.Until
	for _, r := range strings.Split(later.Reason, ", ") {
		if !strings.Contains(m.Reason, r) {
			m.Reason += ", " + r
		}
	}
	return &m
}
