package deliver

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Store is the journal as used by pumps. Several pumps share one.
//
//	Ordering      Read yields items by ascending Seq, and those that become visible later have a higher
//	              one than all that were visible before. Changes of one object are in order.
//	What may be   Read yields every kept item. Retention may have removed older ones.
//	skipped
//	Durability    Changes by SetCursor, Rewind, SetAside, Skip and DropDeadLetter are on disk when they return
//	              nil. After an error they may be; the pump calls them again.
//	Concurrency   All methods may be called concurrently.
//	Ownership     The pump may keep items of Read, but shares them: it must not modify them.
//	Errors        Are temporary: the pump waits and retries.
type Store interface {
	// Read yields the items after a sequence number, oldest first, until the end or until the pump stops.
	// An item without a Change only means that nothing up to its Seq is to be delivered, such as quiet changes:
	// the newest recorded item is always yielded, in this form or complete. After an error it yields nothing.
	// The pump sends between two items, which may take long: hold no lock meanwhile.
	Read(ctx context.Context, after int64) iter.Seq2[Item, error]
	// Wait returns nil when there may be items after a sequence number.
	Wait(ctx context.Context, after int64) error
	// Last returns the newest sequence number, or 0.
	Last(ctx context.Context) (int64, error)

	// Cursor returns the sequence number up to which a sink is done.
	Cursor(ctx context.Context, sink string) (seq int64, ok bool, err error)
	SetCursor(ctx context.Context, sink string, seq int64) error
	// Rewind sets the cursor back, for a replay. Repeats returns the cursor's position at that time, the
	// highest of all rewinds: items up to it are sent again because a user requested it.
	Rewind(ctx context.Context, sink string, seq int64) error
	Repeats(ctx context.Context, sink string) (upTo int64, err error)

	// SetAside stores a dead letter, replacing one of the same sink and ID.
	SetAside(ctx context.Context, d DeadLetter) error
	// Skip combines SetAside and SetCursor: after a crash both are stored, or neither.
	Skip(ctx context.Context, d DeadLetter, cursor int64) error
	// DeadLetters yields a sink's dead letters in a stable order: the journal's is the order in which they were
	// set aside.
	DeadLetters(ctx context.Context, sink string) iter.Seq2[DeadLetter, error]
	// DropDeadLetter removes a dead letter by sink, Seq and ID, if there is one.
	DropDeadLetter(ctx context.Context, d DeadLetter) error
}

// Item is one recorded change.
type Item struct {
	// Seq is its sequence number: positive and unique.
	Seq int64
	// Change is what a filter sees; nil if nothing up to Seq is to be delivered. An update includes its objects if the
	// sink needs them: see Options.Whole.
	Change *change.Change
	// Base is the object as the last listed change before an update left it, if that is not the event's Before, and if the
	// sink includes patches.
	Base map[string]any
	// Event returns the complete event of Change, built by the first call.
	Event func() *event.Event
	// JSON returns Event's JSON, built by the first call; may be nil. Sinks that get the whole Event share it.
	JSON func() ([]byte, error)
	// Text writes the change for people; may be nil, and is nil if Options.Whole is false.
	Text func(w io.Writer) error
	// Story adds the change to a story, as sink.Message.Story does; may be nil, and is nil if Options.Whole is
	// false.
	Story func(so sink.Story, sent bool) sink.Story
	// Size is roughly the number of bytes that Change, Event, JSON and Text keep in memory; it bounds a batch.
	Size int
	// Err reports that the change cannot be read, for instance because it is damaged. Change holds what is
	// known.
	Err error
}

// DeadLetter is a change that was set aside: the sink does not receive it unless it is replayed.
type DeadLetter struct {
	Sink string
	// Seq and ID identify the change.
	Seq int64
	ID  string
	// Subject is the object's path, for people.
	Subject string
	// Reason is the last error, without credentials.
	Reason string
	// Attempts is the number of times it was sent.
	Attempts int
	// At is when it was set aside.
	At time.Time
}
