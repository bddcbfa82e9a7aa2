package torture

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// forgot tells whether the torture made the server forget where it refused to go on.
func (c *causes) forgot(a *ask) bool {
	return slices.ContainsFunc(c.deeds, func(d *deed) bool {
		return d.forgets && (d.kind == "" || d.kind == a.kind) && !d.began.After(a.until) &&
			(d.floor == "" || !d.ended.Before(a.until) || compare(a.at410, d.floor) < 0)
	})
}

// replaced tells whether the torture had given the server another history.
func (c *causes) replaced(t time.Time) bool {
	return slices.ContainsFunc(c.deeds, func(d *deed) bool { return d.replaces && !d.began.After(t) })
}

// unserved tells whether the server did not serve a kind, which it need not when it has been restarted.
func (c *causes) unserved(a *ask) bool {
	return a.code == http.StatusNotFound &&
		slices.ContainsFunc(c.deeds, func(d *deed) bool { return d.forgets && !d.began.After(a.at) })
}

// cause is what may have led to a gap: its reasons that nothing made necessary, and the versions that the
// daemon can have missed for the others.
type cause struct {
	needless []string // why, by reason
	missed   span
	refused  []string // where the server refused to go on
}

// why finds the cause of a gap of a stream, which the daemon noted at t, for these reasons. Recorded is the
// newest version of the stream that the journal has, as it happened, before the gap.
func (c *causes) why(kind, namespace string, reasons []string, t time.Time, recorded string) cause {
	var out cause
	if c == nil {
		return cause{needless: []string{"nothing that was done to the server could make a gap"}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, after := c.of(kind, namespace, t)
	for _, reason := range reasons {
		var err error
		switch reason {
		case "expired":
			out.refused, err = c.expired(before, t)
		case "a list was interrupted":
			err = c.owed(before, recorded)
		case "history-changed", "unverified":
			if !c.replaced(t) {
				err = errors.New("the server's history is the one that it was")
			}
		case "not served":
			if !slices.ContainsFunc(before, c.unserved) {
				err = errors.New("the server, when it was made to restart, did not answer 404")
			}
		default: // the daemon's own faults: the server has what was missed
			err = errors.New("the server had what was missed")
		}
		if err != nil {
			out.needless = append(out.needless, fmt.Sprintf("%q: %v", reason, err))
		}
	}
	out.missed = span{lastRefused(before, t), listed(before, after)}
	if c.replaced(t) {
		out.missed.from = ""
	}
	return out
}

// expired returns where the server refused to go on, and why it did, if the torture did nothing that makes it.
func (c *causes) expired(before []*ask, t time.Time) (refused []string, err error) {
	unexplained := ""
	for _, a := range before {
		switch {
		case a.at410 == "" || a.until.After(t):
		case c.forgot(a):
			refused = append(refused, a.at410)
		default:
			unexplained = fmt.Sprintf("; at %s it did, for what comes after %s, which nothing made it forget", clock(a.until), a.at410)
		}
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("the server, when it was made to forget, did not answer 410%s", unexplained)
	}
	return refused, nil
}

// owed returns nil if a list that was necessary had not been completed and recorded before the last one
// began: the first of all, or one that followed a 410 or a 404.
func (c *causes) owed(before []*ask, recorded string) error {
	last := -1
	for i, a := range before {
		if a.what == lists || a.what == streams {
			last = i
		}
	}
	if last < 0 {
		return errors.New("the daemon did not list")
	}
	owed, run, version := "the first list", 0, ""
	for _, a := range before[:last] {
		fresh := a.run != run // what a run begins with shows what the one before left
		switch {
		case a.what == watches && fresh:
			owed, version = "", ""
		case a.what == streams || a.what == lists:
			if a.whole {
				version = a.list
			}
		}
		if a.what != probes && a.what != audits {
			run = a.run
		}
		if a.at410 != "" && c.forgot(a) {
			owed, version = "a list after a 410", ""
		}
		if c.unserved(a) {
			owed, version = "a list after a 404", ""
		}
	}
	switch {
	case owed == "":
		return errors.New("the run before it had resumed without a list, and needed none")
	case version != "" && compare(recorded, version) > 0:
		return fmt.Errorf("%s was complete at %s, and what came after it, at %s, is recorded", owed, version, recorded)
	}
	return nil
}

// lastRefused is where the server refused to go on last; empty if it never did.
func lastRefused(before []*ask, t time.Time) string {
	for _, a := range slices.Backward(before) {
		if a.at410 != "" && !a.until.After(t) {
			return a.at410
		}
	}
	return ""
}

// listed is the version of the list that a gap led to: the one under way, or the next to be completed.
func listed(before, after []*ask) string {
	for i, a := range slices.Backward(before) {
		if a.what == lists || a.what == streams {
			after = append(before[i:len(before):len(before)], after...)
			break
		}
	}
	for _, a := range after {
		if a.whole {
			return a.list
		}
	}
	return ""
}
