package torture

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// row is a change of a journal.
type row struct {
	seq                                 int64
	id                                  string
	op                                  event.Op
	kind, namespace, name, uid, version string
	derived                             bool // a relist told it: it happened in an interval
	quiet                               bool
	gap                                 *event.GapInfo
	absence                             *event.Absence
	since, at                           time.Time // since is that of a gap or an absence
	before, after                       []byte
}

// fault is what a judge finds.
type fault struct {
	what string // one of the words below
	text string
}

// The faults.
const (
	lost       = "lost"       // the server showed it, and no row, and no gap that had to be, has it
	needless   = "needless"   // a gap that nothing made necessary, or that is wider than that
	invented   = "invented"   // nobody but the journal saw it
	twice      = "twice"      // a change or an id is there again
	disorder   = "disorder"   // an older version follows a newer one
	falsified  = "falsified"  // a row has not what the server showed, or hides too little or too much
	broken     = "broken"     // a change does not begin with what the one before led to
	groundless = "groundless" // a net change without a gap, or a gap without a reason
	diverged   = "diverged"   // replayed, the journal is not what the server has
	missed     = "missed"     // a sink did not get it
	torn       = "torn"       // what a sink got is not whole, or not the same as before
)

// judge compares a journal, and what sinks got, with what a witness saw. Rows come first, in their order.
type judge struct {
	past   *past
	within []string // namespaces; of others a journal may have what it likes
	faults []fault
	// next, if set, is what another witness saw in another history of the server: it counts for a stream from
	// the gap on that says so.
	next   *past
	forked map[string]bool // kinds in the other history
	// early, if set, allows rows of the other history before that gap: a stream that is resumed when the
	// server has gone on beyond it finds out only when it is current. It counts them.
	early *int
	// causes are what can have made gaps necessary; nil: nothing can.
	causes  *causes
	courses map[identity]*course
	gaps    []chasm
	// began is when the first row was recorded.
	began    time.Time
	absences []interval
	// recorded is the newest version of a stream that was recorded as it happened.
	recorded map[stream]string
	ids      map[string]bool
	loud     []row // what sinks may get, without objects
	last     int64
	masks    map[string]string // object, path and marker to a plain value, and the other way

	// What was judged.
	exact, net, unwitnessed int
}

// course is how far an object is in its timeline.
type course struct {
	t     *timeline
	next  int    // the first sighting that is not judged yet
	seq   int64  // of the last row
	live  bool   // the last row left an object
	state string // that one, canonical
	at    string // its version
}

func newJudge(p *past, c *causes, within ...string) *judge {
	return &judge{
		past: p, causes: c, within: within, courses: map[identity]*course{}, recorded: map[stream]string{},
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
		j.find(twice, "the id %s of %v", r.id, &r)
	}
	j.ids[r.id] = true
	if !r.quiet {
		note := r
		note.before, note.after = nil, nil
		j.loud = append(j.loud, note)
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
	c := j.course(&r)
	i, ok := j.place(c, &r)
	if ok {
		j.skipped(c, i, r.seq, &r)
		c.next = i + 1
		j.exact++
	}
	j.chain(c, &r)
	if r.after != nil {
		shown := r.after // of which nobody knows better
		if ok {
			shown = c.t.sights[i].json
		}
		j.content(c, &r, shown)
	}
	j.ground(c, &r)
	c.seq, c.live, c.at = r.seq, r.after != nil, r.version
}

func (j *judge) course(r *row) *course {
	id := identity{r.kind, r.uid}
	c := j.courses[id]
	if c == nil {
		t := j.past.objects[id]
		if t == nil {
			t = &timeline{kind: r.kind, namespace: r.namespace, name: r.name, uid: r.uid}
			j.past.objects[id] = t
		}
		c = &course{t: t}
		j.courses[id] = c
	}
	if c.t.namespace != r.namespace || c.t.name != r.name {
		j.find(falsified, "%v is %s/%s", r, c.t.namespace, c.t.name)
	}
	return c
}

// place finds the sighting that a row tells of. One that the witness could not see is taken on trust,
// and counted.
func (j *judge) place(c *course, r *row) (int, bool) {
	goes := r.op == event.Deleted || r.op == event.Left
	i := slices.IndexFunc(c.t.sights, func(s sighting) bool {
		switch {
		case goes != (s.what == deleted):
			return false
		case s.vague: // a derived deletion has the last version that was known
			return r.derived || span{s.after, s.version}.has(r.version)
		case goes && r.derived:
			return r.version == c.at
		}
		return s.version == r.version
	})
	switch {
	case i >= 0 && i < c.next:
		j.find(twice, "%v: the object is at %s already", r, c.at)
		return 0, false
	case i >= 0:
		return i, true
	case j.early != nil && !j.forked[r.kind]:
		*j.early++
		return 0, false
	case r.derived && goes || !j.past.blindAt(r.kind, r.version):
		j.find(invented, "%v: the witness saw no such version", r)
		return 0, false
	}
	j.unwitnessed++
	s := sighting{version: r.version, what: present, json: r.after}
	if goes {
		s = sighting{version: r.version, what: deleted}
	}
	i, known := slices.BinarySearchFunc(c.t.sights, s, func(a, b sighting) int { return compare(a.version, b.version) })
	if known || i < c.next {
		j.find(disorder, "%v: the object is at %s already", r, c.at)
		return 0, false
	}
	c.t.sights = slices.Insert(c.t.sights, i, s)
	return i, true
}

// skipped judges the sightings of an object up to the one at end, which is told by the row with the number
// seq: each must lie in a gap that was told between the object's last row and this one.
func (j *judge) skipped(c *course, end int, seq int64, next *row) {
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
			then = "then comes " + next.String()
		}
		j.find(lost, "%s %s %s/%s %s at %s, after %s (row %d); %s%s", s.what, c.t.kind, c.t.namespace, c.t.name, c.t.uid, s.version, c.at, c.seq, then,
			j.gapsBetween(c.t, c.seq, seq))
	}
}

// excused tells whether a gap between the object's last row and the one with the number seq has a version.
func (j *judge) excused(c *course, s sighting, seq int64) bool {
	return slices.ContainsFunc(j.gaps, func(g chasm) bool { return g.seq > c.seq && g.seq < seq && g.covers(c.t, s) })
}

// chain checks that a change begins with what the last one led to.
func (j *judge) chain(c *course, r *row) {
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

// content compares what a change led to with what the server showed.
func (j *judge) content(c *course, r *row, shown []byte) {
	after, marks, err := canonical(r.kind, r.after, true)
	if err != nil {
		j.find(falsified, "%v, after: %v", r, err)
		return
	}
	c.state = after
	if bytes.Equal(shown, r.after) { // taken on trust
		return
	}
	want, plain, err := canonical(r.kind, shown, false)
	if err != nil {
		j.find(falsified, "the witness, of %v: %v", r, err)
		return
	}
	if after != want {
		j.find(falsified, "%v is\n%s\nnot\n%s", r, after, want)
		return
	}
	j.marks(r, marks, plain)
}

// marks checks that within a field equal values, and only those, have equal markers.
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

// ground checks that a net change follows a gap.
func (j *judge) ground(c *course, r *row) {
	if !r.derived || r.op == event.Snapshot {
		return
	}
	if !slices.ContainsFunc(j.gaps, func(g chasm) bool {
		return g.kind == r.kind && (g.namespace == "" || g.namespace == r.namespace) && g.seq > c.seq
	}) {
		j.find(groundless, "%v is a net change without a gap", r)
	}
}

// end judges what is left when there are no more rows: what the journal has no row of, and whether it leads
// to what the server has, by object.
func (j *judge) end(server map[identity][]byte) {
	for id, t := range j.past.objects {
		if !slices.Contains(j.within, t.namespace) {
			continue
		}
		c := j.courses[id]
		if c == nil {
			c = &course{t: t}
			j.courses[id] = c
		}
		j.skipped(c, len(t.sights), j.last+1, nil)
		if _, there := server[id]; there != c.live {
			j.find(diverged, "%s %s/%s %s is live: %v; the server has it: %v", t.kind, t.namespace, t.name, t.uid, c.live, there)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(server), func(a, b identity) int { return strings.Compare(a.uid, b.uid) }) {
		c := j.courses[id]
		if c == nil {
			j.find(diverged, "the server has %v, the journal never had", id)
			continue
		}
		want, _, err := canonical(id.kind, server[id], false)
		if err != nil || c.live && want != c.state {
			j.find(diverged, "%s %s/%s is\n%s\nnot\n%s\n(%v)", id.kind, c.t.namespace, c.t.name, c.state, want, err)
		}
	}
}

// verdict is what was found, by what it is; empty if all is well.
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
