package control

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Orders are the requests to a daemon besides its Status. Results without an error are durable across restarts.
// Names and ids that do not exist give a *Refusal.
type Orders interface {
	// Pause stops delivering to a sink after the current batch, or resumes it.
	Pause(ctx context.Context, sink string, paused bool) error
	// Replay sends a sink again what it received since a place, and everything after it. If the sink is paused,
	// that happens once it is resumed. Changes that the sink has not received yet are never skipped.
	Replay(ctx context.Context, sink string, from Place) (Replayed, error)
	// Skip sets aside the change that blocks a sink, and continues with the next. A non-empty id must be that
	// change's id or a prefix of it.
	Skip(ctx context.Context, sink, id string) (Skipped, error)
	// ReplayDead sends dead letters once more, by their ids. An error says why the rest was not sent; the
	// result counts those that were.
	ReplayDead(ctx context.Context, sink string, ids []string) (Retried, error)
	// DropDead drops dead letters, by their ids, and returns their number.
	DropDead(ctx context.Context, sink string, ids []string) (int, error)
	// Remove drops the cursor and the dead letters of a sink that is no longer configured.
	Remove(ctx context.Context, sink string) error
}

// Place is the start of a replay: the first change seen at Since or later, or the one after the sequence number
// After. The zero value is the oldest kept change.
type Place struct {
	Since time.Time `json:"since,omitzero"`
	After int64     `json:"after,omitempty"`
}

// Replayed is the result of Replay.
type Replayed struct {
	// Again is the number of changes that the sink goes back, including those that its filter leaves out; 0 if
	// it had not got that far.
	Again int64 `json:"again"`
	// Behind is the number of changes now to be delivered.
	Behind int64 `json:"behind"`
	// Paused reports that the sink is paused.
	Paused bool `json:"paused"`
}

// Skipped is the change that Skip set aside.
type Skipped struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	// Error is why the sink did not accept it.
	Error string `json:"error"`
}

// Retried is the result of ReplayDead.
type Retried struct {
	// Taken are no longer dead letters; Refused stay, with the new reason.
	Taken   int `json:"taken"`
	Refused int `json:"refused"`
}

// Refusal is why an order was refused: it makes no sense. The text is for the user.
type Refusal struct{ Text string }

func (r *Refusal) Error() string { return r.Text }

// Refuse returns a Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// ErrStarting refuses orders before the daemon takes them.
var ErrStarting = Refuse("the daemon is starting: try again once tattler status says that it records")

// NoDaemonError reports that no process serves the journal's socket: no daemon runs, or it was killed.
type NoDaemonError struct {
	Journal string
	Err     error
}

func (e *NoDaemonError) Error() string {
	return fmt.Sprintf("no daemon records into %s: start tattler run", e.Journal)
}
func (e *NoDaemonError) Unwrap() error { return e.Err }

// ErrSilent reports that a daemon accepted the connection but did not answer in time. It does not carry out an order later,
// unless the error is ErrUncertain too.
var ErrSilent = errors.New("it does not answer")

// ErrUncertain reports that a daemon got an order, or a part of it, but did not answer: it is unknown whether it is carried
// out. It is joined to the reason.
var ErrUncertain = errors.New("it got the order, and may have carried it out or may still do so: tattler sinks shows its effect")

// The requests: a GET for the status, a POST of a request for the others.
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
		// From is the start of a replay, for which it is required.
		From *Place `json:"from,omitempty"`
		// IDs are ids of dead letters; at most one for Skip.
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
	// errorAnswer is sent with a status other than 200: 422 for a Refusal, otherwise 400 or 500.
	errorAnswer struct {
		Error string `json:"error"`
	}
)
