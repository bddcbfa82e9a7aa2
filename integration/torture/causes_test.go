package torture

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// request is a list or watch by the daemon, with the server's response.
type request struct {
	at              time.Time
	run             int // of the daemon
	kind, namespace string
	what            query
	from            string // the version after which a watch was to begin

	// What the observer saw of the response, before the daemon did.
	code  int       // of the response, or of the error that ended it; 0: no response
	until time.Time // when code was seen
	at410 string    // the version that a 410 refused to resume from; empty: no 410
	to    string    // the version up to which a watch has shown everything
	whole bool      // a list was sent completely,
	list  string    // at this version
}

// query is a kind of request.
type query string

const (
	lists   query = "list"
	streams query = "streaming list"
	watches query = "watch"
	probes  query = "probe" // a list of one object
	audits  query = "list of metadata"
)

func (a *request) String() string {
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

// action is an action of the torture.
type action struct {
	what         string
	began, ended time.Time
	// forgets: before the action ended, the server may have lost the history of a kind, or of all, up to floor,
	// its version at that time. replaces: the server has another history.
	forgets, replaces bool
	kind              string
	floor             string
}

// causes holds the possible causes of gaps: the daemon's requests, as an observer saw them, and the torture's
// actions on the server.
type causes struct {
	mu       sync.Mutex
	requests []*request
	actions  []*action
}

func (c *causes) add(a *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, a)
}

// note updates a request.
func (c *causes) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// did records an action on the daemon, which does not excuse gaps.
func (c *causes) did(format string, args ...any) {
	now := time.Now()
	c.begin(&action{what: fmt.Sprintf(format, args...), began: now, ended: now})
}

func (c *causes) begin(d *action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actions = append(c.actions, d)
}

// during records an action while f carries it out. If the server forgets, its version afterwards is recorded,
// too.
func (c *causes) during(ctx context.Context, a *api, d action, f func(context.Context) error) error {
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

// newest returns the newest version of the server, after which it forgets nothing by itself. It lists each
// kind, so that the server's watch cache has begun.
func newest(ctx context.Context, a *api) (version string, err error) {
	for _, r := range kinds {
		err := within(ctx, 2*time.Minute, func() error {
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

// of returns the requests of a stream up to a time, in order, and those after it.
func (c *causes) of(kind, namespace string, t time.Time) (before, after []*request) {
	for _, a := range c.requests {
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

// around describes the daemon's requests for a stream, and the torture's actions, before and shortly after a
// time.
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
	for _, d := range c.actions {
		text := d.what
		if d.ended.After(d.began) {
			text += ", until " + clock(d.ended)
		}
		if d.floor != "" {
			text += ", then the server was at " + d.floor
		}
		all = append(all, line{d.began, text})
	}
	all = append(all, line{t, "=> the daemon records the gap"})
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	i := slices.IndexFunc(all, func(l line) bool { return strings.HasPrefix(l.text, "=>") })
	var b strings.Builder
	for _, l := range all[max(0, i-24):min(len(all), i+7)] {
		fmt.Fprintf(&b, "\n\t%s %s", clock(l.at), l.text)
	}
	return b.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
