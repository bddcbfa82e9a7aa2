package store

import (
	"strings"
	"time"
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
)

// Delta is one change of one object.
type Delta struct {
	Op              Op
	Key             Key
	UID             string
	Old, New, Final Version
	Initial         bool
	Relisted        bool
	At, After       time.Time
}

// perDelta is what a queued delta costs beside its versions, roughly, in bytes.
const perDelta = 256

// size is an upper bound of what the delta keeps in memory: Old and New may be shared.
func (d *Delta) size() int64 {
	return int64(perDelta + d.Old.Object.Size() + d.New.Object.Size() + d.Final.Object.Size())
}

// Batch is an ordered group of deltas of one store.
type Batch struct {
	Stream  int
	Epoch   int64
	Phase   Phase
	Version string // empty unless Live
	Gap     *Gap
	Deltas  []Delta
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
