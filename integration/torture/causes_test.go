package torture

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// ask is a list or a watch that the daemon asked for, and the server's answer.
type ask struct {
	at              time.Time
	run             int // of the daemon
	kind, namespace string
	what            query
	from            string // the version that a watch was to begin after

	// What the observer saw of the answer, before the daemon did.
	code  int       // that of the answer, or of the error that ended it; 0: there was none
	until time.Time // when code was seen
	at410 string    // the version after which the server has nothing to show; empty: it did not say so
	to    string    // the version that a watch has shown everything up to
	whole bool      // a list was shown to its end,
	list  string    // at this version
}

// query is a kind of ask.
type query string

const (
	lists   query = "list"
	streams query = "streaming list"
	watches query = "watch"
	probes  query = "probe" // a list of one object
	audits  query = "list of metadata"
)

func (a *ask) String() string {
	s := fmt.Sprintf("run %d: %s", a.run, a.what)
	if a.from != "" {
		s += " from " + a.from
	}
	switch {
	case a.code == 0:
		s += ", unanswered"
	default:
		s += fmt.Sprintf(", answered %d", a.code)
	}
	if a.whole {
		s += ", listed at " + a.list
	}
	if a.to != "" {
		s += ", watched up to " + a.to
	}
	if a.at410 != "" {
		s += fmt.Sprintf(", refused (410) after %s at %s", a.at410, clock(a.until))
	}
	return s
}

// deed is what the torture did.
type deed struct {
	what         string
	began, ended time.Time
	// forgets: the server may have lost the history of a kind, or of all, before the deed ended, and no more
	// than that: floor is its version then. Replaces: it has got another history.
	forgets, replaces bool
	kind              string
	floor             string
}

// causes is what can have made gaps necessary: what the daemon asked, as an observer saw it, and what the
// torture did to the server.
type causes struct {
	mu    sync.Mutex
	asks  []*ask
	deeds []*deed
}

func (c *causes) add(a *ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks = append(c.asks, a)
}

// note changes what is known of an ask.
func (c *causes) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// did notes what was done to the daemon, which excuses nothing.
func (c *causes) did(format string, args ...any) {
	now := time.Now()
	c.begin(&deed{what: fmt.Sprintf(format, args...), began: now, ended: now})
}

func (c *causes) begin(d *deed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, d)
}

// during notes a deed while f does it. Where the server forgets, its version afterwards is noted, too.
func (c *causes) during(ctx context.Context, a *api, d deed, f func(context.Context) error) error {
	d.began = time.Now()
	c.begin(&d)
	err := f(ctx)
	floor := ""
	if err == nil && d.forgets && !d.replaces {
		floor, err = newest(ctx, a)
	}
	c.note(func() { d.ended, d.floor = time.Now(), floor })
	return err
}

// newest is the newest version of the server, after which it forgets nothing by itself: each kind is asked
// for, so that the server has begun to watch it.
func newest(ctx context.Context, a *api) (version string, err error) {
	for _, r := range kinds {
		err := within(ctx, 30*time.Second, func() error {
			_, v, err := a.list(ctx, r)
			if compare(v, version) > 0 {
				version = v
			}
			return err
		})
		if err != nil {
			return "", fmt.Errorf("ask for the version of %s: %w", r.plural, err)
		}
	}
	return version, nil
}

// of returns the asks of a stream up to a time, in their order, and those after it.
func (c *causes) of(kind, namespace string, t time.Time) (before, after []*ask) {
	for _, a := range c.asks {
		switch {
		case a.kind != kind || a.namespace != namespace:
		case a.at.After(t):
			after = append(after, a)
		default:
			before = append(before, a)
		}
	}
	return before, after
}

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

// around tells what the daemon asked of a stream, and what the torture did, before and shortly after a time.
func (c *causes) around(kind, namespace string, t time.Time) string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	type line struct {
		at   time.Time
		text string
	}
	var all []line
	before, after := c.of(kind, namespace, t)
	for _, a := range append(before, after...) {
		all = append(all, line{a.at, a.String()})
	}
	for _, d := range c.deeds {
		text := d.what
		if d.ended.After(d.began) {
			text += ", until " + clock(d.ended)
		}
		if d.floor != "" {
			text += ", then the server is at " + d.floor
		}
		all = append(all, line{d.began, text})
	}
	all = append(all, line{t, "=> the daemon notes the gap"})
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	i := slices.IndexFunc(all, func(l line) bool { return strings.HasPrefix(l.text, "=>") })
	var b strings.Builder
	for _, l := range all[max(0, i-24):min(len(all), i+7)] {
		fmt.Fprintf(&b, "\n\t%s %s", clock(l.at), l.text)
	}
	return b.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
