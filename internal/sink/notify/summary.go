package notify

import (
	"cmp"
	"hash/maphash"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// Limits of a summary. It keeps the stories of so many owners, and of more if they are prominent; for each story the
// owner and two other objects, with so many fields. Everything else is counted. A story takes about 10 KiB, and a
// summary about 700 KiB, if every name and value has its maximum length; typically a tenth of that. The owners take
// as much again.
const (
	maxStories   = 40
	maxProminent = 20
	maxMembers   = 3
	maxFields    = 8
	minorFields  = 3
	maxCounts    = 64
	maxOwners    = 4096
	maxOthers    = 64
	maxPath      = 200 // runes
	maxValue     = 120
)

// summary holds many changes in a bounded form, for one message.
type summary struct {
	cluster     string
	total       int
	first, last string // ids of events
	from, to    time.Time
	stories     map[string]*story // by the UID of the topmost owner
	ordinary    int               // how many of the stories began as ordinary ones
	prominent   int               // and how many beyond maxStories, because they are prominent
	counts      map[Count]int
	countedOnly int // changes without a story
}

// story is what happened to an object and to everything it owns.
type story struct {
	uid       string
	root      *event.Owner // the topmost owner, if only its name is known
	space     string
	prominent bool
	failure   failure
	changes   int
	members   []*member // the root first, if it has changed
	owned     map[Count]int
}

// member is an object of a story, and its changes.
type member struct {
	uid      string
	resource event.Resource
	op       event.Op
	id       string // of the last change
	at       time.Time
	number   int // of the last change in the summary, from 1
	changes  int
	fields   []noted
	others   map[uint64]bool // hashes of fields that are not kept; true for fields of the status
	note     string
	story    sink.Story // may be nil
}

// noted is a field with a hash of its full path; the path itself may be cut.
type noted struct {
	Field
	hash uint64
}

// owners maps the UID of an object to its owner. It outlives a window, as a rollout may. It is bounded.
type owners map[string]event.Owner

// learn remembers an object's owner.
func (k owners) learn(r *event.Resource) {
	if r.Owner == nil || r.UID == "" {
		return
	}
	if len(k) >= maxOwners {
		clear(k)
	}
	k[r.UID] = *r.Owner
}

// root returns the topmost owner.
func (k owners) root(o event.Owner) event.Owner {
	for range 8 { // ignore longer chains, and cycles
		next, ok := k[o.UID]
		if !ok {
			break
		}
		o = next
	}
	return o
}

// isProminent reports whether a change stands out. Such changes are kept when others are only counted.
func isProminent(d *event.Data) bool {
	return d.Severity == event.Failure || d.Op == event.Gap || d.Absence != nil && d.Absence.Incomplete > 0 ||
		d.Op == event.Deleted && d.Resource.Owner == nil
}

// add adds a change.
func (s *summary) add(sent *sink.Message, k owners, known stories) {
	e := sent.Event
	d := &e.Data
	k.learn(&d.Resource)
	if s.total == 0 {
		s.first, s.from = e.ID, e.Time
		s.cluster, _ = url.PathUnescape(strings.TrimPrefix(e.Source, "/clusters/"))
		s.stories, s.counts = map[string]*story{}, map[Count]int{}
	}
	s.total++
	s.last, s.to = e.ID, e.Time
	count(s.counts, d)
	uid := cmp.Or(d.Resource.UID, e.Subject)
	var root *event.Owner
	if d.Resource.Owner != nil {
		o := k.root(*d.Resource.Owner)
		root, uid = &o, o.UID
	}
	t := s.stories[uid]
	if t == nil {
		if t = s.begin(uid, isProminent(d)); t == nil {
			s.countedOnly++
			return
		}
		t.root, t.space = root, d.Resource.Namespace
	}
	t.add(sent, s.total, uid, known)
}

// begin adds a story, or returns nil if the summary is full.
func (s *summary) begin(uid string, prominent bool) *story {
	switch {
	case s.ordinary < maxStories:
		s.ordinary++
	case prominent && s.prominent < maxProminent:
		s.prominent++
	default:
		return nil
	}
	t := &story{uid: uid, owned: map[Count]int{}}
	s.stories[uid] = t
	return t
}

// count counts a change by operation and kind.
func count(counts map[Count]int, d *event.Data) {
	c := Count{Op: string(d.Op), Kind: d.Resource.Kind}
	if _, ok := counts[c]; !ok && len(counts) >= maxCounts {
		c.Kind = "other"
	}
	counts[c]++
}

func (t *story) add(sent *sink.Message, number int, rootUID string, known stories) {
	e := sent.Event
	d := &e.Data
	t.changes++
	t.prominent = t.prominent || isProminent(d)
	uid := cmp.Or(d.Resource.UID, e.Subject)
	isRoot := uid == rootUID
	if !isRoot {
		count(t.owned, d)
	}
	if i := slices.IndexFunc(t.members, func(m *member) bool { return m.uid == uid }); i >= 0 {
		m := t.members[i]
		m.story = known.follow(sent, uid, m.story)
		m.add(e, number, fieldsOf(isRoot))
		t.failure.judge(d, uid, isRoot, m.story)
		return
	}
	m := &member{uid: uid, resource: d.Resource, story: known.follow(sent, uid, nil)}
	t.failure.judge(d, uid, isRoot, m.story)
	if !isRoot && len(t.members) >= maxMembers {
		return
	}
	m.resource.Owner = nil
	m.add(e, number, fieldsOf(isRoot))
	if isRoot {
		t.members = slices.Insert(t.members, 0, m)
	} else {
		t.members = append(t.members, m)
	}
}

func fieldsOf(isRoot bool) int {
	if isRoot {
		return maxFields
	}
	return minorFields
}

// add merges another change of the object.
func (m *member) add(e *event.Event, number, fields int) {
	d := &e.Data
	m.changes++
	m.id, m.at, m.number = e.ID, e.Time, number
	if m.op != event.Created || !d.Op.Differs() { // an update after a creation leaves it a creation
		m.op = d.Op
	}
	if d.Gap != nil {
		m.note = cut(clean(d.Gap.Reason), maxPath)
	}
	if d.Absence != nil && d.Observed.After != nil {
		m.note = absence(d.Absence, d.Observed.At.Sub(*d.Observed.After))
	}
	if d.FilterError != "" {
		m.note = cut(clean("The sink's filter failed, so this may not match: "+d.FilterError), maxPath)
	}
	for i := range d.Changes {
		if c := &d.Changes[i]; !c.Quiet {
			m.field(c, fields)
		}
	}
	if !d.Op.Differs() {
		m.fields, m.others = nil, nil
	}
}

// absence describes a span in which nothing was recorded, and its outcome.
func absence(a *event.Absence, lasted time.Duration) string {
	text, exact, bound := "Tattler was not running for at most ", lasted, true
	switch a.Reason {
	case event.AbsenceUnwritten:
		text, bound = "Tattler could not write its journal for ", false
	case event.AbsenceUnreachable:
		text, bound = "Tattler could not reach the API server for ", false
	}
	if lasted = lasted.Round(time.Second); bound && lasted < exact {
		lasted += time.Second
	}
	text += lasted.String() + ", and has caught up with " + plural(int(a.Changes), "change")
	if a.Incomplete > 0 {
		text += "; " + plural(int(a.Incomplete), "kind") + " incomplete"
	}
	return text
}

// field merges a changed field: it keeps the first value and the last. If there are too many fields, status fields
// are dropped first.
func (m *member) field(c *event.Change, most int) {
	f := noted{hash: maphash.String(seed, c.Path)}
	f.Path, f.Op, f.Manager = cut(clean(c.Path), maxPath), c.Op, cut(clean(c.Manager), maxPath)
	if c.Op != "add" {
		f.From = value(c.From)
	}
	if c.Op != "remove" {
		f.To = value(c.To)
	}
	if c.Op == string(diff.Reorder) { // apart from the list's values
		f.hash = maphash.String(seed, "order of "+c.Path)
		f.From, f.To = value(diff.Order(c.From)), value(diff.Order(c.To))
	}
	if i := slices.IndexFunc(m.fields, func(o noted) bool { return o.hash == f.hash }); i >= 0 {
		old := &m.fields[i]
		switch {
		case old.Op == "add" && f.Op == "remove": // changed back
			m.fields = slices.Delete(m.fields, i, i+1)
			return
		case old.Op == "add" && f.Op == "replace":
			f.Op, f.From = "add", ""
		case old.Op == "remove" && f.Op == "add":
			f.Op, f.From = "replace", old.From
		default:
			f.From = old.From
		}
		*old = f
		return
	}
	if _, ok := m.others[f.hash]; ok { // its first value was not kept
		return
	}
	if len(m.fields) >= most {
		i := slices.IndexFunc(m.fields, func(o noted) bool { return o.isStatus() })
		if i < 0 || f.isStatus() {
			m.other(f.hash, f.isStatus())
			return
		}
		m.other(m.fields[i].hash, true)
		m.fields = slices.Delete(m.fields, i, i+1)
	}
	m.fields = append(m.fields, f)
}

// other counts a field that is not kept. Further changes of the field do not count.
func (m *member) other(hash uint64, isStatus bool) {
	if m.others == nil {
		m.others = map[uint64]bool{}
	}
	if len(m.others) < maxOthers {
		m.others[hash] = isStatus
	}
}

var seed = maphash.MakeSeed()

// counted returns the counts in descending order.
func counted(counts map[Count]int) []Count {
	var all []Count
	for _, c := range slices.SortedFunc(maps.Keys(counts), func(a, b Count) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Kind, b.Kind))
	}) {
		all = append(all, Count{Op: c.Op, Kind: c.Kind, N: counts[c]})
	}
	return all
}
