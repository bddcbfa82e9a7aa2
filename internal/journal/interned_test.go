package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// interning is a model of the tables of names.
type interning struct {
	path    string
	j       *Journal
	r       *Reader // stays open, and so caches numbers
	rng     *rand.Rand
	rows    []Row // all that were appended
	used    map[string]int64
	numbers map[string]string // the name of each number ever seen
	highest map[string]int64  // number by table
	came    int               // names that came back after they were removed
	went    int               // names that retention removed
}

// tables returns the names of both tables, by table and number.
func (m *interning) tables(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for table, sql := range map[string]string{
		"managers":   "SELECT id, name FROM managers ORDER BY id",
		"namespaces": "SELECT n.id, iif(c.id = 1, '', c.name) || '/' || n.name FROM namespaces n JOIN clusters c ON c.id = n.cluster ORDER BY n.id",
	} {
		must(t, m.j.db.query(sql, nil, func(s *sqlite3.Stmt) error {
			all[fmt.Sprint(table, " ", s.ColumnInt64(0))] = s.ColumnText(1)
			return nil
		}))
	}
	return all
}

// key is the table and the name.
func key(number, name string) string {
	table, _, _ := strings.Cut(number, " ")
	return table + " " + name
}

// numbered checks that no number names two things, and that new numbers are higher than all before.
func (m *interning) numbered(t *testing.T) {
	t.Helper()
	now := m.tables(t)
	before := maps.Clone(m.highest)
	for number, name := range now {
		var table string
		var id int64
		_, err := fmt.Sscan(number, &table, &id)
		must(t, err)
		switch was, seen := m.numbers[number]; {
		case seen && was != name:
			t.Fatalf("%s was %s and is %s", number, was, name)
		case !seen && id <= before[table]:
			t.Fatalf("%s is new, although number %d was assigned before", number, before[table])
		case !seen:
			for _, other := range m.numbers {
				if other == name {
					m.came++
					break
				}
			}
		}
		m.numbers[number], m.highest[table] = name, max(m.highest[table], id)
	}
}

// append appends some changes. Names come into use, go out of it and return.
func (m *interning) append(t *testing.T) {
	t.Helper()
	var batches []Batch
	for range 1 + m.rng.IntN(12) {
		n := len(m.rows) + 1
		base := n / 10 // names slide
		row := managed(n, fmt.Sprint("manager-", base+m.rng.IntN(3)), fmt.Sprint("ns-", base+m.rng.IntN(3)))
		if m.rng.IntN(20) == 0 {
			row.Manager, row.Namespace = "manager-0", "ns-0"
		}
		row.Kind.Cluster = []string{"", "staging"}[m.rng.IntN(2)]
		switch m.rng.IntN(3) {
		case 0: // a live object
		case 1:
			row.Op, row.After = event.Deleted, nil
		case 2:
			row.Op, row.Name, row.UID, row.Manager, row.Before, row.After = event.Gap, "", "", "", nil, nil
			row.Gap = &event.GapInfo{From: fmt.Sprint(n), To: fmt.Sprint(n + 1), Reason: "expired"}
		}
		s := pods
		s.Cluster = row.Kind.Cluster
		batches = append(batches, Batch{Stream: s, Head: Head{Version: "9", At: epoch, Live: true}, Rows: []Row{row}})
		m.rows = append(m.rows, row)
		m.used["managers "+row.Manager] = int64(n)
		m.used["namespaces "+row.Kind.Cluster+"/"+row.Namespace] = int64(n)
	}
	if a, err := m.j.Append(t.Context(), batches); err != nil || a.Last != int64(len(m.rows)) {
		t.Fatalf("%+v, %v", a, err)
	}
}

// left compares what is left with what was appended, and returns the names that it uses, and the oldest change.
func (m *interning) left(t *testing.T) (names map[string]bool, oldest int64) {
	t.Helper()
	names, oldest = map[string]bool{}, int64(len(m.rows)+1)
	for e, err := range m.r.Rows(t.Context(), Query{OldestFirst: true}) {
		must(t, err)
		if want := m.rows[e.Seq-1]; e.Manager != want.Manager || e.Namespace != want.Namespace || e.Kind != want.Kind {
			t.Fatalf("change %d is %s %s %+v, want %s %s", e.Seq, e.Manager, e.Namespace, e.Kind, want.Manager, want.Namespace)
		}
		oldest = min(oldest, e.Seq)
		names["namespaces "+e.Kind.Cluster+"/"+e.Namespace] = true
		if e.Manager != "" {
			names["managers "+e.Manager] = true
		}
	}
	for _, cluster := range []string{"", "staging"} {
		s := pods
		s.Cluster = cluster
		for o, err := range m.j.Objects(t.Context(), s) {
			must(t, err)
			var n int
			_, err := fmt.Sscanf(o.Name, "web-%d", &n)
			must(t, err)
			if want := m.rows[n-1].Namespace; o.Namespace != want {
				t.Fatalf("%s is in %s, want %s", o.Name, o.Namespace, want)
			}
			names["namespaces "+cluster+"/"+o.Namespace] = true
		}
	}
	return names, oldest
}

func (m *interning) retain(t *testing.T) {
	t.Helper()
	before := len(m.tables(t))
	at := epoch.Add(time.Duration(len(m.rows)) * time.Second)
	m.j.swept = time.Time{} // namespaces are due
	done, err := m.j.Retain(t.Context(), at, Retention{Age: time.Duration(m.rng.IntN(60)) * time.Second}, int64(len(m.rows)))
	must(t, err)
	used, oldest := m.left(t)
	all := m.tables(t)
	if done.Names != before-len(all) {
		t.Fatalf("%d names went, %d are said", before-len(all), done.Names)
	}
	m.went += done.Names
	for number, name := range all {
		if k := key(number, name); !used[k] && m.used[k] <= oldest-notedEvery {
			t.Fatalf("%s %s is left: it was last used by change %d, and %d is the oldest", number, name, m.used[k], oldest)
		}
	}
}

// purge removes what was seen before some time, and all unused names.
func (m *interning) purge(t *testing.T) {
	t.Helper()
	until := epoch.Add(time.Duration(len(m.rows)-m.rng.IntN(30)) * time.Second)
	if m.rng.IntN(2) == 0 {
		until = epoch.Add(time.Hour) // everything
	}
	must(t, m.j.Purge(t.Context(), Purge{Until: until}, nil))
	used, _ := m.left(t)
	for number, name := range m.tables(t) {
		if !used[key(number, name)] {
			t.Fatalf("%s %s is left after a purge", number, name)
		}
	}
}

func (m *interning) reopen(t *testing.T) {
	t.Helper()
	must(t, m.j.Close())
	m.j = open(t, m.path)
}

// TestInterned: whatever retention, purges and restarts do, no number is assigned twice, no name in use is removed, and unused
// ones are removed in the end.
func TestInterned(t *testing.T) {
	was := notedEvery
	defer func() { notedEvery = was }()
	came, went := 0, 0
	for seed := range uint64(8) {
		notedEvery = 1 + int64(seed)*4
		m := interning{
			path: filepath.Join(t.TempDir(), "journal.db"), rng: rand.New(rand.NewPCG(seed, 1)),
			used: map[string]int64{}, numbers: map[string]string{}, highest: map[string]int64{},
		}
		m.j = open(t, m.path)
		var err error
		m.r, err = OpenReader(t.Context(), m.path)
		must(t, err)
		for range 50 {
			m.append(t)
			m.numbered(t)
			switch m.rng.IntN(8) {
			case 0, 1, 2:
				m.retain(t)
			case 3:
				m.purge(t)
			case 4:
				m.reopen(t)
			}
			m.left(t)
		}
		verify(t, m.path)
		must(t, m.r.Close(), m.j.Close())
		came, went = came+m.came, went+m.went
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if came < 50 || went < 100 {
		t.Errorf("retention removed %d names, and %d came back", went, came)
	}
}

// TestPurgedNames: after a purge, the file does not hold names that only purged changes had.
func TestPurgedNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	gone := managed(1, "manager-of-the-past", "namespace-of-the-past")
	gone.Op, gone.After = event.Deleted, nil
	add(t, j, gone, managed(2, "manager-of-today", "namespace-of-today"))
	must(t, j.Purge(t.Context(), Purge{Until: gone.At.Add(time.Millisecond)}, nil), j.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	for name, want := range map[string]bool{
		"manager-of-the-past": false, "namespace-of-the-past": false, "manager-of-today": true, "namespace-of-today": true,
	} {
		if strings.Contains(string(b), name) != want {
			t.Errorf("the file has %s: %t", name, !want)
		}
	}
	verify(t, path)
}

// managed returns an update of a pod by a manager.
func managed(n int, manager, namespace string) Row {
	r := pod(event.Updated, n)
	r.Manager, r.Namespace, r.Name, r.UID = manager, namespace, fmt.Sprint("web-", n), fmt.Sprint("uid-", n)
	return r
}
