// Package reflector lists a resource, then watches it, for ever: a table of states, a pure step,
// and a thin loop around it.
//
// The machine of one stream (rows: where it stands; what is not listed changes nothing):
//
//	state     input       next      does
//	Idle      Begin       Listing   list
//	Idle      Begin       Probing   probe: where a state was loaded
//	Listing   Accepted    Listing   (an earlier failure is over)
//	Listing   Listed      Watching  watch from the list's version; a streaming list is read on
//	Listing   Unended     Listing   list in pages, from now on; known objects stay
//	Listing   Refused     Listing   a streaming list: list in pages; from now on where that works
//	Listing   Expired     Listing   list again, in one page from now on; known objects stay
//	Listing   Expired     Waiting   where no token can have expired: as Failed
//	Listing   Rewritten   Listing   new epoch, gap, list again
//	Listing   Rewritten   Waiting   the third time without a watch that lasts: sleep first
//	Watching  Accepted    Watching  (an earlier failure is over)
//	Watching  Progress    Watching  (a frame was read: failures are forgotten, once the watch lasts)
//	Watching  CaughtUp    Watching  (what was loaded is as good as a list)
//	Watching  Closed      Watching  watch again at once
//	Watching  Closed      Probing   after a watch without any frame, or while catching up: probe
//	Watching  Closed      Waiting   the second time within a second: sleep, then probe
//	Watching  Closed      Listing   the third time while catching up: new epoch, gap, list
//	Watching  Expired     Listing   gap, list
//	Watching  Expired     Waiting   the third time without a watch that lasts: sleep first
//	Watching  Rewritten   Listing   new epoch, gap, list
//	Watching  Rewritten   Waiting   as for Listing
//	Watching  Garbled     Watching  watch again; the second time, where the object is known: skip it, gap
//	Watching  Garbled     Listing   the second time, where nothing is known: gap, list
//	Watching  Garbled     Waiting   the second watch within a second: sleep, then probe; and as for Expired
//	Probing   Alike       Watching  watch from the last version
//	Probing   CaughtUp    Watching  (a list of metadata shows that what was loaded is current) watch
//	Probing   Unverified  Listing   new epoch, gap, list
//	Probing   Unverified  Waiting   as for Rewritten
//	Probing   Rewritten   Listing   new epoch, gap, list
//	Probing   Rewritten   Waiting   as for Listing
//	Probing   Expired     Waiting   as Failed
//	Waiting   Timer       Listing   list
//	Waiting   Timer       Probing   probe
//	any       Failed      Waiting   sleep; then list, or probe where there is a state to resume
//	any       Unauthorized Waiting  sleep; the fourth time in a row for long; then as after Failed
//	any       Refused     Waiting   sleep for long; then as after Failed
//	any       Missing     Waiting   the first time: sleep, then as after Failed
//	any       Missing     Parked    the second time in a row, unless Reflector.Served: end
//	any       Stop        Stopped   end
//
// Lists are streaming lists: a watch that first tells the current state, up to a bookmark that marks
// its end. Servers that refuse them, or never end them, are asked for pages instead; so is one, for
// the next list, that fails at it twice in a row.
//
// Probing asks for a list of one object, to see that the server's version is not behind ours: a
// watch at a version from the future is accepted and delivers nothing. It follows every failure,
// and every watch that ended without a frame. The caller may look for signs that the server went on from
// an older state meanwhile (Reflector.Doubt).
//
// A watch that the server ends with an error is resumed, behind a gap only where it is our version
// that the server rejects: three times in a row it refused the watch while it answered the probe (4xx), or failed
// (500) again while it accepted a watch at its own version, which the probe then tries. Overload (408, 429, 502, 503, 504)
// and a server that is away never lead to a list.
//
// A frame that cannot be read twice is skipped where its object is known; the sink then has a state from
// which nothing can be resumed. Where nothing is known of it, it may have been a deletion: nothing
// behind it is read before a list, so that a restart begins before it.
//
// Parked is the end of Run. AwaitServed tells when to begin again.
//
// A state that was loaded is resumed without a list: it is probed, and verified by the caller, and
// watched from its version in short watches, whose bookmarks come early, until it is as current as
// the probe. Servers leave such bookmarks out under load, and some kinds have none: after two watches, a list
// of metadata is compared with the state (Reflector.Compare), and one more watch may bring what differs.
// Whatever is doubtful then ends in a list that compares by content.
//
// It takes the rights to list and to watch, also where only streaming lists are read: for the probe.
package reflector

import (
	"errors"
	"time"
)

// step is the machine: no clock, no goroutine, no memory but m.
func (t *Timing) step(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Stop:
		m.State = Stopped
		return m, Effects{Do: DoEnd}
	case Failed:
		return t.failed(m, in)
	case Unauthorized:
		return t.unauthorized(m, in)
	case Refused:
		return t.refused(m, in)
	case Missing:
		return t.missing(m, in)
	}
	switch m.State {
	case Idle:
		return m.begin(in)
	case Listing:
		return t.listing(m, in)
	case Watching:
		return t.watching(m, in)
	case Probing:
		return t.probing(m, in)
	case Waiting:
		return m.after(in)
	}
	return m, Effects{}
}

func (m Machine) begin(in Input) (Machine, Effects) {
	switch {
	case in.Event != Begin:
		return m, Effects{}
	case m.Resuming:
		return m.probe()
	}
	return m.list()
}

func (t *Timing) listing(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Accepted:
		m.Err, m.missing, m.unauthorized = nil, 0, 0
	case Listed:
		return m.listed()
	case Unended:
		m.Paged = true
		return m.list()
	case Expired:
		if m.streaming || m.Unpaged { // no token can have expired
			return t.failed(m, in)
		}
		m.Unpaged = true
		return m.list()
	case Rewritten:
		return t.rewritten(m, in, ReasonRewritten)
	}
	return m, Effects{}
}

func (m Machine) listed() (Machine, Effects) {
	eff := Effects{Do: DoWatch}
	if m.streaming {
		eff.Do = Continue
	}
	m.State, m.Synced, m.Resuming = Watching, true, false
	m.Err, m.Attempts, m.missing, m.unauthorized = nil, 0, 0, 0
	m.Paged = m.Paged || m.refused // it was for its form
	m.streaming, m.refused, m.broken, m.laps, m.garbled = false, false, 0, 0, 0
	return m, eff
}

func (t *Timing) watching(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Accepted:
		m.Err, m.missing, m.unauthorized = nil, 0, 0
	case Progress:
		m = m.trusted()
		m.garbled = 0
		if in.Lasting {
			m.Attempts, m.relists = 0, 0
		}
	case CaughtUp:
		m.Synced, m.Resuming, m.laps = true, false, 0
	case Closed:
		return t.closed(m, in)
	case Expired:
		return t.relist(m, in, ReasonExpired)
	case Rewritten:
		if errors.Is(in.Err, ErrMissed) {
			return t.rewritten(m, in, ReasonMissed)
		}
		return t.rewritten(m, in, ReasonRewritten)
	case Garbled:
		return t.unreadable(m, in)
	}
	return m, Effects{}
}

// trusted forgets what speaks against our version.
func (m Machine) trusted() Machine {
	m.denied, m.rejected, m.suspect = 0, 0, false
	return m
}

// unreadable reads a frame once more, then skips it. Where nothing is known of it, nothing can be read behind it
// before a list.
func (t *Timing) unreadable(m Machine, in Input) (Machine, Effects) {
	m.garbled++
	switch {
	case m.garbled == 1:
		return t.again(m, in, DoWatch)
	case !in.Known:
		return t.relist(m, in, ReasonGarbled)
	}
	eff := Effects{Do: DoSkip}
	if m.garbled == 2 { // else it is still the same gap
		eff.Gap = ReasonGarbled
	}
	return m, eff
}

// relist lists at once, the first two times without a watch that lasts in between: after a 410, after
// a frame of which nothing is known, and where the list then shows another history.
func (t *Timing) relist(m Machine, in Input, gap string) (Machine, Effects) {
	var eff Effects
	m.relists++
	if m.relists <= maxRelists {
		m, eff = m.list()
	} else {
		m, eff = m.wait(in.Err, t.backoff(m.relists-maxRelists, t.Max), DoList)
	}
	eff.Gap = gap
	return m, eff
}

// rewritten lists under a new epoch: what versions say of the stored state means nothing there.
func (t *Timing) rewritten(m Machine, in Input, gap string) (Machine, Effects) {
	m.rewritten = true
	return t.relist(m, in, gap)
}

func (t *Timing) closed(m Machine, in Input) (Machine, Effects) {
	if !in.Short {
		m = m.trusted()
		m.Attempts = 0
	}
	if m.Resuming && (!in.Short || m.short >= maxShort) { // one that ends at once shows nothing
		m.laps++
		if m.laps > maxLaps {
			return t.rewritten(m, in, ReasonUnverified)
		}
	}
	if m.Resuming || in.Silent {
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
		return m.probe()
	}
	return m, Effects{Do: next}
}

func (t *Timing) probing(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Alike:
		m.State, m.missing, m.works = Watching, 0, in.Works
		return m, Effects{Do: DoWatch}
	case CaughtUp:
		m.State, m.missing = Watching, 0
		m.Synced, m.Resuming, m.laps = true, false, 0
		return m, Effects{Do: DoWatch}
	case Unverified:
		return t.rewritten(m, in, ReasonUnverified)
	case Rewritten:
		return t.rewritten(m, in, ReasonRewritten)
	case Expired:
		return t.failed(m, in)
	}
	return m, Effects{}
}

func (m Machine) list() (Machine, Effects) {
	eff := Effects{NewEpoch: m.rewritten, Do: DoList}
	m.State, m.next, m.rewritten = Listing, Continue, false
	m.streaming = !m.Paged && !m.refused && m.broken < maxBroken
	if m.streaming {
		eff.Do = DoStream
	}
	return m, eff
}

func (m Machine) probe() (Machine, Effects) {
	m.State, m.next = Probing, Continue
	return m, Effects{Do: DoProbe}
}

func (m Machine) wait(err error, d time.Duration, next Action) (Machine, Effects) {
	m.State, m.Err, m.next, m.streaming, m.works = Waiting, err, next, false, false
	m.missing, m.unauthorized = 0, 0
	m.Attempts++
	return m, Effects{Do: DoSleep, Delay: d}
}

// after is what follows Waiting.
func (m Machine) after(in Input) (Machine, Effects) {
	switch {
	case in.Event != Timer:
		return m, Effects{}
	case m.next == DoProbe:
		return m.probe()
	}
	return m.list()
}
