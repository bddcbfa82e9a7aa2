package torture

import (
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// interval is from one moment to another.
type interval struct{ from, to time.Time }

// absence judges that of a row: each begins after the one before has ended.
func (j *judge) absence(r row) {
	now := interval{r.since, r.at}
	if n := len(j.absences); now.to.Before(now.from) || n > 0 && now.from.Before(j.absences[n-1].to) {
		j.find(falsified, "%v is an absence from %v to %v, after %v", &r, now.from, now.to, j.absences)
	}
	j.absences = append(j.absences, now)
}

// away checks that there is an absence for each time in which the daemon did not run, unless that was before it had
// recorded anything.
func (j *judge) away(off []interval) {
	for _, o := range off {
		told := o.to.IsZero() || o.from.Before(j.began)
		for _, a := range j.absences {
			told = told || !a.from.After(o.from) && !a.to.Before(o.to)
		}
		if !told {
			j.find(missed, "the daemon did not run from %v to %v, of which the journal says nothing: %v", o.from, o.to, j.absences)
		}
	}
}

// TestJudgeAbsences: the judge finds absences that are not there, or are not true.
func TestJudgeAbsences(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	absence := func(seq int64, from, to int) row {
		return row{seq: seq, id: event.AbsenceID("c", at(from)), op: event.Absent, since: at(from), at: at(to)}
	}
	for _, tc := range []struct {
		why  string
		rows []row
		off  []interval
		want []string
	}{
		{"one for each", []row{absence(2, 20, 31), absence(3, 40, 51)}, []interval{{at(21), at(30)}, {at(41), at(50)}}, nil},
		{"one for two", []row{absence(2, 20, 51)}, []interval{{at(21), at(30)}, {at(41), at(50)}}, nil},
		{"before anything was recorded", nil, []interval{{at(5), at(9)}}, nil},
		{"none", nil, []interval{{at(21), at(30)}}, []string{missed}},
		{"it ends too soon", []row{absence(2, 20, 29)}, []interval{{at(21), at(30)}}, []string{missed}},
		{"it begins too late", []row{absence(2, 22, 31)}, []interval{{at(21), at(30)}}, []string{missed}},
		{"two overlap", []row{absence(2, 20, 31), absence(3, 30, 51)}, nil, []string{falsified}},
		{"it ends before it begins", []row{absence(2, 20, 19)}, nil, []string{falsified}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			j := newJudge(&past{}, nil)
			j.began = at(10)
			for _, r := range tc.rows {
				j.row(r)
			}
			j.away(tc.off)
			same(t, j, tc.want)
		})
	}
}
