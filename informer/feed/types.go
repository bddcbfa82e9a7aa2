package feed

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// ErrBehind is returned by a Strict feed whose consumer fell behind.
var ErrBehind = errors.New("feed: exceeded its budget")

// Phase describes whether a stream's state is complete.
type Phase uint8

const (
	// Listing means that the state is being listed, or that a consumer that fell behind is catching up; further
	// deltas of the same state follow.
	Listing Phase = iota + 1
	// Live means that the state was complete at the batch's version.
	Live
	// Resuming means that a state from an earlier run was complete at the batch's version, but has not caught up
	// with the server yet.
	Resuming
)

// Batch is an ordered group of deltas of one stream. After a batch with Phase Live, the consumer's state is the
// server's at Version; after one with Phase Resuming, too, but Version may be old.
type Batch struct {
	Stream informer.Stream
	// Epoch numbers the histories of the server's storage, from 1 or from where earlier runs ended (Restored,
	// informer.Options.Epochs). It increases once a stream has proven that the history was replaced, then for every
	// stream of the same storage. The first batch of an epoch carries a Gap; until the next batch with Phase Live,
	// the stream's versions may belong to either history. A Gap because something is uncertain leaves it as it is.
	Epoch int64
	Phase Phase
	// Version is the stream's resource version after the batch, from which it can be resumed. It is empty
	// while listing, and while an object is out of date because a version of it could not be read.
	Version string
	// Served identifies the form in which the server served the kind when all contents were last compared; 0: not
	// known. A consumer that persists the state persists it, too: see Restored.
	Served uint64
	// Current is when the consumer's state after the batch was last known to be the server's: what happens later is not in
	// it. A consumer that persists the state persists it, too (Restored.At). It stands still while the stream catches up.
	Current time.Time
	// Gap, if set, means that versions before these deltas are missing.
	Gap    *informer.Gap
	Deltas []Delta
}

// Delta is one change of one object.
type Delta struct {
	Op  informer.Op
	Key informer.Key
	UID types.UID
	// Old is empty for Added; for Deleted it is the last known object. New is empty for Deleted; Final is then the
	// object as the server deleted it, if it sent that.
	Old, New, Final Version
	// Initial is true for the objects of a stream's first list.
	Initial bool
	// Relisted is true for a difference found by comparing a list with the known state, and for an object's first
	// delta after a version of it that could not be read: versions in between may be missing.
	Relisted bool
	// At is when this process saw the change. After is zero for a change that the server sent as it happened. For a
	// Relisted delta, and for a change made while the stream was disconnected (during a restart or an outage), After
	// is when the old state was last known to be current; it is zero if a Relisted delta's is not known (see Gap.Since).
	At, After time.Time
}

func delta(d *store.Delta) Delta {
	return Delta{
		Op:       informer.Op(d.Op),
		Key:      informer.Key(d.Key),
		UID:      uidOf(d),
		Old:      version(d.Old),
		New:      version(d.New),
		Final:    version(d.Final),
		Initial:  d.Initial,
		Relisted: d.Relisted,
		At:       d.At,
		After:    d.After,
	}
}
