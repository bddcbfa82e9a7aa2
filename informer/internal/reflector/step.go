// Package reflector lists a resource, then watches it, for ever: a table of states, a pure step,
// and a thin loop around it.
//
// The machine of one stream (rows: where it stands; what is not listed changes nothing):
//
//	state     input      next       does
//	Idle      Begin      Listing    list
//	Listing   Accepted   Listing    (an earlier failure is over)
//	Listing   Listed     Watching   watch from the list's version
//	Listing   Expired    Listing    list again, in one page from now on; known objects stay
//	Listing   Expired    Waiting    where it was one page already: as Failed
//	Listing   Rewritten  Listing    new epoch, gap, list again; sleep first as for Expired
//	Watching  Accepted   Watching   (an earlier failure is over)
//	Watching  Progress   Watching   (a frame was read: failures are forgotten)
//	Watching  Closed     Watching   watch again at once; after a watch without any frame: probe
//	Watching  Closed     Waiting    the second time within a second: sleep, then probe
//	Watching  Expired    Listing    gap, list; after the second time without a frame: sleep first
//	Watching  Garbled    Watching   watch again, or sleep as for Closed; the second time at this
//	                                frame: skip it, gap
//	Probing   Alike      Watching   watch from the last version
//	Probing   Rewritten  Listing    new epoch, gap, list; sleep first as for Expired
//	Probing   Expired    Waiting    as Failed
//	any       Failed     Waiting    sleep; then list, or probe where a list was completed
//	any       Refused    Waiting    sleep for long; then as after Failed
//	any       Missing    Parked     end; once synced, only at the second 404 in a row
//	Waiting   Timer      as noted   list or probe
//	any       Stop       Stopped    end
//
// Probing asks for a list of one object, to see that the server's version is not behind ours: a
// watch at a version from the future is accepted and delivers nothing. It follows every failure,
// and every watch that ended without a frame.
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
	Expired
	Rewritten
	Alike
	Progress
	Closed
	Garbled
	Failed
	Refused
	Missing
	Timer
	Stop
)

var eventNames = [...]string{"Begin", "Accepted", "Listed", "Expired", "Rewritten", "Alike", "Progress",
	"Closed", "Garbled", "Failed", "Refused", "Missing", "Timer", "Stop"}

func (e Event) String() string { return eventNames[e] }

// Input is one step's input.
type Input struct {
	Event Event
	// Err is the cause of Expired, Garbled, Failed, Refused and Missing.
	Err error
	// Unreachable says of Failed that no server answered: one that returns is to be noticed soon.
	Unreachable bool
	// RetryAfter is how long the server asked to wait.
	RetryAfter time.Duration
	// Short and Silent describe a watch that ended (Closed, Garbled): within a second; without any
	// frame.
	Short, Silent bool
}

// Action is what the loop does next.
type Action uint8

// The actions. Continue goes on with what is being done.
const (
	Continue Action = iota
	DoList
	DoWatch
	DoProbe
	DoSleep
	DoSkip
	DoEnd
)

var actionNames = [...]string{"Continue", "DoList", "DoWatch", "DoProbe", "DoSleep", "DoSkip", "DoEnd"}

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
	ReasonExpired   = "expired"
	ReasonRewritten = "history-changed"
	ReasonGarbled   = "unreadable"
)

// Machine is the state of one stream. The zero value is ready for Begin.
type Machine struct {
	State State
	// Synced says that a list was completed.
	Synced bool
	// Unpaged says that a continue token expired once: lists are asked in one page.
	Unpaged bool
	// Err is why the stream does not get on; nil while it does.
	Err error
	// Attempts counts failures in a row.
	Attempts int

	next    Action // what follows Waiting: DoList or DoProbe
	short   int    // watches in a row that ended within a second
	relists int    // in a row, without a frame in between
	garbled int    // attempts at the frame that cannot be read
	missing int    // 404s in a row

	rewritten bool // the next list begins an epoch
}

// Timing is how long a stream waits.
type Timing struct {
	// First is the delay after a failure; it doubles up to Max, and up to MaxUnreachable where no
	// server answers. Refused is the delay after an answer that only an administrator can change.
	First, Max, MaxUnreachable, Refused time.Duration
}

// DefaultTiming is used where nothing else is asked for. An API server that restarts is back within
// seconds; rights change when somebody changes them.
var DefaultTiming = Timing{
	First:          250 * time.Millisecond,
	Max:            30 * time.Second,
	MaxUnreachable: 5 * time.Second,
	Refused:        time.Minute,
}

// backoff is the delay before the attempt that follows n failures.
func (t *Timing) backoff(n int, limit time.Duration) time.Duration {
	d := t.First
	for range n - 1 {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}

// step is the machine: no clock, no goroutine, no memory but m.
func (t *Timing) step(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Stop:
		m.State = Stopped
		return m, Effects{Do: DoEnd}
	case Begin:
		return m.list()
	case Failed:
		limit := t.Max
		if in.Unreachable {
			limit = t.MaxUnreachable
		}
		return m.wait(in.Err, max(in.RetryAfter, t.backoff(m.Attempts+1, limit)), m.resume())
	case Refused:
		return m.wait(in.Err, max(in.RetryAfter, t.Refused), m.resume())
	case Missing:
		return t.missing(m, in)
	case Timer:
		return m.after()
	}
	switch m.State {
	case Listing:
		return t.listing(m, in)
	case Watching:
		return t.watching(m, in)
	case Probing:
		return t.probing(m, in)
	}
	return m, Effects{}
}

func (t *Timing) listing(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Accepted:
		m.Err = nil
	case Listed:
		m.Synced, m.Err, m.Attempts, m.missing = true, nil, 0, 0
		m.State = Watching
		return m, Effects{Do: DoWatch}
	case Expired:
		if m.Unpaged { // no token can have expired
			return m.wait(in.Err, t.backoff(m.Attempts+1, t.Max), DoList)
		}
		m.Unpaged = true
		return m.list()
	case Rewritten:
		return t.rewritten(m, in)
	}
	return m, Effects{}
}

func (t *Timing) watching(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Accepted:
		m.Err, m.missing = nil, 0
	case Progress:
		m.Attempts, m.relists, m.garbled = 0, 0, 0
	case Closed:
		return t.closed(m, in)
	case Expired:
		return t.relist(m, in, ReasonExpired)
	case Garbled:
		m.garbled++
		switch m.garbled {
		case 1:
			return t.again(m, in, DoWatch)
		case 2:
			return m, Effects{Do: DoSkip, Gap: ReasonGarbled}
		}
		return m, Effects{Do: DoSkip} // still the same gap
	}
	return m, Effects{}
}

// relist lists at once, the first two times without progress in between: after a 410, and where the
// list then shows another history.
func (t *Timing) relist(m Machine, in Input, gap string) (Machine, Effects) {
	var eff Effects
	m.relists++
	if m.relists <= 2 {
		m, eff = m.list()
	} else {
		m, eff = m.wait(in.Err, t.backoff(m.relists-2, t.Max), DoList)
	}
	eff.Gap = gap
	return m, eff
}

func (t *Timing) rewritten(m Machine, in Input) (Machine, Effects) {
	m.rewritten = true
	return t.relist(m, in, ReasonRewritten)
}

func (t *Timing) closed(m Machine, in Input) (Machine, Effects) {
	if !in.Short {
		m.Attempts = 0
	}
	if in.Silent {
		return t.again(m, in, DoProbe)
	}
	return t.again(m, in, DoWatch)
}

// again goes on at once after a watch that ended without a failure, unless watches keep ending
// within a second.
func (t *Timing) again(m Machine, in Input, next Action) (Machine, Effects) {
	m.short++
	if !in.Short {
		m.short = 0
	}
	if m.short > 1 {
		return m.wait(in.Err, t.backoff(m.short-1, t.MaxUnreachable), DoProbe)
	}
	if next == DoProbe {
		m.State = Probing
	}
	return m, Effects{Do: next}
}

func (t *Timing) probing(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Alike:
		m.State = Watching
		return m, Effects{Do: DoWatch}
	case Rewritten:
		return t.rewritten(m, in)
	case Expired:
		return m.wait(in.Err, t.backoff(m.Attempts+1, t.Max), DoProbe)
	}
	return m, Effects{}
}

// missing parks a kind that is not served. One that was served is asked once more: an API server
// that starts does not know its custom resources at first.
func (t *Timing) missing(m Machine, in Input) (Machine, Effects) {
	m.missing++
	if m.Synced && m.missing == 1 {
		return m.wait(in.Err, max(in.RetryAfter, 4*t.First), m.resume())
	}
	m.State, m.Err = Parked, in.Err
	return m, Effects{Do: DoEnd}
}

// resume is what follows a failure.
func (m Machine) resume() Action {
	if m.Synced && m.State != Listing {
		return DoProbe
	}
	return DoList
}

func (m Machine) list() (Machine, Effects) {
	eff := Effects{NewEpoch: m.rewritten, Do: DoList}
	m.State, m.next, m.rewritten = Listing, Continue, false
	return m, eff
}

func (m Machine) wait(err error, d time.Duration, next Action) (Machine, Effects) {
	m.State, m.Err, m.next = Waiting, err, next
	m.Attempts++
	return m, Effects{Do: DoSleep, Delay: d}
}

// after is what follows Waiting.
func (m Machine) after() (Machine, Effects) {
	next := m.next
	m.next = Continue
	if next == DoProbe {
		m.State = Probing
		return m, Effects{Do: DoProbe}
	}
	return m.list()
}
