package journal

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// tenant is an object that is updated again and again with contents that are hard to compress.
type tenant struct {
	namespace, name string
	size            int // bytes of its content
	was             []byte
}

// update makes the object's next change.
func (o *tenant) update(r *rand.Rand, version int) Row {
	row := pod(event.Updated, version)
	row.Namespace, row.Name, row.UID = o.namespace, o.name, o.namespace+"/"+o.name
	if row.Before = o.was; o.was == nil {
		row.Op = event.Created
	}
	row.After = fmt.Appendf(nil, `{"data":%q}`, noise(r, o.size))
	o.was = row.After
	return row
}

// left counts the listed changes that a journal has of each object, by namespace/name.
func left(t *testing.T, j *Journal) map[string]int {
	t.Helper()
	n := map[string]int{}
	must(t, j.db.query("SELECT n.name, o.name FROM changes c JOIN objects o ON o.id = c.object JOIN namespaces n ON n.id = c.namespace WHERE NOT quiet", nil, func(s *sqlite3.Stmt) error {
		n[s.ColumnText(0)+"/"+s.ColumnText(1)]++
		return nil
	}))
	return n
}

// TestFillingTheJournal: whoever may update one object cannot remove the history of others, neither in other namespaces nor
// in its own, by filling the journal: its own changes pay. That holds after a restart, too.
func TestFillingTheJournal(t *testing.T) {
	ctx, path, r := t.Context(), filepath.Join(t.TempDir(), "journal.db"), rand.New(rand.NewPCG(1, 2))
	j, version := open(t, path), 0
	var others []*tenant
	for i := range 12 {
		others = append(others, &tenant{namespace: "team-" + strconv.Itoa(i%4), name: "app-" + strconv.Itoa(i), size: 700})
	}
	attacker := &tenant{namespace: "team-3", name: "big", size: 64 << 10}
	want := map[string]int{}
	write := func(o *tenant) {
		t.Helper()
		version++
		add(t, j, o.update(r, version))
		if o.name != "big" {
			want[o.namespace+"/"+o.name]++
		}
	}
	for range 30 {
		for _, o := range others {
			write(o)
		}
	}
	limit := Retention{Size: 4 << 20}
	removed := 0
	for i := range 300 {
		write(attacker)
		if i == 150 { // a restart
			must(t, j.Close())
			j = open(t, path)
		}
		if i%20 != 19 {
			continue
		}
		write(others[i%len(others)])
		got, err := j.Retain(ctx, epoch, limit, int64(version))
		must(t, err)
		removed += got.Removed
		if got.Used > limit.Size {
			t.Errorf("after %d updates, %d bytes are in use", i, got.Used)
		}
		verify(t, path)
	}
	got := left(t, j)
	if big := got["team-3/big"]; big < 10 || removed+big != 300 {
		t.Errorf("%d changes of the big object are left, and %d were removed", big, removed)
	}
	delete(got, "team-3/big")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the changes of others (-want +got):\n%s", d)
	}
}

// TestFairShares compares retention by size with what is fair: no namespace loses a change while another one has more than
// its own share and a tolerance, whatever they wrote; the oldest of a namespace's changes go; and nothing else breaks.
func TestFairShares(t *testing.T) {
	for _, seed := range seeds(t, 1) {
		r := rand.New(rand.NewPCG(seed, 5))
		path := filepath.Join(t.TempDir(), "journal.db")
		j, version := open(t, path), 0
		var tenants []*tenant
		for i := range 7 * 40 { // no object takes so much of its namespace that it pays for the others
			tenants = append(tenants, &tenant{namespace: "n-" + strconv.Itoa(i%7), name: strconv.Itoa(i), size: 200 + 400*(i%7)})
		}
		limit := Retention{Size: 3 << 20}
		for range 4 {
			busy := tenants[r.IntN(len(tenants))].namespace
			var rows []Row
			for range 1500 + r.IntN(1500) {
				o := tenants[r.IntN(len(tenants))]
				if o.namespace != busy && r.IntN(3) > 0 {
					continue
				}
				version++
				if rows = append(rows, o.update(r, version)); len(rows) == 50 {
					add(t, j, rows...)
					rows = nil
				}
			}
			add(t, j, rows...)
			before := holdings(t, j)
			_, err := j.Retain(t.Context(), epoch, limit, int64(version))
			must(t, err)
			after := holdings(t, j)
			fair(t, before, after)
			verify(t, path)
		}
		if t.Failed() {
			t.Fatalf("replay with JOURNAL_SEED=%d", seed)
		}
	}
}

// holding is what a namespace has in a journal.
type holding struct {
	bytes int64
	seqs  []int64
}

func holdings(t *testing.T, j *Journal) map[string]*holding {
	t.Helper()
	all := map[string]*holding{}
	must(t, j.db.query(`SELECT n.name, c.seq, ifnull(length(t.before), 0) + ifnull(length(t.after), 0) FROM changes c
		JOIN namespaces n ON n.id = c.namespace LEFT JOIN contents t ON t.seq = c.seq ORDER BY c.seq`, nil, func(s *sqlite3.Stmt) error {
		name := s.ColumnText(0)
		if all[name] == nil {
			all[name] = &holding{}
		}
		all[name].bytes += rowSize + s.ColumnInt64(2)
		all[name].seqs = append(all[name].seqs, s.ColumnInt64(1))
		return nil
	}))
	return all
}

// fair checks a removal: who lost something has not less than anyone had before who lost nothing, but for a step.
func fair(t *testing.T, before, after map[string]*holding) {
	t.Helper()
	const step = 48 << 10
	level := int64(0) // the largest share that is left
	for _, h := range after {
		level = max(level, h.bytes)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was, is := before[name], after[name]
		if is == nil {
			is = &holding{}
		}
		if lost := len(was.seqs) - len(is.seqs); lost > 0 && is.bytes < level-step {
			t.Errorf("%s lost %d changes and has %d bytes, while another namespace has %d", name, lost, is.bytes, level)
		}
		if d := cmp.Diff(was.seqs[len(was.seqs)-len(is.seqs):], is.seqs); d != "" {
			t.Errorf("%s did not lose its oldest changes (-want +got):\n%s", name, d)
		}
	}
}

// TestSharesOfSinks: what a sink has not got goes after all else, as far as that is not fair: the oldest of the largest
// namespace first.
func TestSharesOfSinks(t *testing.T) {
	ctx, path, r := t.Context(), filepath.Join(t.TempDir(), "journal.db"), rand.New(rand.NewPCG(1, 3))
	j, version := open(t, path), 0
	small, big := &tenant{namespace: "small", name: "a", size: 500}, &tenant{namespace: "big", name: "b", size: 8 << 10}
	write := func(o *tenant, n int) {
		for range n {
			version++
			add(t, j, o.update(r, version))
		}
	}
	write(big, 100)
	write(small, 50)
	must(t, j.SetCursor(ctx, "slow", int64(version)))
	write(small, 50)
	write(big, 100)
	got, err := j.Retain(ctx, epoch, Retention{Size: 5 << 18}, int64(version))
	must(t, err)
	if n := left(t, j); n["small/a"] != 100 || n["big/b"] < 100 || n["big/b"] == 200 || len(got.Lost) > 0 {
		t.Errorf("%v are left, %+v; want only delivered ones of the big namespace to go", n, got)
	}
	got, err = j.Retain(ctx, epoch, Retention{Size: 512 << 10}, int64(version))
	must(t, err)
	if n := left(t, j); n["small/a"] != 50 || n["big/b"] == 0 || n["big/b"] == 100 || len(got.Lost) != 1 {
		t.Errorf("%v are left, %+v; want all delivered ones to go first, then those of the big namespace", n, got)
	}
	verify(t, path)
}

// TestCut: what the limit of size removed is known, also after a restart: until when, and of whom.
func TestCut(t *testing.T) {
	ctx, path, r := t.Context(), filepath.Join(t.TempDir(), "journal.db"), rand.New(rand.NewPCG(1, 4))
	j, version := open(t, path), 0
	small, big := &tenant{namespace: "small", name: "a", size: 500}, &tenant{namespace: "big", name: "b", size: 8 << 10}
	for range 100 {
		for _, o := range []*tenant{small, big} {
			version++
			add(t, j, o.update(r, version))
		}
	}
	size := func() Size {
		t.Helper()
		r, err := OpenReader(ctx, path)
		must(t, err)
		defer r.Close()
		s, err := r.Size(ctx)
		must(t, err)
		return s
	}
	if got, err := j.Retain(ctx, epoch.Add(20e9), Retention{Age: 10e9}, int64(version)); err != nil || got.Removed == 0 || len(got.Paid) > 0 || !size().Cut.IsZero() {
		t.Errorf("by age: %+v, %v, cut %v", got, err, size().Cut)
	}
	got, err := j.Retain(ctx, epoch, Retention{Size: 512 << 10}, int64(version))
	must(t, err)
	if len(got.Paid) != 1 || got.Paid[0].Namespace != "big" || got.Paid[0].Changes != got.Removed || got.Paid[0].Size < 400<<10 {
		t.Errorf("paid: %+v of %d", got.Paid, got.Removed)
	}
	last := int64(0) // the newest change of the big namespace that is gone
	for seq := int64(2); seq <= int64(version); seq += 2 {
		if n, err := j.db.integer("SELECT count(*) FROM changes WHERE seq = ?", seq); err == nil && n == 0 {
			last = seq
		}
	}
	for _, again := range []bool{false, true} {
		if again {
			must(t, j.Close())
			j = open(t, path)
		}
		if s := size(); s.CutNamespace != "big" || !s.Cut.Equal(pod(event.Updated, int(last)).At) {
			t.Errorf("cut at %v in %q, want %v", s.Cut, s.CutNamespace, pod(event.Updated, int(last)).At)
		}
	}
}
