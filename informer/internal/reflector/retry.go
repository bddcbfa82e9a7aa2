package reflector

import "time"

// The part of step that handles failures.

func (t *Timing) failed(m Machine, in Input) (Machine, Effects) {
	limit := t.Max
	if in.Unreachable {
		limit = t.MaxUnreachable
	}
	if m.State == Listing && m.streaming {
		m.broken++
	}
	return t.retry(m, in, t.backoff(m.Attempts+1, limit))
}

// refused waits until a user changes the cause of the refusal. A refused streaming list is different: the
// server may refuse only its form.
func (t *Timing) refused(m Machine, in Input) (Machine, Effects) {
	if m.State == Listing && m.streaming {
		m.refused, m.missing = true, 0
		return m.list()
	}
	m.refused = false
	return t.retry(m, in, t.Refused)
}

// missing parks a kind that is not served. It is requested once more before that: an API server that starts
// does not know its custom resources at first.
func (t *Timing) missing(m Machine, in Input) (Machine, Effects) {
	times := m.missing + 1
	if times == 1 {
		m, eff := t.retry(m, in, t.Missing)
		m.missing = times
		return m, eff
	}
	m.State, m.Err, m.missing, m.looks = Parked, in.Err, times, 0
	return m, t.park(m)
}

// park waits before the next look for the kind of a parked stream.
func (t *Timing) park(m Machine) Effects {
	return Effects{Do: DoPark, Delay: doubled(t.Unserved, m.looks+1, t.MaxUnserved)}
}

func (t *Timing) parked(m Machine, in Input) (Machine, Effects) {
	var eff Effects
	switch in.Event {
	case Timer:
		m.looks++
		return m, t.park(m)
	case Returned:
		m, eff = Machine{Synced: m.Synced, Paged: m.Paged}.list()
		eff.Gap = ReasonGone
	case Retire:
		m.Resuming = false
		eff = t.park(m)
		eff.Gap, eff.Drop = ReasonGone, true
	}
	return m, eff
}

// unauthorized retries soon: client-go drops its cached token, so the next request may work. Several 401s in a
// row count as a refusal.
func (t *Timing) unauthorized(m Machine, in Input) (Machine, Effects) {
	times, d := m.unauthorized+1, t.Refused
	if times < maxUnauthorized {
		d = doubled(t.Unauthorized, times, t.Refused)
	}
	m, eff := t.retry(m, in, d)
	m.unauthorized = times
	return m, eff
}

// retry waits after a failure and chooses the next action.
func (t *Timing) retry(m Machine, in Input, d time.Duration) (Machine, Effects) {
	next, gap := DoProbe, ""
	switch {
	case m.State == Probing:
		m.rejected = 0 // only consecutive rejections count
	case m.State == Watching && !in.Unreachable:
		m.denied++
		d = max(d, t.backoff(m.denied, t.Max))
		if m = m.reject(in); m.rejected == maxRejected {
			m.rejected = 0
			next, gap = DoList, ReasonUnwatched
		}
	}
	switch {
	case m.State == Listing || !m.Synced && !m.Resuming:
		next = DoList
	case m.State == Watching && in.Throttled && m.Synced:
		next, m.throttled = DoWatch, true // more requests would add to the load
	}
	m, eff := m.wait(in.Err, max(in.RetryAfter, d), next)
	eff.Gap = gap
	return m, eff
}

// reject counts a watch that the server ended with an error, for which our version may be the reason.
func (m Machine) reject(in Input) Machine {
	switch {
	case in.Event == Refused, in.Event == Missing:
		m.rejected++
	case in.Event == Unauthorized, in.Overload:
		m.rejected, m.suspect = 0, false
	default:
		if m.works {
			m.rejected++
		}
		m.suspect = m.denied > 1 // a single error usually passes
	}
	return m
}
