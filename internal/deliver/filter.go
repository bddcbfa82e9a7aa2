package deliver

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/tattler-dev/tattler/event"
)

const (
	// maxFilterError bounds the cause in an event and in the log, in bytes: it may quote a key of the object.
	maxFilterError = 512
	// filterLogEvery is the minimum time between log lines about a sink's filter.
	filterLogEvery = time.Minute
)

// filterLog limits how often a failing filter is logged.
type filterLog struct {
	at       time.Time
	failures int // since then
}

// wants reports whether the sink gets an item, and returns it with a mark if the filter failed on it. Items
// that cannot be read are not filtered.
func (p *Pump) wants(item Item) (Item, bool) {
	if item.Change == nil {
		return item, false
	}
	if item.Err != nil {
		return item, true
	}
	if c := item.Change; c.Quiet || c.Op == event.Snapshot && !p.o.Snapshots {
		return item, false
	}
	item, wanted, failure := p.o.judge(item)
	if failure != "" {
		p.filterFailed(item, failure)
	}
	return item, wanted
}

// judge applies the filter. If it fails, the item is wanted, and is returned with a mark: users who write
// objects can make a filter fail, and must not be able to hide a change that way.
func (o *Options) judge(item Item) (marked Item, wanted bool, failure string) {
	if o.Where == nil {
		return item, true, ""
	}
	wanted, err := o.Where.Match(item.Change)
	if err == nil {
		return item, wanted, ""
	}
	failure = err.Error()
	if len(failure) > maxFilterError {
		failure = strings.ToValidUTF8(failure[:maxFilterError], "") + "…"
	}
	return item.marked(failure), true, failure
}

// filterFailed counts a failure of the filter, and logs it if the last line is old enough.
func (p *Pump) filterFailed(item Item, failure string) {
	p.report(func(s *Status) { s.FilterErrors++; s.FilterError = failure })
	l := &p.filterLog
	l.failures++
	if now := time.Now(); l.at.IsZero() || now.Sub(l.at) >= filterLogEvery {
		p.o.Log.Warn("the filter failed on a change; delivering it", "sink", p.o.Name, "where", p.o.Where.String(),
			"error", failure, "id", item.Event().ID, "subject", item.Event().Subject, "failures", l.failures)
		l.at, l.failures = now, 0
	}
}

// marked returns an item whose event and text report the filter's failure.
func (i Item) marked(failure string) Item {
	e, text := *i.Event(), i.Text
	e.Data.FilterError = failure
	i.Event, i.JSON = func() *event.Event { return &e }, nil
	if text == nil {
		return i
	}
	i.Text = func(w io.Writer) error {
		if err := text(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "! delivered because the filter failed: %s\n", strings.Map(printable, failure))
		return err
	}
	return i
}

// printable removes control characters, so that a cause cannot control a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}
