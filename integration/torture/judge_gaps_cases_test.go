package torture

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// at is a time of a case, in seconds.
func at(s float64) time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

// justify returns causes that justify exactly the gaps among rows.
func justify(rows []row) *causes {
	c := &causes{actions: []*action{{what: "restart", began: at(0), forgets: true}}}
	for i := range rows {
		r := &rows[i]
		if r.op != event.Gap {
			continue
		}
		r.at = at(10 * float64(i+1))
		c.requests = append(c.requests,
			&request{at: r.at.Add(-2 * time.Second), kind: r.kind, namespace: r.namespace, what: watches, from: r.gap.From, code: http.StatusGone, until: r.at.Add(-2 * time.Second), at410: r.gap.From},
			&request{at: r.at.Add(-time.Second), kind: r.kind, namespace: r.namespace, what: streams, code: http.StatusOK, whole: true, list: r.gap.To})
	}
	return c
}

// scene has the daemon's requests, the torture's actions, and the recorded rows. In the basic scene, the server
// restarts and forgets everything before 8; the daemon, which has seen everything up to 3, is refused and lists
// at 7, after a gap. The versions 5 and 7 are recorded as one change.
type scene struct {
	past              *past
	requests          []*request
	restart           *action
	gap               *row
	rows              []row // including the gap
	first, watch, lst *request
}

func newScene() *scene {
	p, rows := story()
	g := gap(2, "3", "7", "expired")
	g.at = at(22.5)
	s := &scene{
		past:    p,
		restart: &action{what: "the API server is killed", began: at(10), ended: at(20), forgets: true, floor: "8"},
		first:   &request{at: at(1), run: 1, kind: g.kind, what: streams, code: http.StatusOK, whole: true, list: "2", to: "3"},
		watch:   &request{at: at(21), run: 1, kind: g.kind, what: watches, from: "3", code: http.StatusGone, until: at(21), at410: "3"},
		lst:     &request{at: at(22), run: 1, kind: g.kind, what: streams, code: http.StatusOK, whole: true, list: "7", to: "9"},
		rows:    []row{rows[0], g, derived(recordedRow(3, event.Updated, "7", shown("3", "one"), shown("7", "three"))), rows[3]},
	}
	s.gap, s.requests = &s.rows[1], []*request{s.first, s.watch, s.lst}
	return s
}

func (s *scene) reason(reason string) { s.gap.gap.Reason = reason }

// recorded makes the daemon record 5 and 7 before the gap, so that it missed nothing.
func (s *scene) recorded() {
	_, rows := story()
	g := *s.gap
	g.seq = 4
	rows[3].seq = 5
	s.rows = []row{rows[0], rows[1], rows[2], g, rows[3]}
	s.gap = &s.rows[3]
}

// TestJudgeGaps: a gap is excused only if an action on the server made it necessary, and only in that extent.
func TestJudgeGaps(t *testing.T) {
	type testCase struct {
		why  string
		make func(s *scene)
		want []string
	}
	cases := []testCase{
		{"the server was restarted, and forgot", func(*scene) {}, nil},
		{"it was about to restart when it refused", func(s *scene) { s.restart.ended, s.restart.floor = at(30), "3" }, nil},
		{"the server did not refuse", func(s *scene) { s.watch.code, s.watch.at410 = http.StatusOK, "" }, []string{lost, needless}},
		{"nothing was done to the server", func(s *scene) { s.restart.forgets = false }, []string{lost, needless}},
		{"the server refused before anything was done to it", func(s *scene) { s.restart.began = at(21.5) }, []string{lost, needless}},
		{"the server refused versions newer than its restart", func(s *scene) { s.restart.floor = "3" }, []string{lost, needless}},
		{"the server refused in another namespace", func(s *scene) { s.watch.namespace = "m" }, []string{lost, needless}},
		{"the server refused another kind", func(s *scene) { s.watch.kind = "secrets" }, []string{lost, needless}},
		{"another kind's history was forgotten", func(s *scene) { s.restart.kind = "secrets" }, []string{lost, needless}},
		{"the server refused later", func(s *scene) { s.watch.until = at(23) }, []string{lost, needless}},
		{"the daemon did not list", func(s *scene) { s.requests = []*request{s.watch} }, []string{lost, needless}},

		{"the gap begins earlier", func(s *scene) { s.gap.gap.From = "2" }, []string{needless}},
		{"the gap begins later", func(s *scene) { s.gap.gap.From = "4" }, []string{needless}},
		{"the gap ends later", func(s *scene) { s.gap.gap.To = "8" }, []string{needless}},
		{"the gap begins before what is recorded", func(s *scene) { s.recorded() }, []string{needless}},
		{"a gap without an end, but its list has one", func(s *scene) { s.gap.gap.To = "" }, nil},

		{"the lost version was before the gap", func(s *scene) {
			s.watch.from, s.watch.at410, s.gap.gap.From = "5", "5", "5"
		}, []string{lost}},
		{"the lost version came after the gap", func(s *scene) { s.lst.list, s.gap.gap.To = "4", "4" }, []string{lost}},
		{"the lost version came after the list of a gap without an end", func(s *scene) { s.lst.list, s.gap.gap.To = "4", "" }, []string{lost}},
		{"the lost version came before the refused one", func(s *scene) {
			s.reason("a list was interrupted") // it begins at the newest object
			s.watch.at410 = "5"
			s.lst.run = 2
		}, []string{lost}},
		{"a deletion that was lost came after the gap", func(s *scene) {
			s.recorded()
			sights := s.past.objects[identity{"configmaps", "u"}].sights
			sights[3] = sighting{version: "12", what: deleted, vague: true, after: "9"}
			s.watch.from, s.watch.at410, s.gap.gap.From = "7", "7", "7"
			s.lst.list, s.gap.gap.To = "8", "8"
			s.rows = s.rows[:4]
		}, []string{diverged, lost}},

		{"the kind was not served, as the server started", func(s *scene) {
			s.reason("not served")
			s.watch.code, s.watch.at410 = http.StatusNotFound, ""
		}, nil},
		{"the kind was not served, although nothing was done to the server", func(s *scene) {
			s.reason("not served")
			s.restart.forgets = false
			s.watch.code, s.watch.at410 = http.StatusNotFound, ""
		}, []string{lost, needless}},

		{"the history was replaced", func(s *scene) { s.reason("history-changed"); s.restart.replaces = true }, nil},
		{"the history may have been replaced", func(s *scene) { s.reason("unverified"); s.restart.replaces = true }, nil},
		{"the history was replaced later", func(s *scene) {
			s.reason("history-changed")
			s.restart.replaces, s.restart.began = true, at(23)
		}, []string{lost, needless}},

		{"the first list was interrupted", func(s *scene) {
			s.reason("a list was interrupted")
			s.first.whole, s.first.list, s.first.to = false, "", ""
			s.requests = []*request{s.first, s.lst}
			s.lst.run = 2
		}, nil},
		{"a list after a 410 was interrupted", func(s *scene) {
			s.reason("a list was interrupted")
			begun := *s.lst
			begun.whole, begun.list, begun.to = false, "", ""
			s.lst.run = 2
			s.requests = []*request{s.first, s.watch, &begun, s.lst}
		}, nil},
		{"a resumption was interrupted, not a list", func(s *scene) {
			s.reason("a list was interrupted")
			s.requests = []*request{s.first, s.lst}
			s.requests = slices.Insert(s.requests, 1, &request{at: at(5), run: 2, kind: "configmaps", what: watches, from: "3", code: http.StatusOK, to: "7"})
			s.lst.run = 3
		}, []string{lost, needless}},
		{"the list had been completed long before", func(s *scene) {
			s.reason("a list was interrupted")
			s.recorded()
			s.requests = []*request{s.first, s.lst}
			s.lst.run = 2
		}, []string{needless}},
	}
	// No action on the server causes any of these.
	for _, reason := range []string{
		"unverified", "history-changed", "unreadable", "watch-failed", "transform", "not served", "slow consumer",
		"what is watched was changed", "redaction rules changed", "made up", "expired, slow consumer", "unverified, expired",
	} {
		cases = append(cases, testCase{reason, func(s *scene) { s.reason(reason) }, []string{lost, needless}})
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			s := newScene()
			tc.make(s)
			j := newJudge(s.past, &causes{requests: s.requests, actions: []*action{s.restart}}, "n")
			for _, r := range s.rows {
				j.row(r)
			}
			j.end(nil)
			same(t, j, tc.want)
		})
	}
	t.Run("without any causes", func(t *testing.T) {
		s := newScene()
		j := newJudge(s.past, nil, "n")
		for _, r := range s.rows {
			j.row(r)
		}
		j.end(nil)
		same(t, j, []string{lost, needless})
	})
}
