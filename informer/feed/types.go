package feed

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// ErrBehind is returned by a Strict feed whose consumer took too little.
var ErrBehind = errors.New("feed: exceeded its budget")

// Phase says whether a stream's state is complete.
type Phase uint8

const (
	// Listing says that the state is being listed, or a consumer that fell behind is catching up; deltas that
	// belong together are still to come.
	Listing Phase = iota + 1
	// Live says that the state was complete at the batch's version.
	Live
	// Resuming says that a state from an earlier run was complete at the batch's version, but has not caught up
	// with the server yet.
	Resuming
)

// Batch is an ordered group of deltas of one stream. A batch with Phase Live leaves the consumer
// with a state that the server had at Version; so does one with Phase Resuming, which may be an old one.
type Batch struct {
	Stream informer.Stream
	// Epoch grows when the server's history was replaced. The batch that begins one carries a Gap;
	// until the next batch with Phase Live, the stream's versions may be from either history.
	Epoch int64
	Phase Phase
	// Version is the stream's resource version after the batch, from which it can be resumed. It is empty
	// while listing, and while an object is known to be out of date because a version of it could not be read.
	Version string
	// Served identifies the form in which the server served the kind when all contents were compared
	// last; 0: not known. A consumer that keeps the state keeps it, too: see Restored.
	Served uint64
	// Gap, if set, says that versions before these deltas are missing.
	Gap    *informer.Gap
	Deltas []Delta
}

// Delta is one change of one object.
type Delta struct {
	Op  informer.Op
	Key informer.Key
	UID types.UID
	// Old is empty for Added; for Deleted it is the last known object. New is empty for Deleted,
	// where the server's last word (the object as it was when it went) is in Final if it sent one.
	Old, New, Final Version
	// Initial is true for the objects of a stream's first list.
	Initial bool
	// Relisted is true for a difference found by comparing a list with what was known, and for the first
	// of an object after a list that compared contents and could not read it.
	Relisted bool
	// At is when this process saw it. After is zero for a change that the server sent as it happened. For others it
	// is the last moment at which the old state was known to be current: for a Relisted delta, and for one from
	// while the stream was away, such as before a restart or during an outage.
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
