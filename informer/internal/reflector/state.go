package reflector

import "time"

// State is the state of a stream's machine.
type State uint8

// The states; see the table.
const (
	Idle State = iota
	Listing
	Watching
	Probing
	Waiting
	Parked
	Stopped
)

var stateNames = [...]string{"Idle", "Listing", "Watching", "Probing", "Waiting", "Parked", "Stopped"}

func (s State) String() string { return stateNames[s] }

// Event is an input of the step function.
type Event uint8

// The inputs; see the table.
const (
	Begin Event = iota
	Accepted
	Listed
	Unended
	Expired
	Replaced
	Alike
	Unverified
	CaughtUp
	Progress
	Closed
	Garbled
	Failed
	Unauthorized
	Refused
	Missing
	Timer
	Returned
	Retire
	Stop
)

var eventNames = [...]string{"Begin", "Accepted", "Listed", "Unended", "Expired", "Replaced", "Alike", "Unverified",
	"CaughtUp", "Progress", "Closed", "Garbled", "Failed", "Unauthorized", "Refused", "Missing", "Timer", "Returned", "Retire", "Stop"}

func (e Event) String() string { return eventNames[e] }

// Input is the input of one step.
type Input struct {
	Event Event
	// Err is the cause of Unended, Expired, Replaced, Unverified, Garbled, Failed, Unauthorized, Refused and Missing.
	Err error
	// Unreachable qualifies Failed: no server answered, so retries stay frequent to notice its return.
	Unreachable bool
	// Overload qualifies Failed: the server cannot serve anything now, and the request was not to blame.
	Overload bool
	// Throttled qualifies Overload: a 429. The history is checked once a watch is accepted.
	Throttled bool
	// RetryAfter is the delay that the server requested.
	RetryAfter time.Duration
	// Short and Silent describe a watch that ended (Closed, Garbled): within a second; without any frame.
	Short, Silent bool
	// Stalled describes a watch that ended (Closed) because of ErrStalled.
	Stalled bool
	// Lasting qualifies Progress: the watch has lasted for some seconds.
	Lasting bool
	// Known qualifies Garbled: the object's name could be read.
	Known bool
	// Works qualifies Alike: the server accepted a watch at its own version.
	Works bool
}

// Action is the loop's next action.
type Action uint8

// The actions. Continue continues the current one. DoStream is a list in the form of a watch, DoList a list in
// pages.
const (
	Continue Action = iota
	DoStream
	DoList
	DoWatch
	DoProbe
	DoSleep
	DoPark
	DoSkip
	DoEnd
)

var actionNames = [...]string{"Continue", "DoStream", "DoList", "DoWatch", "DoProbe", "DoSleep", "DoPark", "DoSkip", "DoEnd"}

func (a Action) String() string { return actionNames[a] }

// Effects are the effects of a step, which the loop applies in this order.
type Effects struct {
	// Trust says how far the next list may rely on the stored versions.
	Trust Trust
	// Gap is the reason for which versions will be missing; empty: none are missing.
	Gap string
	// Drop says that all objects are gone with their kind.
	Drop bool
	Do   Action
	// Delay is how long DoSleep and DoPark sleep, before jitter.
	Delay time.Duration
}

// Trust says how far a list may rely on the versions of the stored state.
type Trust uint8

const (
	// Trusted means that an object with the UID, version and checksum of the stored one is the stored one.
	Trusted Trust = iota
	// Uncertain means that contents must be compared. As far as is known, the versions belong to the server's history.
	Uncertain
	// Outdated means that the server's history was replaced: the versions belong to another one, and an epoch begins.
	Outdated
)

// The reasons of gaps.
const (
	ReasonExpired    = "expired"
	ReasonReplaced   = "history-changed"
	ReasonUnverified = "unverified"
	ReasonMissed     = "missed"
	ReasonGarbled    = "unreadable"
	ReasonUnwatched  = "watch-failed"
	ReasonGone       = "not served"
)

// Machine is the state of one stream. The zero value is ready for Begin.
type Machine struct {
	State State
	// Synced says that a list was completed, or that the loaded state is as current as one.
	Synced bool
	// Resuming says that the sink holds a loaded state and is not Synced yet.
	Resuming bool
	// Paged says that lists are requested in pages, because the server does not stream them.
	Paged bool
	// Unpaged says that a continue token expired once: lists that are not streamed are requested in one page.
	Unpaged bool
	// Err is the error that blocks the stream; nil if it progresses.
	Err error
	// Attempts counts failures in a row.
	Attempts int

	next  Action // the action after Waiting: DoList, in either form, DoProbe or DoWatch
	short int    // consecutive watches that ended within a second
	// throttled is set after a 429 to a watch, until one is accepted, and compared as after any failure.
	throttled bool
	relists   int // consecutive lists without a lasting watch in between
	garbled   int // attempts to read the unreadable frame
	missing   int // consecutive 404s
	looks     int // for the kind of a parked stream, in vain
	denied    int // consecutive watches that the server ended with an error, without a frame
	laps      int // watches that ended while Resuming

	unauthorized int  // consecutive 401s, without an accepted list or watch in between
	rejected     int  // consecutive watches that the server may have refused because of our version
	suspect      bool // the last watch failed, and our version may be the reason
	works        bool // the last probe found that a watch at the server's version works

	trust     Trust // of the next list
	streaming bool  // the current list is a streaming one
	refused   bool  // the last streaming list was refused; the next list shows whether because of its form
	broken    int   // consecutive failed streaming lists
}

const (
	// maxRelists is the number of consecutive lists that begin at once, without a lasting watch in between.
	maxRelists = 2
	// maxBroken is the number of consecutive streaming lists that may fail before one in pages is tried: a
	// server under load may be able to send a page although it cannot sustain a stream.
	maxBroken = 2
	// maxRejected is the number of consecutive watches that the server may reject while it serves others. After
	// that our version must be the reason, and the stream lists.
	maxRejected = 3
	// maxUnauthorized is the number of consecutive 401s that count as a refusal. A rotated token causes one.
	maxUnauthorized = 4
	// maxLaps is the number of watches in which a loaded state must catch up before it is compared with a
	// metadata-only list. A server under load may omit the bookmark of the first.
	maxLaps = 2
	// maxShort is the number of consecutive watches ending within a second that are not counted as laps.
	maxShort = 5
)

// Refused reports whether waiting does not change the cause of Err.
func (m Machine) Refused() bool {
	return m.Err != nil && (IsRefusal(m.Err) || m.unauthorized >= maxUnauthorized)
}

// Timing holds a stream's delays.
type Timing struct {
	// First is the delay after a failure; it doubles up to Max, and up to MaxUnreachable while no server
	// answers. Unauthorized is the delay after the first 401, which doubles. Refused is the delay after a
	// response that only an administrator can change. Missing is the delay between the two 404s that park a
	// stream.
	First, Max, MaxUnreachable, Unauthorized, Refused, Missing time.Duration
	// Unserved is the delay before a parked stream checks whether its kind is served again; it doubles up to
	// MaxUnserved.
	Unserved, MaxUnserved time.Duration
}

// DefaultTiming is the default. An API server that restarts is back within seconds; rights and installed kinds
// change only when a user changes them.
var DefaultTiming = Timing{
	First:          250 * time.Millisecond,
	Max:            30 * time.Second,
	MaxUnreachable: 5 * time.Second,
	Unauthorized:   time.Second,
	Refused:        time.Minute,
	Missing:        4 * time.Second,
	Unserved:       30 * time.Second,
	MaxUnserved:    5 * time.Minute,
}

// backoff returns the delay after n failures.
func (t *Timing) backoff(n int, limit time.Duration) time.Duration { return doubled(t.First, n, limit) }

// doubled returns the n-th of delays that double up to a limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for range n - 1 {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}
