package torture

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// forgot reports whether an action made the server forget the version that it refused to resume from.
func (c *causes) forgot(a *request) bool {
	return slices.ContainsFunc(c.actions, func(d *action) bool {
		return d.forgets && (d.kind == "" || d.kind == a.kind) && !d.began.After(a.until) &&
			(d.floor == "" || !d.ended.Before(a.until) || compare(a.at410, d.floor) < 0)
	})
}

// replaced reports whether an action had given the server another history.
func (c *causes) replaced(t time.Time) bool {
	return slices.ContainsFunc(c.actions, func(d *action) bool { return d.replaces && !d.began.After(t) })
}

// unserved reports whether the server did not serve a kind, which is possible after a restart.
func (c *causes) unserved(a *request) bool {
	return a.code == http.StatusNotFound &&
		slices.ContainsFunc(c.actions, func(d *action) bool { return d.forgets && !d.began.After(a.at) })
}

// cause is the cause of a gap: its unjustified reasons, and the versions that the daemon can have missed for
// the others.
type cause struct {
	needless []string // explanations, by reason
	missed   span
	refused  []string // versions that the server refused to resume from
}

// gapCause finds the cause of a gap of a stream, recorded at t for these reasons. recorded is the newest
// version of the stream in the journal, from a watch, before the gap.
func (c *causes) gapCause(kind, namespace string, reasons []string, t time.Time, recorded string) cause {
	var out cause
	if c == nil {
		return cause{needless: []string{"no action on the server could cause a gap"}}
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
			err = c.requiredList(before, recorded)
		case "history-changed", "unverified":
			if !c.replaced(t) {
				err = errors.New("the server's history was not replaced")
			}
		case "not served":
			if !slices.ContainsFunc(before, c.unserved) {
				err = errors.New("the server did not answer 404 during a restart")
			}
		default: // the daemon's own faults: the server has the missed versions
			err = errors.New("the server had the missed versions")
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

// expired returns the versions that the server refused to resume from, or an error if no action made it forget
// them.
func (c *causes) expired(before []*request, t time.Time) (refused []string, err error) {
	unexplained := ""
	for _, a := range before {
		switch {
		case a.at410 == "" || a.until.After(t):
		case c.forgot(a):
			refused = append(refused, a.at410)
		default:
			unexplained = fmt.Sprintf("; at %s it did, for versions after %s, which no action made it forget", clock(a.until), a.at410)
		}
	}
	if len(refused) == 0 {
		return nil, fmt.Errorf("the server did not answer 410 after it was made to forget%s", unexplained)
	}
	return refused, nil
}

// requiredList returns nil if a required list had not been completed and recorded before the last one began:
// the first of all, or one after a 410 or a 404.
func (c *causes) requiredList(before []*request, recorded string) error {
	last := -1
	for i, a := range before {
		if a.what == lists || a.what == streams {
			last = i
		}
	}
	if last < 0 {
		return errors.New("the daemon did not list")
	}
	list, run, version := "the first list", 0, ""
	for _, a := range before[:last] {
		fresh := a.run != run // a run's first request shows the state left by the previous run
		switch {
		case a.what == watches && fresh:
			list, version = "", ""
		case a.what == streams || a.what == lists:
			if a.whole {
				version = a.list
			}
		}
		if a.what != probes && a.what != audits {
			run = a.run
		}
		if a.at410 != "" && c.forgot(a) {
			list, version = "a list after a 410", ""
		}
		if c.unserved(a) {
			list, version = "a list after a 404", ""
		}
	}
	switch {
	case list == "":
		return errors.New("the previous run had resumed without a list, and none was required")
	case version != "" && compare(recorded, version) > 0:
		return fmt.Errorf("%s was complete at %s, and a later version, %s, is recorded", list, version, recorded)
	}
	return nil
}

// lastRefused returns the version that the server last refused to resume from; empty if it never did.
func lastRefused(before []*request, t time.Time) string {
	for _, a := range slices.Backward(before) {
		if a.at410 != "" && !a.until.After(t) {
			return a.at410
		}
	}
	return ""
}

// listed returns the version of the list that a gap led to: the current one, or the next to be completed.
func listed(before, after []*request) string {
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
