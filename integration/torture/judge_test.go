package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// row is a change in a journal.
type row struct {
	seq                                 int64
	id                                  string
	op                                  event.Op
	kind, namespace, name, uid, version string
	derived                             bool // derived by a relist: it happened within an interval
	quiet                               bool
	gap                                 *event.GapInfo
	absence                             *event.Absence
	since, at                           time.Time // since is the begin of a gap, of an absence or of an interval
	time                                time.Time // of the change
	before, after                       []byte
}

// fault is a finding of a judge.
type fault struct {
	what string // one of the words below
	text string
}

// The kinds of faults.
const (
	lost       = "lost"       // shown by the server, but in no row and no necessary gap
	needless   = "needless"   // an unnecessary gap, or one that is wider than necessary
	invented   = "invented"   // only in the journal
	twice      = "twice"      // a duplicate change or id
	disorder   = "disorder"   // an older version follows a newer one
	falsified  = "falsified"  // a row differs from the server's version, or hides too little or too much
	broken     = "broken"     // a change does not begin with the previous state
	groundless = "groundless" // a net change without a gap, or a gap without a reason
	diverged   = "diverged"   // the replayed journal differs from the server
	missed     = "missed"     // not received by a sink
	torn       = "torn"       // received by a sink incompletely, or with different bytes than before
)

// judge compares a journal, and the messages received by sinks, with a watcher's history. Rows come first, in
// order.
type judge struct {
	past   *past
	within []string // namespaces that are judged
	faults []fault
	// next, if set, is the history of another watcher after the server's history was replaced: it applies to a
	// stream from the gap that reports the change.
	next   *past
	forked map[string]bool // kinds in the other history
	// early, if set, allows and counts rows of the other history before that gap: a stream that is resumed
	// after the server has overtaken it notices only once it is current.
	early *int
	// causes are the possible causes of gaps; nil means that nothing can cause one.
	causes     *causes
	progresses map[identity]*progress
	gaps       []judgedGap
	// began is the time of the first row.
	began    time.Time
	absences []interval
	// recorded is the newest version of a stream that was recorded from a watch.
	recorded map[stream]string
	ids      map[string]bool
	listed   []row // expected at sinks, without objects
	last     int64
	masks    map[string]string // object, path and marker to a plain value, and vice versa

	// Counts of judged versions.
	exact, net, unseen int
	dated              int // changes whose object shows when they happened
}

// progress is the judged part of an object's timeline.
type progress struct {
	t     *timeline
	next  int    // the first sighting not judged yet
	seq   int64  // of the last row
	live  bool   // the last row left an object
	state string // that object, canonical
	at    string // its version
}

func newJudge(p *past, c *causes, within ...string) *judge {
	return &judge{
		past: p, causes: c, within: within, progresses: map[identity]*progress{}, recorded: map[stream]string{},
		ids: map[string]bool{}, forked: map[string]bool{}, masks: map[string]string{},
	}
}

func (j *judge) find(what, format string, args ...any) {
	j.faults = append(j.faults, fault{what, fmt.Sprintf(format, args...)})
}

func (r *row) String() string {
	return fmt.Sprintf("%d %s %s %s/%s %s at %s", r.seq, r.op, r.kind, r.namespace, r.name, r.uid, r.version)
}

// row judges the next row.
func (j *judge) row(r row) {
	if r.seq <= j.last {
		j.find(disorder, "row %v comes after row %d", &r, j.last)
	}
	j.last = r.seq
	if j.ids[r.id] {
		j.find(twice, "duplicate id %s of %v", r.id, &r)
	}
	j.ids[r.id] = true
	if !r.quiet {
		note := r
		note.before, note.after = nil, nil
		j.listed = append(j.listed, note)
	}
	if j.began.IsZero() {
		j.began = r.at
	}
	switch r.op {
	case event.Gap:
		j.gapRow(r)
		return
	case event.Absent:
		j.absence(r)
		return
	}
	j.sawRow(&r)
	if !slices.Contains(j.within, r.namespace) {
		return
	}
	c := j.progress(&r)
	i, ok := j.place(c, &r)
	if ok {
		j.skipped(c, i, r.seq, &r)
		j.times(c, i, &r)
		c.next = i + 1
		j.exact++
	}
	j.chain(c, &r)
	if r.after != nil {
		shown := r.after // the watcher has no better one
		if ok {
			shown = c.t.sights[i].json
		}
		j.content(c, &r, shown)
	}
	j.ground(c, &r)
	c.seq, c.live, c.at = r.seq, r.after != nil, r.version
}

func (j *judge) progress(r *row) *progress {
	id := identity{r.kind, r.uid}
	c := j.progresses[id]
	if c == nil {
		t := j.past.objects[id]
		if t == nil {
			t = &timeline{kind: r.kind, namespace: r.namespace, name: r.name, uid: r.uid}
			j.past.objects[id] = t
		}
		c = &progress{t: t}
		j.progresses[id] = c
	}
	if c.t.namespace != r.namespace || c.t.name != r.name {
		j.find(falsified, "%v is %s/%s", r, c.t.namespace, c.t.name)
	}
	return c
}

// place finds the sighting of a row. A version that the watcher could not see is accepted and counted.
func (j *judge) place(c *progress, r *row) (int, bool) {
	goes := r.op == event.Deleted || r.op == event.Left
	i := slices.IndexFunc(c.t.sights, func(s sighting) bool {
		switch {
		case goes != (s.what == deleted):
			return false
		case s.vague: // a derived deletion has the last known version
			return r.derived || span{s.after, s.version}.has(r.version)
		case goes && r.derived:
			return r.version == c.at
		}
		return s.version == r.version
	})
	switch {
	case i >= 0 && i < c.next:
		j.find(twice, "%v: the object is already at %s", r, c.at)
		return 0, false
	case i >= 0:
		return i, true
	case j.early != nil && !j.forked[r.kind]:
		*j.early++
		return 0, false
	case r.derived && goes || !j.past.blindAt(r.kind, r.version):
		j.find(invented, "%v: the watcher saw no such version", r)
		return 0, false
	}
	j.unseen++
	s := sighting{version: r.version, what: present, json: r.after}
	if goes {
		s = sighting{version: r.version, what: deleted}
	}
	i, known := slices.BinarySearchFunc(c.t.sights, s, func(a, b sighting) int { return compare(a.version, b.version) })
	if known || i < c.next {
		j.find(disorder, "%v: the object is already at %s", r, c.at)
		return 0, false
	}
	c.t.sights = slices.Insert(c.t.sights, i, s)
	return i, true
}

// skipped judges the sightings of an object up to the one at end, which belongs to the row with number seq:
// each must lie in a gap between the object's last row and this one.
func (j *judge) skipped(c *progress, end int, seq int64, next *row) {
	for _, s := range c.t.sights[c.next:end] {
		if c.seq == 0 && compare(s.version, j.past.start[c.t.kind]) <= 0 {
			continue // before the journal began
		}
		if j.excused(c, s, seq) {
			j.net++
			continue
		}
		then := "nothing follows"
		if next != nil {
			then = "followed by " + next.String()
		}
		j.find(lost, "%s %s %s/%s %s at %s, after %s (row %d); %s%s", s.what, c.t.kind, c.t.namespace, c.t.name, c.t.uid, s.version, c.at, c.seq, then,
			j.gapsBetween(c.t, c.seq, seq))
	}
}

// excused reports whether a gap between the object's last row and the one with number seq covers a version.
func (j *judge) excused(c *progress, s sighting, seq int64) bool {
	return slices.ContainsFunc(j.gaps, func(g judgedGap) bool { return g.seq > c.seq && g.seq < seq && g.covers(c.t, s) })
}

// chain checks that a change begins with the previous state.
func (j *judge) chain(c *progress, r *row) {
	goes := r.op == event.Deleted || r.op == event.Left
	if c.live != (goes || r.op == event.Updated) {
		j.find(broken, "%v: before it the object is live: %v", r, c.live)
	}
	if goes == (r.after != nil) {
		j.find(broken, "%v: after it there is %d bytes", r, len(r.after))
	}
	if goes || r.op == event.Updated {
		before, _, err := canonical(r.kind, r.before, true)
		if err != nil {
			j.find(falsified, "%v, before: %v", r, err)
		} else if c.live && before != c.state {
			j.find(broken, "%v begins with %s, not with %s", r, before, c.state)
		}
	}
}

// content compares the state after a change with the server's version.
func (j *judge) content(c *progress, r *row, shown []byte) {
	after, marks, err := canonical(r.kind, r.after, true)
	if err != nil {
		j.find(falsified, "%v, after: %v", r, err)
		return
	}
	c.state = after
	if bytes.Equal(shown, r.after) { // accepted without a sighting
		return
	}
	want, plain, err := canonical(r.kind, shown, false)
	if err != nil {
		j.find(falsified, "the watcher's version of %v: %v", r, err)
		return
	}
	if after != want {
		j.find(falsified, "%v is\n%s\nnot\n%s", r, after, want)
		return
	}
	j.marks(r, marks, plain)
}

// marks checks that within a field, markers are equal exactly if the values are.
func (j *judge) marks(r *row, marks, plain []hidden) {
	order := func(a, b hidden) int { return strings.Compare(a.path, b.path) }
	slices.SortFunc(marks, order)
	slices.SortFunc(plain, order)
	for i := range marks {
		at := r.kind + " " + r.uid + " " + marks[i].path
		for key, value := range map[string]string{
			at + " of " + marks[i].marker: plain[i].plain,
			at + " for " + plain[i].plain: marks[i].marker,
		} {
			if old, known := j.masks[key]; known && old != value {
				j.find(falsified, "%v: %s is %q and %q", r, key, old, value)
			}
			j.masks[key] = value
		}
	}
}

// ground checks that a net change follows a gap, or is a creation after the journal began that its first list showed: then
// it lies between the object's creation and that list. After a first list that was interrupted, there is a gap as well, and
// the creation lies between the two lists.
func (j *judge) ground(c *progress, r *row) {
	if !r.derived || r.op == event.Snapshot {
		return
	}
	if slices.ContainsFunc(j.gaps, func(g judgedGap) bool {
		return g.kind == r.kind && (g.namespace == "" || g.namespace == r.namespace) && g.seq > c.seq
	}) {
		return
	}
	if r.op != event.Created || c.seq > 0 || compare(r.version, j.past.start[r.kind]) > 0 {
		j.find(groundless, "%v is a net change without a gap", r)
		return
	}
	var o stem
	if err := json.Unmarshal(r.after, &o); err != nil || !o.Metadata.CreationTimestamp.Equal(r.since) {
		j.find(falsified, "%v happened after %v, but was created at %v (%v)", r, r.since, o.Metadata.CreationTimestamp, err)
	}
}

// end judges the rest after the last row: versions without a row, and whether the replayed journal equals the
// server's objects.
func (j *judge) end(server map[identity][]byte) {
	for id, t := range j.past.objects {
		if !slices.Contains(j.within, t.namespace) {
			continue
		}
		c := j.progresses[id]
		if c == nil {
			c = &progress{t: t}
			j.progresses[id] = c
		}
		j.skipped(c, len(t.sights), j.last+1, nil)
		if _, there := server[id]; there != c.live {
			j.find(diverged, "%s %s/%s %s is live: %v; the server has it: %v", t.kind, t.namespace, t.name, t.uid, c.live, there)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(server), func(a, b identity) int { return strings.Compare(a.uid, b.uid) }) {
		c := j.progresses[id]
		if c == nil {
			j.find(diverged, "the server has %v, the journal does not", id)
			continue
		}
		want, _, err := canonical(id.kind, server[id], false)
		if err != nil || c.live && want != c.state {
			j.find(diverged, "%s %s/%s is\n%s\nnot\n%s\n(%v)", id.kind, c.t.namespace, c.t.name, c.state, want, err)
		}
	}
}

// verdict lists the faults by kind, or is empty.
func (j *judge) verdict() string {
	var b strings.Builder
	counts := map[string]int{}
	for _, f := range j.faults {
		if counts[f.what]++; counts[f.what] <= 5 {
			fmt.Fprintf(&b, "%s: %.3000s\n", f.what, f.text)
		}
	}
	if len(j.faults) > 0 {
		fmt.Fprintf(&b, "%v", counts)
	}
	return b.String()
}
