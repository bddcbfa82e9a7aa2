// Package sink defines a sink: a destination of changes, such as a file or a webhook.
// Each package below this one is a sink, except two: kinds lists the sinks of a program, and sinktest checks that a
// sink keeps the contract. A pump (package deliver) drives each sink.
package sink

import (
	"context"
	"io"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// Sink sends messages to one receiver.
//
//	Ordering         Messages with the same Key arrive in the order of the slice, and those of one Send
//	                 before those of the next.
//	Acknowledgement  Send returns n if the receiver has stored the first n messages. It may have received
//	                 later ones too; the pump sends them again, except those that a *PartialError names. An
//	                 acknowledged message survives a kill -9 of this process; an option of the sink decides
//	                 what else it survives.
//	What may be      Nothing: the pump sends an unacknowledged message again. The pump, not the sink, gives
//	skipped          up on a message.
//	Errors           The error is non-nil if and only if not all messages are acknowledged. A
//	                 *PermanentError means that the receiver will never take the first unacknowledged
//	                 message, and a *TooLargeError that this message is too long. Any other error is
//	                 temporary; a *RetryAfterError carries the wait that the receiver asked for. After an
//	                 error without an acknowledgement the pump sends one message alone, to find out whether
//	                 that one is to blame. No error text contains a credential.
//	Slow consumers   Send blocks as long as the receiver does. When its context ends, it returns soon, with
//	                 the number of messages acknowledged by then.
//	Concurrency      The caller makes one call at a time, except for String.
//	Ownership        The caller owns the messages: a sink neither writes to them nor keeps them after Send.
//	After close      Send fails. Close waits at most until its context ends, frees every connection and
//	                 goroutine, and may be called again.
type Sink interface {
	Send(ctx context.Context, ms []Message) (acked int, err error)
	Close(ctx context.Context) error
	// String returns the kind and the destination, without credentials: "file changes.jsonl".
	String() string
}

// SlowSink is a sink whose user allows a Send to take long.
type SlowSink interface {
	Sink
	// MinSendTimeout returns the time that every Send must be given. It never changes.
	MinSendTimeout() time.Duration
}

// TextSink is a sink that may use Message.Text. Other sinks get messages without it.
type TextSink interface {
	Sink
	// UsesText reports whether the sink uses it. It never changes.
	UsesText() bool
}

// StorySink is a sink that may use Message.Story. Other sinks get messages without it.
type StorySink interface {
	Sink
	// UsesStory reports whether the sink uses it. It never changes.
	UsesStory() bool
}

// Message is one change to be sent.
type Message struct {
	// ID is the event's id: the same each time the change is sent.
	ID string
	// Key is the same for all messages of one object. A gap has the path of its collection.
	Key string
	// Again is set if a user asked to send the message once more: a sink that drops repeats must not drop it.
	Again bool
	// Body is the event as JSON, on one line, without a newline.
	Body []byte
	// Event is the decoded Body.
	Event *event.Event
	// Text writes the change for people, including newlines. It is nil if there is no such text, or if the sink is
	// not a TextSink.
	Text func(w io.Writer) error
	// Story adds the change to the story of its object, which is nil at first. If the story was already sent, Story
	// starts a new one where that ended. It returns nil if there is nothing to follow, for example after a deletion.
	// Story itself is nil if changes are not described in words, or if the sink is not a StorySink.
	Story func(story Story, sent bool) Story
}

// Story sums up the changes of one object. It is immutable and bounded, so a sink may keep it.
type Story interface {
	// Text sums up the story in a few words, as `tattler watch` does. It is empty if the changed fields say it
	// better.
	Text() string
	// Severity rates the story's outcome. A finished rollout counts as a recovery.
	Severity() event.Severity
	// Moving reports whether the object is still changing state; then later changes continue this story.
	Moving() bool
}

// PermanentError says that the receiver will never take a message.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }

func (e *PermanentError) Unwrap() error { return e.Err }

// TooLargeError means that the first unacknowledged message is longer than the receiver takes. The pump cuts the
// message to the limit and sends it again. If nothing can be cut, the error counts as a *PermanentError.
type TooLargeError struct {
	// Limit is the maximum length of Body in bytes, or 0 if the receiver did not name one.
	Limit int
	Err   error
}

func (e *TooLargeError) Error() string { return e.Err.Error() }

func (e *TooLargeError) Unwrap() error { return e.Err }

// RetryAfterError is a temporary error; the receiver asked for a wait before the next attempt.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

func (e *RetryAfterError) Error() string { return e.Err.Error() }

func (e *RetryAfterError) Unwrap() error { return e.Err }
