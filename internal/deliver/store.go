package deliver

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Store is what a pump needs of the journal. Several pumps share one.
//
//	Ordering      Read yields items by ascending Seq, and those that become visible later have a higher
//	              one than all that were visible before. Changes of one object are in order.
//	What may be   Read yields every item that is kept. What retention dropped is not there.
//	skipped
//	Durability    What SetCursor, Rewind, SetAside, Skip and DropDeadLetter changed is on disk when they return nil. After an error
//	              it may be or not; the pump calls them again.
//	Concurrency   All methods may be called at the same time.
//	Ownership     What Read yields is the pump's to keep, but shared: it writes to none of it.
//	Errors        Are passing: the pump waits and asks again.
type Store interface {
	// Read yields what was recorded after a sequence number, oldest first, until there is nothing more or
	// the pump breaks off. An item without an Event only says that up to its Seq nothing is delivered,
	// such as quiet changes: the newest that is recorded is always yielded, in this form or whole. After an
	// error it yields nothing. The pump sends between two items, and takes its time: nothing is locked meanwhile.
	Read(ctx context.Context, after int64) iter.Seq2[Item, error]
	// Wait returns nil when there may be something after a sequence number.
	Wait(ctx context.Context, after int64) error
	// Last is the newest sequence number; 0 where there is none.
	Last(ctx context.Context) (int64, error)

	// Cursor is the sequence number up to which a sink is done.
	Cursor(ctx context.Context, sink string) (seq int64, ok bool, err error)
	SetCursor(ctx context.Context, sink string, seq int64) error
	// Rewind sets the cursor back, for a replay. Repeats is the sequence number up to which it was at the time,
	// the highest of all rewinds: what comes up to there is sent again because somebody asked for it.
	Rewind(ctx context.Context, sink string, seq int64) error
	Repeats(ctx context.Context, sink string) (upTo int64, err error)

	// SetAside keeps a dead letter; one of the same sink and ID is replaced.
	SetAside(ctx context.Context, d DeadLetter) error
	// Skip is SetAside and SetCursor in one: after a crash both are there, or neither.
	Skip(ctx context.Context, d DeadLetter, cursor int64) error
	// DeadLetters yields those of a sink, in an order that stays: the journal's is that in which they were
	// buried.
	DeadLetters(ctx context.Context, sink string) iter.Seq2[DeadLetter, error]
	// DropDeadLetter drops a dead letter, found by sink, Seq and ID; there may be none.
	DropDeadLetter(ctx context.Context, d DeadLetter) error
}

// Item is one recorded change.
type Item struct {
	// Seq is its sequence number: above 0, and unique.
	Seq int64
	// Event holds all there is of the change. An update carries before and after besides its changes if the sink
	// needs them: see Options.Whole.
	Event *event.Event
	// JSON is Event's JSON, made by the first call; may be nil. Sinks that get the whole Event share it.
	JSON func() ([]byte, error)
	// Text writes the change for people; may be nil, and is where Options.Whole is false.
	Text func(w io.Writer) error
	// Story adds the change to a story, as sink.Message.Story does; may be nil, and is where Options.Whole is false.
	Story func(so sink.Story, told bool) sink.Story
	// Size is about how many bytes Event, JSON and Text keep in memory: it bounds a batch.
	Size int
	// Err says that the change cannot be read, such as damaged content. The Event holds what is known.
	Err error
}

// DeadLetter is a change that a sink will not get, unless it is replayed.
type DeadLetter struct {
	Sink string
	// Seq and ID tell which change.
	Seq int64
	ID  string
	// Subject is the object's path, for people.
	Subject string
	// Reason is the last error. It holds no credential.
	Reason string
	// Attempts is how often it was sent.
	Attempts int
	// At is when it was given up.
	At time.Time
}
