package control

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Orders is what can be asked of a daemon, beside its Status. What is returned without an error is
// durable: a restart does not change it. Names and ids that do not exist are a *Refusal.
type Orders interface {
	// Pause stops delivering to a sink after the batch that is on its way, or has it go on.
	Pause(ctx context.Context, sink string, paused bool) error
	// Replay has a sink get again what it got since a place, and all that follows, also while it is
	// paused: then once it is resumed. It never leaves out what the sink has not got yet.
	Replay(ctx context.Context, sink string, from Place) (Replayed, error)
	// Skip makes a dead letter of the change that holds a sink up, and has it go on with the next. An id, or how
	// one begins, must be that change's; empty is any.
	Skip(ctx context.Context, sink, id string) (Skipped, error)
	// ReplayDead sends dead letters once more, by their ids. An error says why the rest was not sent;
	// what the answer counts was.
	ReplayDead(ctx context.Context, sink string, ids []string) (Retried, error)
	// DropDead gives dead letters up, by their ids, and returns how many there were.
	DropDead(ctx context.Context, sink string, ids []string) (int, error)
	// Remove forgets the place and the dead letters of a sink that is configured no more.
	Remove(ctx context.Context, sink string) error
}

// Place is where a replay begins: at the first change that was seen at Since or later, or else behind the
// sequence number After. The zero value is the beginning of what is kept.
type Place struct {
	Since time.Time `json:"since,omitzero"`
	After int64     `json:"after,omitempty"`
}

// Replayed is what Replay did.
type Replayed struct {
	// Again is how many changes the sink goes back, those that its filter leaves out included; 0: it had
	// not got so far.
	Again int64 `json:"again"`
	// Behind is how many there are to deliver now.
	Behind int64 `json:"behind"`
	// Paused says that the sink is.
	Paused bool `json:"paused"`
}

// Skipped is the change that Skip made a dead letter of.
type Skipped struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	// Error is why the sink did not take it.
	Error string `json:"error"`
}

// Retried is what ReplayDead did.
type Retried struct {
	// Taken are no dead letters any more; Refused stay, with the new reason.
	Taken   int `json:"taken"`
	Refused int `json:"refused"`
}

// Refusal is why an order is not followed: it makes no sense. The text is for the user.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

// Refuse makes a Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// NoDaemonError says that nobody serves the journal's socket: no daemon runs, or it was killed.
type NoDaemonError struct {
	Journal string
	Err     error
}

func (e *NoDaemonError) Error() string {
	return fmt.Sprintf("no daemon records into %s: start tattler run", e.Journal)
}
func (e *NoDaemonError) Unwrap() error { return e.Err }

// ErrSilent says that a daemon was reached and did not answer in time.
var ErrSilent = errors.New("it does not answer")

// The requests: a GET for the status, and else a POST of a request.
const (
	pathStatus     = "/v1/status"
	pathPause      = "/v1/sinks/pause"
	pathResume     = "/v1/sinks/resume"
	pathReplay     = "/v1/sinks/replay"
	pathRemove     = "/v1/sinks/remove"
	pathSkip       = "/v1/sinks/skip"
	pathReplayDead = "/v1/dead/replay"
	pathDropDead   = "/v1/dead/drop"
)

type (
	request struct {
		Sink string `json:"sink"`
		// From is that of a replay, where it must be said.
		From *Place `json:"from,omitempty"`
		// IDs are those of dead letters; of Skip at most one.
		IDs []string `json:"ids,omitempty"`
	}
	doneAnswer    struct{}
	retriedAnswer struct {
		Retried
		// Error is why the rest was not sent.
		Error string `json:"error,omitempty"`
	}
	droppedAnswer struct {
		Dropped int `json:"dropped"`
	}
	// errorAnswer comes with a status that is not 200: 422 with a Refusal, 400 and 500 else.
	errorAnswer struct {
		Error string `json:"error"`
	}
)
