package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/history"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/render"
)

// entry is a line of the timeline: a change, or several folded ones.
type entry struct {
	render.Line
	// ID is the change's id if there is only one; else Changes are folded.
	ID string
	// Type and Object are the parts of the line's name.
	Type, Object string
	// Folded is the number of changes below the line.
	Folded int
	// Day is set for the first entry of a day.
	Day string
	// Unfold, Around, Page (of the object), OnlyObject, OnlyNamespace, OnlyCluster and OnlyManager are URLs.
	Unfold, Around, Page, OnlyObject, OnlyNamespace, OnlyCluster, OnlyManager string
	// Marked says that the reader asked what changed around it.
	Marked bool
}

// Newest is the number of the newest change of the entry.
func (e *entry) Newest() int64 {
	if n := len(e.Changes); n > 0 {
		return e.Changes[n-1]
	}
	return 0
}

// Tone is the entry's colour.
func (e *entry) Tone() string {
	switch e.Severity {
	case event.Failure, event.Warning, event.Recovery:
		return string(e.Severity)
	}
	return "plain"
}

// SignClass is the entry's operation, as a CSS class.
func (e *entry) SignClass() string { return signClasses[e.Sign] }

var signClasses = map[string]string{"+": "created", "-": "deleted", "~": "updated", ">": "entered", "<": "left", "·": "folded", "=": "snapshot", "!": "notice"}

// list is a page of the timeline, the newest entry first.
type list struct {
	Entries []entry
	// Older is the URL of the older entries; empty at the end.
	Older string
	// Last is the number up to which the journal was read.
	Last int64
	// Note says what else is known about the list, such as that the search took too long.
	Note string
}

const (
	// pageChanges is how many changes a page of the timeline covers: about a screen, if they are not folded.
	pageChanges = 60
	// contextChanges is how many older changes are read as well, so that entries at the end of a page are complete: what they
	// fold is on no other page. It must not be less than pageChanges.
	contextChanges = 100
	// maxRead is how many changes are looked at for a page; the reader can continue the search.
	maxRead = 20_000
	// firstSearch is how long that may take for the first page, moreSearch for the next ones.
	firstSearch = 120 * time.Millisecond
	moreSearch  = time.Second
	// contextSearch is how long the search for older changes may take.
	contextSearch = 60 * time.Millisecond
)

// days marks the first entry of each day.
func days(entries []entry) {
	day := ""
	for i := range entries {
		if d := entries[i].At.UTC().Format("Monday, 2 January 2006"); d != day {
			entries[i].Day, day = d, d
		}
	}
}

// each calls f with the changes of the given numbers, which are in order. A change that was removed meanwhile is left out; of
// one that is damaged, known is false.
func (p *Page) each(ctx context.Context, seqs []int64, f func(e *journal.Entry, c change.Change, known error) error) error {
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n]-seqs[n-1] <= 16 { // one query reads nearby changes
			n++
		}
		q := journal.Query{After: seqs[0] - 1, Before: seqs[n-1] + 1, OldestFirst: true, Quiet: true, Snapshots: true}
		for e, err := range p.past.rows(ctx, q) {
			if err != nil {
				return err
			}
			if _, wanted := slices.BinarySearch(seqs[:n], e.Seq); !wanted {
				continue
			}
			c, err := p.past.build(ctx, &e)
			switch {
			case errors.Is(err, journal.ErrNotFound):
				continue
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && !history.Damaged(err):
				return err
			}
			if err := f(&e, c, err); err != nil {
				return err
			}
		}
		seqs = seqs[n:]
	}
	return nil
}

// play plays changes back until a time and passes their lines on, as of the moments at which they were seen.
func (p *Page) play(ctx context.Context, f *filter, seqs []int64, until time.Time, line func(render.Line)) error {
	player := newPlayer(f, line)
	err := p.each(ctx, seqs, func(e *journal.Entry, c change.Change, known error) error {
		if known != nil {
			player.damaged(e, known)
			return nil
		}
		return player.Change(c)
	})
	if err != nil {
		return err
	}
	return player.Flush(until)
}

// entry makes an entry of a line.
func (p *Page) entry(f *filter, line render.Line) entry {
	e := entry{Line: line, Folded: len(line.Changes)}
	if kind, name, ok := strings.Cut(line.Name, "/"); ok && line.Sign != "!" {
		e.Type, e.Object = kind, name
	}
	if len(line.Changes) > 0 {
		e.Unfold = f.with("/unfold", "changes", encodeNumbers(line.Changes))
	}
	e.Around = around(line.At, cmp.Or(line.Until, line.At))
	if at, err := time.Parse(time.RFC3339Nano, f.values.Get("at")); err == nil {
		e.Marked = at.Sub(line.At).Abs() < time.Second
	}
	if e.Type != "" {
		e.OnlyObject = f.with("/", "type", e.Type, "name", e.Object, "namespace", line.Namespace, "cluster", cmp.Or(line.Cluster, f.values.Get("cluster")))
	}
	if line.Cluster != "" {
		e.OnlyCluster = f.with("/", "cluster", line.Cluster)
	}
	if o := line.Object; o.Name != "" {
		e.Page = object{resource: journal.Kind{Group: o.Group, Resource: o.Resource}.GroupResource(), namespace: o.Namespace, name: o.Name, cluster: clusterOf(f, o)}.url()
	}
	if line.Namespace != "" {
		e.OnlyNamespace = f.with("/", "namespace", line.Namespace)
	}
	if line.Manager != "" && line.Manager != change.Unknown {
		e.OnlyManager = f.with("/", "manager", strings.Split(line.Manager, ", ")[0])
	}
	return e
}

// clusterOf returns the cluster of an object for its URL; empty if the filter has none to distinguish.
func clusterOf(f *filter, o render.Object) string {
	if len(f.clusters) == 0 && f.values.Get("cluster") == "" {
		return ""
	}
	return cmp.Or(o.Cluster, f.own)
}

// aroundTime is how much the answer to "what changed around here?" shows on each side.
const aroundTime = 5 * time.Minute

// around returns the URL of everything that changed around a moment, or an interval.
func around(from, to time.Time) string {
	f := &filter{}
	return f.with("/", "at", machine(from), "since", machine(nameable(from.Add(-aroundTime))), "until", machine(nameable(to.Add(aroundTime))))
}

// encodeNumbers encodes ascending numbers: the first, and the distances of the others, which repeat with *.
func encodeNumbers(seqs []int64) string {
	var b strings.Builder
	for i := 0; i < len(seqs); i++ {
		if i == 0 {
			fmt.Fprint(&b, seqs[0])
			continue
		}
		step, n := seqs[i]-seqs[i-1], 1
		for i+1 < len(seqs) && seqs[i+1]-seqs[i] == step {
			i++
			n++
		}
		fmt.Fprintf(&b, " %d", step)
		if n > 1 {
			fmt.Fprintf(&b, "*%d", n)
		}
	}
	return b.String()
}

// maxUnfold bounds the numbers of a URL.
const maxUnfold = 1000

// decodeNumbers undoes encodeNumbers, of a parameter.
func decodeNumbers(parameter, text string) (seqs []int64, err error) {
	for i, part := range strings.Fields(text) {
		step, times, repeated := strings.Cut(part, "*")
		n := 1
		d, err := strconv.ParseInt(step, 10, 64)
		if err == nil && repeated {
			n, err = strconv.Atoi(times)
		}
		if err != nil || d <= 0 || n < 1 || n > maxUnfold || i == 0 && n > 1 || len(seqs)+n > maxUnfold {
			return nil, mistake("%s: the link is not complete", parameter)
		}
		for range n {
			last := int64(0)
			if len(seqs) > 0 {
				last = seqs[len(seqs)-1]
			}
			if last > 1<<62-d {
				return nil, mistake("%s: the link is not complete", parameter)
			}
			seqs = append(seqs, last+d)
		}
	}
	if len(seqs) == 0 {
		return nil, mistake("%s: the link is not complete", parameter)
	}
	return seqs, nil
}
