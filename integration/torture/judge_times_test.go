package torture

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// The judge knows when the server stored a version: after its writer sent it, and before the server first showed it to
// anybody. A row must not contradict that:
//
//   - no row was seen before its version was stored, and none has a time after it was seen;
//   - an interval contains the first version that the row covers;
//   - a time is not before the server began to write that version, and, if the object shows when it was written, not after
//     the row's version was stored. The server takes a manager's time before it stores the object, after it read the version
//     before.
//
// The server's times are whole seconds, so a time may be a second too early.

// second is the precision of the server's times.
const second = time.Second

// times judges the times of a row that covers the sightings of an object up to the one at i.
func (j *judge) times(c *progress, i int, r *row) {
	if r.op == event.Snapshot {
		return
	}
	first, last := &c.t.sights[c.next], &c.t.sights[i]
	begun := first.sent
	if c.next > 0 {
		begun = latest(begun, c.t.sights[c.next-1].asked)
	}
	seen := r.at.Add(time.Millisecond) // the journal truncates to milliseconds
	switch {
	case seen.Before(last.asked):
		j.find(falsified, "%v was seen at %s, but written after %s", r, clock(r.at), clock(last.asked))
	case r.time.After(seen):
		j.find(falsified, "%v was seen at %s, before its time, %s", r, clock(r.at), clock(r.time))
	case !r.since.IsZero() && (!first.known.IsZero() && first.known.Before(r.since) || r.since.After(seen)):
		j.find(falsified, "%v happened between %s and %s, but the server showed %s at %s", r, clock(r.since), clock(r.at), first.version, clock(first.known))
	case !begun.IsZero() && r.time.Before(begun.Add(-second)):
		j.find(falsified, "%v has the time %s, but %s was written after %s", r, clock(r.time), first.version, clock(begun))
	}
	if !j.shows(c, i) {
		return
	}
	j.dated++
	if !last.known.IsZero() && r.time.After(last.known.Add(second)) {
		j.find(falsified, "%v has the time %s, but the server showed it at %s, and the object says when it was written", r, clock(r.time), clock(last.known))
	}
}

// shows reports whether a sighting is the first that is not judged yet, and says when it was written: a manager's time
// moved.
func (j *judge) shows(c *progress, i int) bool {
	if i != c.next || i == 0 || c.t.sights[i].json == nil || c.t.sights[i-1].json == nil {
		return false
	}
	newest := func(s *sighting) (t time.Time) {
		var o stem
		if err := json.Unmarshal(s.json, &o); err != nil {
			return time.Time{}
		}
		for _, m := range o.Metadata.ManagedFields {
			t = latest(t, m.Time)
		}
		return t
	}
	return newest(&c.t.sights[i]).After(newest(&c.t.sights[i-1]))
}

// TestJudgeTimes: the judge finds wrong times.
func TestJudgeTimes(t *testing.T) {
	at := func(s float64) time.Time { return time.UnixMilli(int64(s * 1000)) }
	managed := func(version string, seconds int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":%q,`+
			`"managedFields":[{"manager":"m","time":%q}]}}`, version, at(float64(seconds)).UTC().Format(time.RFC3339))
	}
	type is struct{ since, time, at float64 }
	for _, tc := range []struct {
		why  string
		op   event.Op
		skip bool // the row covers the version before, too
		is   is
		want []string
	}{
		{"seen as it happened", event.Updated, false, is{0, 20, 20.7}, nil},
		{"its own time, seen late", event.Updated, false, is{15, 20, 90}, nil},
		{"the time at which it was seen", event.Updated, false, is{0, 90, 90}, []string{falsified}},
		{"a second too early", event.Updated, false, is{0, 19, 20.7}, []string{falsified}},
		{"seen before it was written", event.Updated, false, is{0, 20, 20.1}, []string{falsified}},
		{"a time after it was seen", event.Updated, false, is{0, 21, 20.8}, []string{falsified}},
		{"an interval that begins too late", event.Updated, false, is{21, 21, 90}, []string{falsified}},
		{"an interval that ends before it begins", event.Updated, false, is{21, 20.5, 20.6}, []string{falsified}},
		{"two versions", event.Updated, true, is{9, 20, 90}, nil},
		{"an interval without the first of two", event.Updated, true, is{15, 20, 90}, []string{falsified}},
		{"the time of a snapshot", event.Snapshot, false, is{0, 5, 5}, nil},
	} {
		t.Run(tc.why, func(t *testing.T) {
			j := newJudge(&past{}, nil)
			c := &progress{t: &timeline{sights: []sighting{
				{version: "3", json: managed("3", 5), sent: at(5.1), asked: at(5.1), known: at(5.2)},
				{version: "5", json: managed("5", 10), sent: at(10.1), asked: at(10.1), known: at(10.2)},
				{version: "7", json: managed("7", 20), sent: at(20.1), asked: at(20.4), known: at(20.5)},
			}}, next: 2}
			if tc.skip {
				c.next = 1
			}
			r := recordedRow(3, tc.op, "7", nil, nil)
			r.at, r.time = at(tc.is.at), at(tc.is.time)
			if tc.is.since > 0 {
				r.since = at(tc.is.since)
			}
			j.times(c, 2, &r)
			same(t, j, tc.want)
		})
	}
}
