// Package sink says what a sink is: a place that changes are delivered to, such as a file or a webhook.
//
// The sinks are the packages below this one, one each. A pump (package deliver) drives a sink;
// package sinktest checks that one keeps the contract.
package sink

import (
	"context"
	"io"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// Sink sends messages to one receiver.
//
//	Ordering         Messages are sent so that those with the same Key arrive in the order of the slice,
//	                 and those of one Send before those of the next.
//	Acknowledgement  Send returns how many of the first messages the receiver has for good. Messages after
//	                 them may have arrived too: they are sent again. What is acknowledged survives a
//	                 kill -9 of this process; what else it survives is the sink's option.
//	What may be      Nothing: what is not acknowledged is sent again. The pump, not the sink, gives up on a
//	skipped          message.
//	Errors           Not nil exactly where fewer than all are acknowledged. A *PermanentError is about the
//	                 first message that is not, and says that the receiver will never take it; a
//	                 *TooLargeError that it is too long; any other is passing, and a *RetryAfterError says
//	                 when the receiver wants to be asked again. After an error with which none is acknowledged the
//	                 pump sends one message alone, so that one of many may be blamed. No text of an error
//	                 holds a credential.
//	Slow consumers   Send takes as long as the receiver, until its context ends; then it returns soon, with
//	                 what was acknowledged by then.
//	Concurrency      One call at a time, except String.
//	Ownership        Messages are the caller's: shared, not to be written, not to be kept after Send.
//	After close      Send fails. Close waits for nothing but its context, frees every connection and
//	                 goroutine, and may be called again.
type Sink interface {
	Send(ctx context.Context, ms []Message) (acked int, err error)
	Close(ctx context.Context) error
	// String names the kind and the place, without credentials: "file changes.jsonl".
	String() string
}

// Patient is a sink that may need long for one Send, as its user allows it to.
type Patient interface {
	Sink
	// Patience is how long one Send may take at least; always the same.
	Patience() time.Duration
}

// Shower is a sink that may use Message.Text. Others get messages without it.
type Shower interface {
	Sink
	// Shows reports whether it does; always the same.
	Shows() bool
}

// Narrator is a sink that may use Message.Story. Others get messages without it.
type Narrator interface {
	Sink
	// Narrates reports whether it does; always the same.
	Narrates() bool
}

// Message is one change on its way.
type Message struct {
	// ID is the event's: equal for the same change, however often it is sent.
	ID string
	// Key is equal for messages of the same object. A gap has the path of its collection.
	Key string
	// Again says that somebody asked for the message to be sent once more: a sink that knows what it has sent does
	// not leave it out.
	Again bool
	// Body is the event's JSON, on one line, without its end.
	Body []byte
	// Event is what Body says.
	Event *event.Event
	// Text writes the change for people, its line ends included. Nil where nobody can, or the sink is no Shower.
	Text func(w io.Writer) error
	// Story adds the change to the story of its object so far, nil if there is none. If that was told, a new one
	// begins where it ended. It returns nil where there is nothing to follow, such as for an object that is gone. Nil
	// where nobody has words, or the sink is no Narrator.
	Story func(so Story, told bool) Story
}

// Story is what the changes of one object come to. It never changes, and may be kept: it is bounded.
type Story interface {
	// Text says it in a few words, as `tattler watch` does; empty where the changed fields say it better.
	Text() string
	// Severity judges what became of the object: also a rollout that is done is a recovery.
	Severity() event.Severity
	// Moving reports whether the object is on its way to another state: then what follows continues this story.
	Moving() bool
}

// PermanentError says that the receiver will never take a message.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }

func (e *PermanentError) Unwrap() error { return e.Err }

// TooLargeError says that the first message that is not acknowledged is longer than the receiver takes. The
// message is cut to the limit and sent again; where nothing can be cut any more, the error is as a
// *PermanentError.
type TooLargeError struct {
	// Limit is how many bytes Body may have; 0 where the receiver did not say.
	Limit int
	Err   error
}

func (e *TooLargeError) Error() string { return e.Err.Error() }

func (e *TooLargeError) Unwrap() error { return e.Err }

// RetryAfterError is a passing error of a receiver that says when it wants to be asked again.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

func (e *RetryAfterError) Error() string { return e.Err.Error() }

func (e *RetryAfterError) Unwrap() error { return e.Err }
