package torture

import (
	"context"
	"fmt"
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
