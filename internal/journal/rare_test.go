package journal

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// TestRareChanges: failures, warnings and deletions are found by an index that has only them, and with a namespace only the
// rows of that namespace are read.
func TestRareChanges(t *testing.T) {
	const all = 8000
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	want := map[string]int{}
	for v := 1; v <= all; {
		var rows []Row
		for range 1000 {
			r := pod(event.Updated, v)
			r.Namespace, r.UID, r.Before = "team-"+strconv.Itoa(v%50), strconv.Itoa(v), nil
			switch v % 20 {
			case 0:
				r.Op, r.Before, r.After = event.Deleted, r.After, nil
			case 1:
				r.Severity = []event.Severity{event.Warning, event.Failure, event.Recovery}[v%3]
			}
			if r.Namespace == "team-10" || r.Namespace == "team-11" {
				want[string(r.Op)]++
				want[string(r.Severity)]++
			}
			if strings.HasPrefix(r.Namespace, "team-1") && len(r.Namespace) == len("team-10") {
				want[string(r.Op)+" of ten"]++
			}
			rows = append(rows, r)
			v++
		}
		add(t, j, rows...)
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	two, ten, none := []string{"team-10", "team-11"}, []string{"team-1?", "none"}, []string{"none", "neither"}
	for _, tc := range []struct {
		namespaces []string
		q          Query
		index      string
		n          int
	}{
		{two, Query{Severities: []event.Severity{event.Failure}}, "changes_severe", want["failure"]},
		{two, Query{Severities: []event.Severity{event.Warning, event.Failure}, Quiet: true}, "changes_severe", want["failure"] + want["warning"]},
		{two, Query{Ops: []event.Op{event.Deleted}}, "changes_deleted", want["deleted"]},
		{two, Query{Ops: []event.Op{event.Deleted}, Quiet: true, OldestFirst: true}, "changes_deleted", want["deleted"]},
		{two, Query{Ops: []event.Op{event.Deleted}, Severities: []event.Severity{event.Failure}, OldestFirst: true}, "changes_severe", 0},
		{ten, Query{Ops: []event.Op{event.Deleted}}, "changes_deleted", want["deleted of ten"]},
		{none, Query{Ops: []event.Op{event.Deleted}}, "changes_deleted", 0},
		{none, Query{Severities: []event.Severity{event.Failure}}, "changes_severe", 0},
		{two, Query{Severities: []event.Severity{event.Recovery}}, "", want["recovery"]},
	} {
		tc.q.Namespaces = tc.namespaces
		n, before := 0, r.db.steps()
		for _, err := range r.Rows(t.Context(), tc.q) {
			must(t, err)
			n++
		}
		steps := r.db.steps() - before
		if n != tc.n {
			t.Errorf("%+v: %d changes, want %d", tc.q, n, tc.n)
		}
		plan := r.db.plan(t, "FROM changes c INDEXED")
		if tc.index == "" {
			if plan != "" {
				t.Errorf("%+v: by an index: %s", tc.q, plan)
			}
			continue
		}
		if !strings.HasPrefix(plan, "SEARCH c USING INDEX "+tc.index+" (seq>? AND seq<?);") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%+v: %s", tc.q, plan)
		}
		// An entry of the index takes some ten steps, a row some 60.
		if most := 12*all/20 + 60*tc.n + 300; steps > most {
			t.Errorf("%+v: %d of SQLite's steps, more than %d", tc.q, steps, most)
		}
		r.db.forgetStatements(t)
	}
}

// plan returns how SQLite runs the statements that contain a text.
func (db *db) plan(t *testing.T, text string) (plan string) {
	t.Helper()
	var all []string
	for sql := range db.stmts {
		if strings.Contains(sql, text) {
			all = append(all, sql)
		}
	}
	for _, sql := range all {
		must(t, db.query("EXPLAIN QUERY PLAN "+sql, nil, func(s *sqlite3.Stmt) error {
			plan += fmt.Sprint(s.ColumnText(3), "; ")
			return nil
		}))
	}
	return plan
}

// forgetStatements makes plan return those of later queries only.
func (db *db) forgetStatements(t *testing.T) {
	t.Helper()
	for sql, s := range db.stmts {
		must(t, s.Close())
		delete(db.stmts, sql)
	}
}
