package reflector

import "time"

// State is where a stream stands.
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

// Event is what happened, as the step function sees it.
type Event uint8

// The inputs; see the table.
const (
	Begin Event = iota
	Accepted
	Listed
	Unended
	Expired
	Rewritten
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
	Stop
)

var eventNames = [...]string{"Begin", "Accepted", "Listed", "Unended", "Expired", "Rewritten", "Alike", "Unverified",
	"CaughtUp", "Progress", "Closed", "Garbled", "Failed", "Unauthorized", "Refused", "Missing", "Timer", "Stop"}

func (e Event) String() string { return eventNames[e] }

// Input is one step's input.
type Input struct {
	Event Event
	// Err is the cause of Unended, Expired, Unverified, Garbled, Failed, Unauthorized, Refused and Missing.
	Err error
	// Unreachable says of Failed that no server answered: one that returns is to be noticed soon.
	Unreachable bool
	// Overload says of Failed that the server cannot serve anything now: the request was not to blame.
	Overload bool
	// RetryAfter is how long the server asked to wait.
	RetryAfter time.Duration
	// Short and Silent describe a watch that ended (Closed, Garbled): within a second; without any
	// frame.
	Short, Silent bool
	// Lasting says of Progress that the watch has lasted for some seconds.
	Lasting bool
	// Known says of Garbled that the object's name could be read.
	Known bool
	// Works says of Alike that the server accepted a watch at its own version.
	Works bool
}

// Action is what the loop does next.
type Action uint8

// The actions. Continue goes on with what is being done. DoStream is a list in the form of a watch,
// DoList one in pages.
const (
	Continue Action = iota
	DoStream
	DoList
	DoWatch
	DoProbe
	DoSleep
	DoSkip
	DoEnd
)

var actionNames = [...]string{"Continue", "DoStream", "DoList", "DoWatch", "DoProbe", "DoSleep", "DoSkip", "DoEnd"}

func (a Action) String() string { return actionNames[a] }

// Effects are what a step asks of the loop, in this order.
type Effects struct {
	// NewEpoch says that the server's history is another one.
	NewEpoch bool
	// Gap is why versions will be missing; empty: none are.
	Gap string
	Do  Action
	// Delay is how long DoSleep sleeps, before jitter.
	Delay time.Duration
}

// The reasons of gaps.
const (
	ReasonExpired    = "expired"
	ReasonRewritten  = "history-changed"
	ReasonUnverified = "unverified"
	ReasonMissed     = "missed"
	ReasonGarbled    = "unreadable"
	ReasonUnwatched  = "watch-failed"
)

// Machine is the state of one stream. The zero value is ready for Begin.
type Machine struct {
	State State
	// Synced says that a list was completed, or that what was loaded is as current as one.
	Synced bool
	// Resuming says that the sink holds a state that was loaded, and that is not Synced yet.
	Resuming bool
	// Paged says that lists are asked in pages: the server does not stream them.
	Paged bool
	// Unpaged says that a continue token expired once: lists in pages are asked in one page.
	Unpaged bool
	// Err is why the stream does not get on; nil while it does.
	Err error
	// Attempts counts failures in a row.
	Attempts int

	next    Action // what follows Waiting: DoList, in whatever form, or DoProbe
	short   int    // watches in a row that ended within a second
	relists int    // in a row, without a watch that lasts in between
	garbled int    // attempts at the frame that cannot be read
	missing int    // 404s in a row
	denied  int    // watches in a row that the server ended with an error, without a frame
	laps    int    // watches that ended while Resuming

	unauthorized int  // 401s in a row, without a list or watch that was accepted in between
	rejected     int  // watches in a row that our version may have been the reason to refuse
	suspect      bool // the last watch failed, and our version may be the reason
	works        bool // the last probe found that a watch at the server's version works

	rewritten bool // the next list begins an epoch
	streaming bool // the list under way is a streaming one
	refused   bool // the last streaming list was refused: the next list shows whether for its form
	broken    int  // streaming lists in a row that failed
}

const (
	// maxRelists is how many lists in a row begin at once, without a watch that lasts in between.
	maxRelists = 2
	// maxBroken is how many streaming lists in a row may fail before one in pages is tried: a server
	// under load may get a page out where it cannot keep a stream.
	maxBroken = 2
	// maxRejected is how many watches in a row the server may reject, while all shows that it serves others, before
	// a list: it is our version that it does not like.
	maxRejected = 3
	// maxUnauthorized is how many 401s in a row are a refusal. A token that was rotated causes one.
	maxUnauthorized = 4
	// maxLaps is how many watches a loaded state has to catch up in before it is compared with a list of
	// metadata. A server under load may be late with the bookmark of the first, and leave it out.
	maxLaps = 2
	// maxShort is how many watches that end within a second do not count as such.
	maxShort = 5
)

// Refused tells whether Err is something that waiting does not change.
func (m Machine) Refused() bool {
	return m.Err != nil && (IsRefusal(m.Err) || m.unauthorized >= maxUnauthorized)
}

// Timing is how long a stream waits.
type Timing struct {
	// First is the delay after a failure; it doubles up to Max, and up to MaxUnreachable where no
	// server answers. Unauthorized is the delay after a first 401, which doubles. Refused is the delay after an answer that only an administrator can change,
	// Missing the one between the two 404s that park a stream.
	First, Max, MaxUnreachable, Unauthorized, Refused, Missing time.Duration
	// Unserved is the delay before a parked stream looks whether its kind is served again; it doubles
	// up to MaxUnserved.
	Unserved, MaxUnserved time.Duration
}

// DefaultTiming is used where nothing else is asked for. An API server that restarts is back within
// seconds; rights change when somebody changes them, and kinds when somebody installs them.
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

// backoff is the delay before the attempt that follows n failures.
func (t *Timing) backoff(n int, limit time.Duration) time.Duration { return doubled(t.First, n, limit) }

// doubled is the n-th of delays that double up to a limit.
func doubled(d time.Duration, n int, limit time.Duration) time.Duration {
	for range n - 1 {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}
