package store

import (
	"strings"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// Op is the kind of a Delta. The values are those of package informer.
type Op uint8

// The operations of a Delta.
const (
	Added Op = iota + 1
	Updated
	Deleted
)

// Phase is the state of a stream.
type Phase uint8

// The phases of a Batch.
const (
	Listing Phase = iota + 1
	Live
	// Resuming is the phase of a loaded state that belongs to the server's history but may not be current.
	Resuming
)

// Delta is one change of one object.
type Delta struct {
	Key Key
	// Old is the version that the consumer knew, nil for Added. New is nil for Deleted; Final is then the server's
	// final version, if it sent one.
	Old, New, Final *compact.Version
	// At is when the change was seen. After is set for a Relisted delta and for one that was delivered late (see
	// Commit.Late): the last moment at which the old state was known to be current. It is zero for a Relisted delta
	// if that is not known.
	At, After time.Time
	Op        Op
	// Initial is true for an object of the state that a consumer starts with: the stream's first completed list, or
	// the state when its queue joined. It stays true if the object was updated before the consumer took it; New is
	// then the latest version.
	Initial bool
	// Relisted is true for a difference found by comparing a list with the stored state, and for the first one of an
	// object after a version of it that could not be read: versions in between may be missing. It is never true for
	// an Initial object.
	Relisted bool

	sum uint32 // the hash of Key
}

// UID returns the UID of the delta's object.
func (d *Delta) UID() string {
	if d.New != nil {
		return d.New.UID()
	}
	return d.Old.UID()
}

// perDelta is the approximate memory of a queued delta without its versions, in bytes.
const perDelta = 256

// size is an upper bound of the memory that the delta holds: Old and New may be shared.
func (d *Delta) size() int64 {
	return int64(perDelta + d.Old.Size() + d.New.Size() + d.Final.Size())
}

// Batch is an ordered group of deltas of one store.
type Batch struct {
	Stream  int
	Epoch   int64
	Phase   Phase
	Version string // empty while Listing, and while an object is unread: see Change.Unread
	// Served is the value of the last Commit or Head that set it.
	Served uint64
	// Current is when the consumer's state after the batch was last known to be the server's; zero if it never was.
	Current time.Time
	// Synced is true once the consumer has received all of its initial state, including this batch. Unlike Live, it
	// also becomes true for a consumer that is never idle.
	Synced bool
	Gap    *Gap
	Deltas []Delta

	firstList bool // the stream's first list is in progress
}

// Gap means that versions are missing before a batch's deltas. Since is zero if it is not known.
type Gap struct {
	From, To     string
	Since, Until time.Time
	Reason       string
}

// Merge returns a gap that covers both; either may be nil. An audit's gap may begin before an earlier one.
func (g *Gap) Merge(later *Gap) *Gap {
	if g == nil {
		return later
	}
	if later == nil {
		return g
	}
	m := *g
	m.To, m.Until = later.To, later.Until
	if later.Since.Before(m.Since) {
		m.Since = later.Since
	}
	for _, r := range strings.Split(later.Reason, ", ") {
		if !strings.Contains(m.Reason, r) {
			m.Reason += ", " + r
		}
	}
	return &m
}
