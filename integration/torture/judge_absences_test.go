package torture

import (
	"slices"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// interval is a time interval.
type interval struct{ from, to time.Time }

// absence judges the absence in a row: absences must not overlap.
func (j *judge) absence(r row) {
	now := interval{r.since, r.at}
	if n := len(j.absences); now.to.Before(now.from) || n > 0 && now.from.Before(j.absences[n-1].to) {
		j.find(falsified, "%v is an absence from %v to %v, after %v", &r, now.from, now.to, j.absences)
	}
	if r.absence == nil || !slices.Contains([]string{event.AbsenceStopped, event.AbsenceUnwritten, event.AbsenceUnreachable}, r.absence.Reason) {
		j.find(groundless, "%v is an absence without a reason", &r)
	} else if lasted := now.to.Sub(now.from); r.absence.Reason == event.AbsenceUnreachable && lasted < minOutage {
		j.find(needless, "%v is an outage of only %v: a reconnect", &r, lasted)
	}
	j.absences = append(j.absences, now)
}

const (
	// minOutage is the shortest outage of the API server that counts as an absence; see event.Absence.
	minOutage = 5 * time.Second
	// sureOutage is the shortest time to readiness that proves an outage. The daemon may reach the server
	// earlier.
	sureOutage = 2 * minOutage
	// noticeLimit is the time that the daemon may need to notice, on a busy machine, that a connection broke.
	noticeLimit = minOutage
	// writeLimit is the time that the daemon may need to notice that the server is back and to record the
	// absence.
	writeLimit = 40 * time.Second
)

// unreached checks that there is an absence for each outage of the API server. If the daemon was stopped before
// that was recorded, another absence may cover it.
func (j *judge) unreached(out, off []interval) {
	for _, o := range out {
		known := o.to.Sub(o.from) < sureOutage || o.from.Before(j.began)
		for _, d := range off {
			known = known || d.from.Before(o.to.Add(writeLimit)) && (d.to.IsZero() || d.to.After(o.from))
		}
		for _, a := range j.absences {
			known = known || !a.from.After(o.from.Add(noticeLimit)) && a.to.After(o.from.Add(minOutage))
		}
		if !known {
			j.find(missed, "no absence for the API server's outage from %v to %v: %v", o.from, o.to, j.absences)
		}
	}
}

// away checks that there is an absence for each time in which the daemon did not run or stood still, except before it had
// recorded anything.
func (j *judge) away(off []interval) {
	for _, o := range off {
		known := o.to.IsZero() || o.from.Before(j.began)
		for _, a := range j.absences {
			known = known || !a.from.After(o.from) && !a.to.Before(o.to)
		}
		if !known {
			j.find(missed, "no absence for the time from %v to %v, in which the daemon did not run: %v", o.from, o.to, j.absences)
		}
	}
}

// TestJudgeAbsences: the judge finds wrong and missing absences.
func TestJudgeAbsences(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	absence := func(seq int64, from, to int) row {
		return row{seq: seq, id: event.AbsenceID("c", at(from)), op: event.Absent, since: at(from), at: at(to), absence: &event.Absence{Reason: event.AbsenceStopped}}
	}
	outage := func(seq int64, from, to int) row {
		r := absence(seq, from, to)
		r.absence.Reason = event.AbsenceUnreachable
		return r
	}
	nameless := absence(2, 20, 31)
	nameless.absence = &event.Absence{Reason: "asleep"}
	for _, tc := range []struct {
		why  string
		rows []row
		off  []interval
		out  []interval // of the API server
		want []string
	}{
		{"one for each", []row{absence(2, 20, 31), absence(3, 40, 51)}, []interval{{at(21), at(30)}, {at(41), at(50)}}, nil, nil},
		{"one for two", []row{absence(2, 20, 51)}, []interval{{at(21), at(30)}, {at(41), at(50)}}, nil, nil},
		{"before anything was recorded", nil, []interval{{at(5), at(9)}}, nil, nil},
		{"none", nil, []interval{{at(21), at(30)}}, nil, []string{missed}},
		{"it ends too soon", []row{absence(2, 20, 29)}, []interval{{at(21), at(30)}}, nil, []string{missed}},
		{"it begins too late", []row{absence(2, 22, 31)}, []interval{{at(21), at(30)}}, nil, []string{missed}},
		{"two overlap", []row{absence(2, 20, 31), absence(3, 30, 51)}, nil, nil, []string{falsified}},
		{"it ends before it begins", []row{absence(2, 20, 19)}, nil, nil, []string{falsified}},
		{"an outage of the server", []row{outage(2, 21, 34)}, nil, []interval{{at(20), at(33)}}, nil},
		{"an unrecorded outage", []row{outage(2, 100, 134)}, nil, []interval{{at(20), at(33)}}, []string{missed}},
		{"a short outage", nil, nil, []interval{{at(20), at(26)}}, nil},
		{"while the daemon did not run", []row{absence(2, 24, 50)}, []interval{{at(25), at(49)}}, []interval{{at(20), at(33)}}, nil},
		{"after which the daemon was killed", []row{absence(2, 40, 50)}, []interval{{at(41), at(49)}}, []interval{{at(20), at(33)}}, nil},
		{"a reconnect", []row{outage(2, 20, 24)}, nil, nil, []string{needless}},
		{"an unknown reason", []row{nameless}, nil, nil, []string{groundless}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			j := newJudge(&past{}, nil)
			j.began = at(10)
			for _, r := range tc.rows {
				j.row(r)
			}
			j.away(tc.off)
			j.unreached(tc.out, tc.off)
			same(t, j, tc.want)
		})
	}
}
