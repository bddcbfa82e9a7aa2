package reflector

import "time"

// This is what step does after a failure.

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

// refused waits for somebody to change what the server refuses, but for a streaming list: of that,
// the server may refuse only the form.
func (t *Timing) refused(m Machine, in Input) (Machine, Effects) {
	if m.State == Listing && m.streaming {
		m.refused, m.missing = true, 0
		return m.list()
	}
	m.refused = false
	return t.retry(m, in, t.Refused)
}

// missing parks a kind that is not served. It is asked for once more: an API server that starts does
// not know its custom resources at first.
func (t *Timing) missing(m Machine, in Input) (Machine, Effects) {
	times := m.missing + 1
	if times == 1 {
		m, eff := t.retry(m, in, t.Missing)
		m.missing = times
		return m, eff
	}
	m.State, m.Err, m.missing = Parked, in.Err, times
	return m, Effects{Do: DoEnd}
}

// unauthorized tries again soon: client-go drops its cached token, so that the next request may work. After
// several in a row it is a refusal.
func (t *Timing) unauthorized(m Machine, in Input) (Machine, Effects) {
	times, d := m.unauthorized+1, t.Refused
	if times < maxUnauthorized {
		d = doubled(t.Unauthorized, times, t.Refused)
	}
	m, eff := t.retry(m, in, d)
	m.unauthorized = times
	return m, eff
}

// retry waits after a failure, and decides what follows.
func (t *Timing) retry(m Machine, in Input, d time.Duration) (Machine, Effects) {
	next, gap := DoProbe, ""
	switch {
	case m.State == Probing:
		m.rejected = 0 // which has to be in a row
	case m.State == Watching && !in.Unreachable:
		m.denied++
		d = max(d, t.backoff(m.denied, t.Max))
		if m = m.reject(in); m.rejected == maxRejected {
			m.rejected = 0
			next, gap = DoList, ReasonUnwatched
		}
	}
	if m.State == Listing || !m.Synced && !m.Resuming {
		next = DoList
	}
	m, eff := m.wait(in.Err, max(in.RetryAfter, d), next)
	eff.Gap = gap
	return m, eff
}

// reject counts a watch that the server ended with an error, where our version may be the reason.
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
		m.suspect = m.denied > 1 // one error is soon over
	}
	return m
}
