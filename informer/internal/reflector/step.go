// Package reflector lists a resource, then watches it, forever: a table of states, a pure step, and a thin loop
// around it.
//
// The machine of one stream (rows are transitions; inputs without a row change nothing):
//
//	state     input       next      does
//	Idle      Begin       Listing   list
//	Idle      Begin       Probing   probe: if a state was loaded
//	Listing   Accepted    Listing   (an earlier failure is over)
//	Listing   Listed      Watching  watch from the list's version; a streaming list becomes the watch
//	Listing   Unended     Listing   list in pages, from now on; known objects stay
//	Listing   Refused     Listing   a streaming list: list in pages; from now on if that works
//	Listing   Expired     Listing   list again, in one page from now on; known objects stay
//	Listing   Expired     Waiting   if no token can have expired: as Failed
//	Listing   Replaced    Listing   gap, list again under a new epoch
//	Listing   Replaced    Waiting   the third time without a watch that lasts: sleep first
//	Listing   Unverified  Listing   gap, list again by content
//	Listing   Unverified  Waiting   as for Replaced
//	Watching  Accepted    Watching  (an earlier failure is over)
//	Watching  Progress    Watching  (a frame was read: failures are cleared, once the watch lasts)
//	Watching  CaughtUp    Watching  (the loaded state is as current as a list)
//	Watching  Closed      Watching  watch again at once
//	Watching  Closed      Probing   after a watch without any frame, or while catching up: probe
//	Watching  Closed      Waiting   the second time within a second: sleep, then probe
//	Watching  Closed      Listing   the third time while catching up: gap, list by content
//	Watching  Expired     Listing   gap, list
//	Watching  Expired     Waiting   the third time without a watch that lasts: sleep first
//	Watching  Replaced    Listing   gap, list under a new epoch
//	Watching  Replaced    Waiting   as for Listing
//	Watching  Unverified  Listing   gap, list by content
//	Watching  Unverified  Waiting   as for Replaced
//	Watching  Garbled     Watching  watch again; the second time, if the object is known: skip it, gap
//	Watching  Garbled     Listing   the second time, if the object is unknown: gap, list
//	Watching  Garbled     Waiting   the second watch within a second: sleep, then probe; and as for Expired
//	Probing   Alike       Watching  watch from the last version
//	Probing   CaughtUp    Watching  (a metadata-only list shows that the loaded state is current) watch
//	Probing   Unverified  Listing   gap, list by content
//	Probing   Unverified  Waiting   as for Replaced
//	Probing   Replaced    Listing   gap, list under a new epoch
//	Probing   Replaced    Waiting   as for Listing
//	Probing   Expired     Waiting   as Failed
//	Waiting   Timer       Listing   list
//	Waiting   Timer       Probing   probe
//	Waiting   Timer       Watching  watch again, after a 429 to a watch
//	Parked    Timer       Parked    (the kind is still not served) wait longer, then look again
//	Parked    Returned    Listing   gap, list; also by Reflector.Retry; facts about the server are forgotten
//	Parked    Retire      Parked    gap, drop all objects
//	any       Failed      Waiting   sleep; then list, or probe if there is a state to resume
//	any       Unauthorized Waiting  sleep; the fourth time in a row for long; then as after Failed
//	any       Refused     Waiting   sleep for long; then as after Failed
//	any       Missing     Waiting   the first time: sleep, then as after Failed
//	any       Missing     Parked    the second time in a row, unless Reflector.Served: wait, then look for the kind
//	any       Stop        Stopped   end
//
// A list relies on the stored versions as far as they deserve it (Trust). If they are uncertain, it compares contents
// and keeps the epoch: the epoch is part of the ids of changes, and another process that watches the same server is not
// uncertain. Only a proof that the server's history was replaced begins an epoch:
//
//	sign                                                          input
//	a probe or a list has a version behind ours                   Replaced
//	a listed object has a version behind ours                     Replaced
//	the cluster's identity has changed                            Replaced
//	a newest object is behind ours, or another at our version     Replaced
//	a newest object is missing, and the watch from our version
//	passed the server's without its deletion                      Replaced
//	another stream of the same storage has proven it              Replaced
//	the loaded state's version is not ordered                     Unverified
//	the server refuses what would verify the loaded state         Unverified
//	the loaded state has not caught up in time                    Unverified
//	an audit, or the comparison of a loaded state, found an
//	object that the watch did not show (ErrMissed)                Unverified: the watch may be to blame
//
// An object that an audit finds behind ours is a proof all the same: the list that follows shows it.
//
// Lists are streaming lists: a watch that first sends the current state, up to a bookmark that marks its end. A
// server that refuses them, or never ends them, is asked for pages instead; so is one that fails at it twice in
// a row, for the next list.
//
// Probing requests a list of one object, to see that the server's version is not behind ours: a watch at a
// version from the future is accepted and delivers nothing. It follows every failure but a 429 to a watch, and every
// watch that ended without a frame. The caller may look for signs that the server was meanwhile restored to an older state
// (Reflector.CheckHistory).
//
// A watch that the server ends with an error is resumed. A gap and a list follow only if the server rejects our
// version: three times in a row it refused the watch although it answered the probe (4xx), or it failed again
// (500) although it accepted a watch at its own version, which the probe then tries. Overload (408, 429, 502,
// 503, 504) and an unreachable server never lead to a list.
//
// A frame that is unreadable twice is skipped if its object is known; the sink then has a state from which
// nothing can be resumed. If the object is unknown, the frame may have been a deletion: nothing after it is
// read before a list, so that a restart begins before it.
//
// A parked stream lists one object at growing intervals, to see whether its kind is served again. The caller may
// know more: Reflector.Retry lists at once, Reflector.Retire drops the objects of a kind that was removed.
//
// A loaded state is resumed without a list: it is probed, verified by the caller, and watched from its version
// in short watches, whose bookmarks come early, until it is as current as the probe. Servers omit such
// bookmarks under load, and some kinds have none: after two watches, the state is compared with a metadata-only
// list (Reflector.Compare), and one more watch may deliver the differences. Any remaining uncertainty ends in a
// list that compares by content.
//
// The stream needs the rights to list and to watch. Probes list even if all lists are streaming lists.
package reflector

import (
	"errors"
	"time"
)

// step is the machine. It uses no clock, no goroutine, and no memory but m.
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
	case Parked:
		return t.parked(m, in)
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
	case Replaced:
		return t.replaced(m, in)
	case Unverified:
		return t.unverified(m, in)
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
	m.Paged = m.Paged || m.refused // the stream was refused for its form
	m.streaming, m.refused, m.broken, m.laps, m.garbled = false, false, 0, 0, 0
	return m, eff
}

func (t *Timing) watching(m Machine, in Input) (Machine, Effects) {
	switch in.Event {
	case Accepted:
		m.Err, m.missing, m.unauthorized, m.throttled = nil, 0, 0, false
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
	case Replaced:
		return t.replaced(m, in)
	case Unverified:
		return t.unverified(m, in)
	case Garbled:
		return t.unreadable(m, in)
	}
	return m, Effects{}
}

// trusted clears the suspicions against our version.
func (m Machine) trusted() Machine {
	m.denied, m.rejected, m.suspect = 0, 0, false
	return m
}

// unreadable retries a frame once, then skips it. If its object is unknown, nothing after it can be read before
// a list.
func (t *Timing) unreadable(m Machine, in Input) (Machine, Effects) {
	m.garbled++
	switch {
	case m.garbled == 1:
		return t.again(m, in, DoWatch)
	case !in.Known:
		return t.relist(m, in, ReasonGarbled)
	}
	eff := Effects{Do: DoSkip}
	if m.garbled == 2 { // otherwise the same gap continues
		eff.Gap = ReasonGarbled
	}
	return m, eff
}

// relist lists at once, the first two times without a lasting watch in between: after a 410, after an
// unreadable frame of an unknown object, and if such a list then shows another history.
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

// replaced lists under a new epoch: the versions of the stored state have no meaning there.
func (t *Timing) replaced(m Machine, in Input) (Machine, Effects) {
	m.trust = Outdated
	return t.relist(m, in, ReasonReplaced)
}

// unverified lists by content: the stored state may differ from the server's at equal versions, or lack objects.
func (t *Timing) unverified(m Machine, in Input) (Machine, Effects) {
	m.trust = max(m.trust, Uncertain)
	if errors.Is(in.Err, ErrMissed) {
		return t.relist(m, in, ReasonMissed)
	}
	return t.relist(m, in, ReasonUnverified)
}

func (t *Timing) closed(m Machine, in Input) (Machine, Effects) {
	if in.Stalled { // neither the server nor the state is to blame
		return m.probe()
	}
	if !in.Short {
		m = m.trusted()
		m.Attempts = 0
	}
	if m.Resuming && (!in.Short || m.short >= maxShort) { // a watch that ends at once shows nothing
		m.laps++
		if m.laps > maxLaps {
			return t.unverified(m, in)
		}
	}
	if m.Resuming || in.Silent {
		return t.again(m, in, DoProbe)
	}
	return t.again(m, in, DoWatch)
}

// again continues at once after a watch that ended without a failure, unless watches keep ending within a
// second.
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
		m.throttled = false
		m.State, m.missing, m.works = Watching, 0, in.Works
		return m, Effects{Do: DoWatch}
	case CaughtUp:
		m.State, m.missing = Watching, 0
		m.Synced, m.Resuming, m.laps = true, false, 0
		return m, Effects{Do: DoWatch}
	case Unverified:
		return t.unverified(m, in)
	case Replaced:
		return t.replaced(m, in)
	case Expired:
		return t.failed(m, in)
	}
	return m, Effects{}
}

func (m Machine) list() (Machine, Effects) {
	eff := Effects{Trust: m.trust, Do: DoList}
	m.State, m.next, m.trust = Listing, Continue, Trusted
	m.throttled = false
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

// after returns the action that follows Waiting.
func (m Machine) after(in Input) (Machine, Effects) {
	switch {
	case in.Event != Timer:
		return m, Effects{}
	case m.next == DoProbe:
		return m.probe()
	case m.next == DoWatch:
		m.State, m.next = Watching, Continue
		return m, Effects{Do: DoWatch}
	}
	return m.list()
}
