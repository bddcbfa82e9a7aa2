package journal

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// TestPlans: no query that runs per change, per minute or per command scans a whole table.
func TestPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, pod(event.Created, 1))
	used := map[string]bool{}
	statements := func(db *db) {
		for sql := range db.stmts {
			used[sql] = true
		}
	}
	scans := func(sql string) (steps []string) {
		must(t, j.db.query("EXPLAIN QUERY PLAN "+sql, nil, func(s *sqlite3.Stmt) error {
			if step := s.ColumnText(3); strings.HasPrefix(step, "SCAN") {
				steps = append(steps, step)
			}
			return nil
		}))
		return steps
	}
	gap := Row{Meta: Meta{Op: event.Gap, Kind: podKind, Namespace: "shop", Time: epoch, At: epoch, Gap: &event.GapInfo{From: "1", To: "2", Reason: "expired"}}}
	quiet := pod(event.Updated, 3)
	quiet.Quiet = true
	old := pod(event.Created, 1)
	old.UID = "u2"
	add(t, j, pod(event.Updated, 2), gap, gap, quiet, pod(event.Updated, 2), old)
	must(t, j.SetCursor(t.Context(), "hook", 1))
	setAside(t, j, DeadLetter{Sink: "hook", Seq: 1})
	for _, keep := range []Retention{{Age: 1}, {Size: 1}} {
		_, err := j.Retain(t.Context(), epoch, keep, 1)
		must(t, err)
	}
	must(t, j.Forget(t.Context(), Stream{GroupResource: "nodes"}))
	statements(j.db)

	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for _, q := range []Query{
		{}, {OldestFirst: true, Quiet: true}, {UID: "u1"}, {Names: []string{"web"}, OldestFirst: true},
		{Names: []string{"web"}, Resources: []string{"pods"}, Namespaces: []string{"shop"}},
		{Names: []string{"web"}, Resources: []string{"pods"}, Owned: map[string][]string{"pods": {"pods"}}},
	} {
		for _, err := range r.Rows(t.Context(), q) {
			must(t, err)
		}
	}
	_, err = r.SeqAt(t.Context(), epoch)
	must(t, err)
	statements(r.db)

	small := []string{ // thousands of rows at most
		"blocks", "block_ids", "block_counts", "sinks", "streams", "kinds", "k", "resources", "r", "clusters", "c", "namespaces", "managers", "n",
		"meta", "rules", "sqlite_master",
	}
	for sql := range used {
		if !strings.HasPrefix(sql, "SELECT") && !strings.HasPrefix(sql, "UPDATE") && !strings.HasPrefix(sql, "DELETE") {
			continue
		}
		for _, step := range scans(sql) {
			daily := strings.HasPrefix(sql, "DELETE FROM namespaces")
			if !daily && !slices.Contains(small, strings.Fields(step)[1]) {
				t.Errorf("%s: %s", step, sql)
			}
		}
	}
}

// TestManyOfOneName: thousands of objects share a name. A page reads only the next ones, and all come in order, even while more
// are written.
func TestManyOfOneName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	const n = 700 // more than one page reads
	var rows []Row
	for v := range 2 {
		for i := range n {
			r := pod([]event.Op{event.Created, event.Updated}[v], v+1)
			r.Name, r.UID, r.Namespace = "default", "uid-"+strconv.Itoa(i*7919%n), "ns-"+strconv.Itoa(i%100)
			rows = append(rows, r)
		}
	}
	add(t, j, rows...)
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for _, tc := range []struct {
		why  string
		q    Query
		want func(seq int64) bool
	}{
		{"all", Query{}, func(int64) bool { return true }},
		{"between two", Query{After: 100, Before: 1000}, func(seq int64) bool { return seq > 100 && seq < 1000 }},
		{"the last of one namespace", Query{Namespaces: []string{"ns-77"}, Limit: 5}, func(seq int64) bool { return (seq-1)%100 == 77 }},
		{"an operation", Query{Ops: []event.Op{event.Created}, Limit: 300}, func(seq int64) bool { return seq <= n }},
		{"by glob", Query{Namespaces: []string{"ns-4?"}}, func(seq int64) bool { return (seq-1)%100/10 == 4 }},
	} {
		for _, oldest := range []bool{false, true} {
			tc.q.Names, tc.q.OldestFirst = []string{"default"}, oldest
			var want, got []int64
			for seq := int64(1); seq <= 2*n; seq++ {
				if tc.want(seq) {
					want = append(want, seq)
				}
			}
			if !oldest {
				slices.Reverse(want)
			}
			if tc.q.Limit > 0 {
				want = want[:min(len(want), tc.q.Limit)]
			}
			for e, err := range r.Rows(t.Context(), tc.q) {
				must(t, err)
				got = append(got, e.Seq)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, the oldest first: %t: %d changes, want %d", tc.why, oldest, len(got), len(want))
			}
		}
	}

	s := scan{r: r, left: 50}
	q := Query{Names: []string{"default"}, Limit: 50}
	if entries, err := s.next(t.Context(), q); err != nil || len(entries) != 50 {
		t.Fatalf("%d changes, %v", len(entries), err)
	}
	read := 0
	for _, run := range s.runs.all {
		if len(run.entries) > 0 || run.read {
			read++
		}
	}
	if read > 60 {
		t.Errorf("for 50 changes %d objects were read", read)
	}

	var got []int64
	for e, err := range r.Rows(t.Context(), Query{Names: []string{"default"}, OldestFirst: true, After: 2*n - 3}) {
		must(t, err)
		if got = append(got, e.Seq); len(got) == 1 {
			next := rows[0]
			next.Op, next.ResourceVersion, next.Before = event.Updated, "77", next.After
			add(t, j, next)
		}
	}
	if want := []int64{2*n - 2, 2*n - 1, 2 * n}; !slices.Equal(got, want) && !slices.Equal(got, append(want, 2*n+1)) {
		t.Errorf("while more is written: %v", got)
	}
}

// TestNamesAreBounded: readers and writers evict names, and look them up again.
func TestNamesAreBounded(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	ids := make([]int64, maxNames+100)
	must(t, j.write(t.Context(), "write", func() (err error) {
		for i := range ids {
			if ids[i], err = j.names.manager(fmt.Sprint("manager-", i), 1); err != nil {
				return err
			}
		}
		return nil
	}))
	n := newNames(j.db)
	for i, id := range ids {
		if again, err := j.names.manager(fmt.Sprint("manager-", i), 1); again != id || err != nil {
			t.Fatalf("name %d has number %d, and then %d, %v", i, id, again, err)
		}
		if text, err := n.managers.text(j.db, id); text != fmt.Sprint("manager-", i) || err != nil {
			t.Fatalf("name %d is %s, %v", i, text, err)
		}
		if len(j.names.managers.ids) > maxNames || len(n.managers.texts) > maxNames {
			t.Fatalf("%d and %d names are known", len(j.names.managers.ids), len(n.managers.texts))
		}
	}
	if len(j.names.managers.ids) < 100 || len(n.managers.texts) != 100 {
		t.Errorf("%d and %d names are known in the end", len(j.names.managers.ids), len(n.managers.texts))
	}
}
