package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) {
	if child(os.Getenv("JOURNAL_CHILD")) {
		return
	}
	leaktest.Main(m)
}

var (
	podKind  = Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	nodeKind = Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	webKind  = Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	epoch    = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
)

// model is the expected content of a journal, in memory.
type model struct {
	rows    []modelRow
	ids     map[string][]uint64          // the forms of the rows with an id but for that; conversions have ids of their own
	last    map[string]event.Op          // of each object, by resource and UID
	objects map[Stream]map[string]Object // by UID
	heads   map[Stream]Head
	schemas map[Kind][]byte
	gone    map[int64]bool // removed by retention or a purge
	cut     map[int64]bool // before was purged
}

type modelRow struct {
	seq int64
	id  string
	Row
	schema []byte // of the kind then
}

func newModel() *model {
	return &model{
		ids: map[string][]uint64{}, last: map[string]event.Op{}, objects: map[Stream]map[string]Object{}, heads: map[Stream]Head{},
		schemas: map[Kind][]byte{}, gone: map[int64]bool{}, cut: map[int64]bool{},
	}
}

// append does to the model what Append does to a journal.
func (m *model) append(batches []Batch) (a Appended) {
	for _, b := range batches {
		m.heads[b.Stream] = b.Head
		maps.Copy(m.schemas, b.Schemas)
		if m.objects[b.Stream] == nil {
			m.objects[b.Stream] = map[string]Object{}
		}
		for _, r := range b.Rows {
			if r.Rewritten {
				m.objects[b.Stream][r.UID] = Object{r.Namespace, r.Name, r.UID, r.ResourceVersion, r.Sum, r.After}
				continue
			}
			id, object := r.Meta.ID("prod"), r.Kind.Cluster+"/"+r.Kind.GroupResource()+"/"+r.UID
			forms := m.ids[id]
			if len(forms) > 0 && r.Op != event.Gap && r.Op != event.Converted && leaves(m.last[object]) != leaves(r.Op) {
				r.Form = slices.Max(forms) + 1 // it is gone, or back, again
			}
			if len(forms) > 0 && (r.Form == 0 || r.Op == event.Converted) {
				a.Duplicates++
			} else {
				a.Rows++
				if r.Quiet {
					a.Quiet++
				}
				form := r.Form
				if r.Op == event.Converted {
					form = 0
				}
				m.ids[id] = append(forms, form)
				m.last[object] = r.Op
				m.rows = append(m.rows, modelRow{int64(len(m.rows) + 1), r.Meta.ID("prod"), r, m.schemas[r.Kind]})
			}
			if r.Op == event.Gap {
				continue
			}
			for _, objects := range m.objects {
				delete(objects, r.UID)
			}
			if leaves(r.Op) {
				m.objects[b.Stream][r.UID] = Object{r.Namespace, r.Name, r.UID, r.ResourceVersion, r.Sum, r.After}
			}
		}
	}
	a.Last = int64(len(m.rows))
	return a
}

// history makes the transactions of a cluster, the same ones for the same seed.
type history struct {
	*rand.Rand
	*model
	streams []Stream
	kinds   []Kind
	version int
	clock   time.Time
	steps   int // transactions so far; each head's Identity
}

func newHistory(seed uint64) *history {
	h := &history{Rand: rand.New(rand.NewPCG(seed, 11)), model: newModel(), version: 990, clock: epoch}
	h.streams = []Stream{{GroupResource: "pods"}, {GroupResource: "nodes"}, {GroupResource: "deployments.apps", Namespace: "shop", Selection: "tier=web"}}
	h.kinds = []Kind{podKind, nodeKind, webKind}
	return h
}

// addCluster adds pods of a second cluster, some with UIDs of the first.
func (h *history) addCluster() {
	other := podKind
	other.Cluster = "staging"
	h.streams, h.kinds = append(h.streams, Stream{GroupResource: "pods", Cluster: "staging"}), append(h.kinds, other)
}

// next makes the next transaction and adds it to the model.
func (h *history) next() (batches []Batch, a Appended) {
	h.steps++
	for range 1 + h.IntN(8) {
		i := h.IntN(len(h.streams))
		b := Batch{Stream: h.streams[i], Head: Head{
			Version: strconv.Itoa(h.version), Epoch: int64(h.IntN(3)), Live: h.IntN(2) == 0, EverLive: h.IntN(2) == 0,
			Pipeline: "p1", Identity: strconv.Itoa(h.steps), At: h.clock,
		}}
		if h.IntN(9) == 0 {
			b.Schemas = map[Kind][]byte{h.kinds[i]: h.json(5)}
		}
		if h.IntN(8) > 0 {
			b.Rows = []Row{h.row(i)}
		}
		h.form(&b)
		// The next one starts from the state that this one leads to.
		one := h.append([]Batch{b})
		a = Appended{Rows: a.Rows + one.Rows, Quiet: a.Quiet + one.Quiet, Duplicates: a.Duplicates + one.Duplicates, Last: one.Last}
		batches = append(batches, b)
	}
	return batches, a
}

// row makes a change in a stream: mostly a plausible one, sometimes a surprising one.
func (h *history) row(i int) Row {
	h.version += h.IntN(15)
	h.clock = h.clock.Add(time.Duration(h.IntN(5000)) * time.Millisecond)
	r := Row{Meta: Meta{
		Kind: h.kinds[i], Namespace: h.streams[i].Namespace, ResourceVersion: strconv.Itoa(h.version),
		Time: h.clock.Add(-time.Duration(h.IntN(3000)) * time.Millisecond), At: h.clock,
	}}
	if h.IntN(3) == 0 {
		r.Manager = "manager-" + strconv.Itoa(h.IntN(4))
	}
	if h.IntN(5) == 0 {
		r.Since, r.Net = h.clock.Add(-time.Hour), h.version%2 == 0
		if h.version%3 > 0 {
			r.Time = r.At // unknown within the interval
		}
	}
	r.Severity = severities[max(0, h.IntN(12)-8)]
	if h.IntN(3) == 0 {
		r.Owner = &event.Owner{Kind: "ReplicaSet", Name: "web-" + strconv.Itoa(h.IntN(3)), UID: "o"}
	}
	switch n := h.IntN(60); {
	case n == 0:
		r.Owner, r.Net, r.Severity, r.Op, r.Gap = nil, false, event.Warning, event.Gap, &event.GapInfo{From: strconv.Itoa(h.IntN(5)), To: "9", Reason: "the server has no history"}
		return r
	case n == 1 && len(h.rows) > 0:
		if r := h.rows[h.IntN(len(h.rows))].Row; r.Kind == h.kinds[i] {
			if r.Op != event.Converted {
				r.Form = 0
			}
			return r // a repetition
		}
	}
	live := slices.Sorted(maps.Keys(h.objects[h.streams[i]]))
	if len(live) == 0 || len(live) < 6 && h.IntN(8) == 0 {
		r.Op = []event.Op{event.Snapshot, event.Created, event.Entered}[h.IntN(3)]
		r.Name = "web-" + strconv.Itoa(h.IntN(4))             // recreated under the same name
		r.UID = fmt.Sprintf("uid-%d-%d", i%3, h.IntN(1<<20))  // two clusters may have one UID
		if dead := h.dead(i); dead != nil && h.IntN(4) == 0 { // or the same one entered again
			r.Name, r.UID = dead.Name, dead.UID
		}
		r.After = h.json(h.IntN(30))
		return r
	}
	o := h.objects[h.streams[i]][live[h.IntN(len(live))]]
	r.Namespace, r.Name, r.UID, r.Before = o.Namespace, o.Name, o.UID, o.JSON
	switch n := h.IntN(40); {
	case n < 3:
		r.Op = event.Deleted
		if n == 0 {
			r.Op, r.ResourceVersion = event.Left, o.ResourceVersion // missed: the last known version
		}
		return r
	case n == 3:
		r.Before = h.json(4) // redacted by other rules than the state
	case n == 4:
		r.Before = nil
	case n == 5:
		r.ResourceVersion = "v" + r.ResourceVersion // not a number
	}
	r.Op, r.Quiet = event.Updated, h.IntN(3) > 0
	r.After = h.change(o.JSON)
	if r.Quiet && crc32.ChecksumIEEE(r.After)%4 == 0 {
		r.Op, r.ResourceVersion = event.Converted, o.ResourceVersion
	}
	return r
}

// form adds sums and served forms to a batch, and the Form of conversions.
func (h *history) form(b *Batch) {
	b.Head.Served = uint64(h.steps) << 60
	for i := range b.Rows {
		r := &b.Rows[i]
		if leaves(r.Op) {
			r.Sum = max(1, uint64(crc32.ChecksumIEEE(r.After))<<32)
		}
		if r.Op == event.Converted {
			r.Form = r.Sum
		}
	}
}

// dead returns a random object of a stream's kind, unless that is live.
func (h *history) dead(i int) *Row {
	if len(h.rows) == 0 {
		return nil
	}
	r := &h.rows[h.IntN(len(h.rows))].Row
	if _, ok := h.objects[h.streams[i]][r.UID]; ok || r.Op == event.Gap || r.Kind != h.kinds[i] {
		return nil
	}
	return r
}

func (h *history) json(fields int) []byte {
	var b strings.Builder
	b.WriteString(`{"kind":"Thing"`)
	for i := range fields {
		fmt.Fprintf(&b, `,"field%d":{"value":"%d","time":"%s"}`, i, h.IntN(1000), h.clock.Format(time.RFC3339))
	}
	if h.IntN(40) == 0 {
		fmt.Fprintf(&b, `,"data":"%s"`, noise(h.Rand, 90_000))
	}
	return []byte(b.String() + "}")
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(36)]
	}
	return b
}

func (h *history) change(o []byte) []byte {
	if len(o) < 20 {
		return h.json(9)
	}
	at := 8 + h.IntN(len(o)-8)
	return bytes.Join([][]byte{o[:at], o[min(len(o), at+h.IntN(9)):]}, noise(h.Rand, h.IntN(9)))
}

// check compares a journal with the model, and verifies it.
func (m *model) check(t *testing.T, path string) {
	t.Helper()
	ctx := t.Context()
	r, err := OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m.checkRows(t, r)
	m.checkCounts(t, r)
	for _, limit := range []int{4 << 10, 1 << 20} {
		r.ReadForwards(limit)
		m.checkRows(t, r)
	}
	rep, err := r.Verify(ctx, Verifying{Damage: func(d Damage) { t.Errorf("%s: %s", d.Part, d.Text) }})
	if err != nil || rep.Damaged != 0 || rep.Changes != len(m.rows)-len(m.gone) {
		t.Errorf("verify: %+v, %v; want %d changes", rep, err, len(m.rows)-len(m.gone))
	}
	for k, want := range m.schemas {
		if got, err := r.Schema(ctx, k, 0); err != nil || !bytes.Equal(got.JSON, want) || len(m.gone) == 0 && got.UpTo != int64(len(m.rows)) {
			t.Errorf("schema of %v: %+v, %v; want %q", k, got, err, want)
		}
	}
	for _, row := range m.rows {
		if m.gone[row.seq] || row.Op == event.Absent {
			continue
		}
		if got, err := r.Schema(ctx, row.Kind, row.seq); err != nil || !bytes.Equal(got.JSON, row.schema) || got.From > row.seq || got.UpTo < row.seq {
			t.Errorf("schema of %v for change %d: %+v, %v; want %q", row.Kind, row.seq, got, err, row.schema)
		}
	}
}

func (m *model) checkRows(t *testing.T, r *Reader) {
	t.Helper()
	ctx := t.Context()
	want := slices.DeleteFunc(slices.Clone(m.rows), func(r modelRow) bool { return m.gone[r.seq] })
	i := 0
	for e, err := range r.Rows(ctx, Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if i == len(want) {
			t.Fatalf("change %d of %d", e.Seq, len(want))
		}
		w := &want[i]
		i++
		if !sameMeta(w.Meta, e.Meta) || e.Seq != w.seq || e.ID != w.id {
			t.Fatalf("change %d (want %d) %s:\n%s", e.Seq, w.seq, e.ID, cmp.Diff(w.Meta, e.Meta))
		}
		before, after, err := e.Contents(ctx)
		was := w.Before
		if m.cut[e.Seq] {
			if was = nil; errors.Is(err, ErrPurged) {
				err = nil
			} else {
				t.Fatalf("change %d: got %v, want ErrPurged", e.Seq, err)
			}
		}
		if err != nil || !bytes.Equal(before, was) || !bytes.Equal(after, w.After) {
			t.Fatalf("change %d: %v\nbefore %.200q\n  want %.200q\n after %.200q\n  want %.200q", e.Seq, err, before, was, after, w.After)
		}
		if i%97 == 0 {
			if got, err := r.ByID(ctx, e.ID); err != nil || got.Seq != e.Seq {
				t.Fatalf("change %d by its id %s: %d, %v", e.Seq, e.ID, got.Seq, err)
			}
		}
	}
	if i != len(want) {
		t.Fatalf("%d changes, want %d", i, len(want))
	}
}

// checkStates compares the live objects and heads, which only the writer returns.
func (m *model) checkStates(t *testing.T, j *Journal) {
	t.Helper()
	for st, want := range m.objects {
		got := map[string]Object{}
		for o, err := range j.Objects(t.Context(), st) {
			if err != nil {
				t.Fatal(err)
			}
			o.JSON = bytes.Clone(o.JSON)
			got[o.UID] = o
		}
		if !reflect.DeepEqual(want, got) { // cmp.Diff takes far longer, and is left for a failure
			t.Fatalf("objects of %v (-want +got):\n%s", st, cmp.Diff(want, got))
		}
	}
	all, err := j.Streams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[Stream]Head{}
	for _, sh := range all {
		got[sh.Stream] = sh.Head
	}
	if d := cmp.Diff(m.heads, got, cmpopts.EquateApproxTime(time.Millisecond)); d != "" {
		t.Fatalf("heads (-want +got):\n%s", d)
	}
}

func open(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := Open(t.Context(), path, Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestModel compares random histories, with retention, purges and restarts in between, with the model. Replay with
// JOURNAL_SEED; JOURNAL_SEEDS=1000 is the soak.
func TestModel(t *testing.T) {
	for _, seed := range seeds(t, 4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			h := newHistory(seed)
			h.addCluster()
			path := filepath.Join(t.TempDir(), "j", "journal.db")
			j := open(t, path)
			for _, table := range []string{"changes", "objects"} { // until a restart or a purge
				must(t, j.db.script("CREATE TEMP TRIGGER never_"+table+" BEFORE UPDATE ON "+table+" BEGIN SELECT RAISE(ABORT, 'a row is updated'); END"))
			}
			for step := range 120 {
				batches, want := h.next()
				got, err := j.Append(t.Context(), batches)
				if err != nil || got != want {
					t.Fatalf("step %d: appended %+v, %v; want %+v", step, got, err, want)
				}
				switch h.IntN(40) {
				case 0:
					if err := j.Close(); err != nil {
						t.Fatal(err)
					}
					j = open(t, path)
				case 1:
					h.retain(t, j)
				case 2, 3:
					h.rewrite(t, j)
				case 4:
					h.purge(t, j)
				}
			}
			h.checkStates(t, j)
			h.check(t, path)
			if t.Failed() {
				t.Fatalf("replay with JOURNAL_SEED=%d", seed)
			}
		})
	}
}

// rewrite makes a live object's version have other bytes, as under other rules.
func (h *history) rewrite(t *testing.T, j *Journal) {
	t.Helper()
	i := h.IntN(len(h.streams))
	live := slices.Sorted(maps.Keys(h.objects[h.streams[i]]))
	if len(live) == 0 {
		return
	}
	o := h.objects[h.streams[i]][live[h.IntN(len(live))]]
	batch := []Batch{{Stream: h.streams[i], Head: Head{Version: "7", Identity: strconv.Itoa(h.steps), At: h.clock}, Rows: []Row{{
		Meta:  Meta{Kind: h.kinds[i], Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
		After: h.change(o.JSON), Rewritten: true,
	}}}}
	want := h.append(batch)
	if got, err := j.Append(t.Context(), batch); err != nil || got != want {
		t.Fatalf("rewritten: %+v, %v; want %+v", got, err, want)
	}
}

// retain removes changes by age, or quiet ones by size, and removes them from the model.
func (h *history) retain(t *testing.T, j *Journal) {
	t.Helper()
	upTo := int64(h.IntN(len(h.rows) + 1))
	if h.IntN(2) == 0 {
		age := time.Duration(h.IntN(int(h.clock.Sub(epoch))+1)) + 1
		cut := h.clock.Add(-age).UnixMilli()
		removed := 0
		for i := range h.rows {
			if r := &h.rows[i]; r.seq <= upTo && r.At.UnixMilli() < cut { // clocks jump
				removed += h.remove(r)
			}
		}
		got, err := j.Retain(t.Context(), h.clock, Retention{Age: age}, upTo)
		if err != nil || got.Removed != removed {
			t.Fatalf("removed %+v, %v; want %d up to %d before %v", got, err, removed, upTo, cut)
		}
		return
	}
	if h.IntN(3) > 0 {
		h.retainQuiet(t, j, upTo)
		return
	}
	// Everything exceeds one byte, so everything goes.
	got, err := j.Retain(t.Context(), h.clock, Retention{Size: 1}, upTo)
	if err != nil || got.Removed < got.Quiet {
		t.Fatalf("removed %+v, %v", got, err)
	}
	for i := range h.rows[:upTo] {
		h.remove(&h.rows[i])
	}
}

// retainQuiet takes one step of retention by size.
func (h *history) retainQuiet(t *testing.T, j *Journal, upTo int64) {
	t.Helper()
	p := pruner{j: j, done: &Retained{}}
	from := j.quietAt
	if from >= upTo {
		return // no quiet ones are left, and others would go
	}
	err := j.write(t.Context(), "shrink", func() error { return p.step(h.clock, Retention{Size: 1}, upTo) })
	if err != nil {
		t.Fatal(err)
	}
	j.quietAt = p.looked
	removed := 0
	for i := range h.rows {
		if r := &h.rows[i]; r.Quiet && r.seq <= upTo && removed < retainRows && !h.gone[r.seq] {
			removed += h.remove(r)
		}
	}
	if p.removed != removed || p.quiet != removed {
		t.Fatalf("removed %d, %d of them quiet; want %d, all quiet", p.removed, p.quiet, removed)
	}
}

// purge purges what was seen before a time, and updates the model.
func (h *history) purge(t *testing.T, j *Journal) {
	t.Helper()
	what := Purge{Until: epoch.Add(time.Duration(h.IntN(int(h.clock.Sub(epoch)) + 1)))}
	want, stays := Purging{}, map[string]bool{}
	for i := range h.rows {
		r := &h.rows[i]
		object := r.Kind.GroupResource() + uidKey(&r.Meta)
		switch {
		case h.gone[r.seq]:
		case r.At.UnixMilli() < what.before():
			want.Changes += int64(h.remove(r))
			stays[object] = false
			if r.Quiet {
				want.Quiet++
			}
		case len(r.Before) > 0 && !stays[object] && !h.cut[r.seq]:
			h.cut[r.seq] = true
			want.Cut++
			fallthrough
		default:
			stays[object] = true
		}
	}
	plan, err := j.PlanPurge(t.Context(), what)
	if d := cmp.Diff(want, plan); d != "" || err != nil {
		t.Fatalf("planned: %v\n%s", err, d)
	}
	must(t, j.Purge(t.Context(), what, nil))
	if plan, err = j.PlanPurge(t.Context(), what); err != nil || !plan.None() {
		t.Fatalf("after the purge there is more to do: %+v, %v", plan, err)
	}
}

// remove removes a change from the model, once; its id may then be assigned again.
func (m *model) remove(r *modelRow) int {
	if m.gone[r.seq] {
		return 0
	}
	m.gone[r.seq] = true
	meta := r.Meta
	if r.Op != event.Converted {
		meta.Form = 0
	}
	id := meta.ID("prod")
	m.ids[id] = slices.DeleteFunc(m.ids[id], func(form uint64) bool { return form == r.Form || r.Op == event.Converted })
	return 1
}

// seeds returns random seeds, or those that the environment sets.
func seeds(t *testing.T, n int) []uint64 {
	if v := os.Getenv("JOURNAL_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	if v := os.Getenv("JOURNAL_SEEDS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = rand.Uint64()
	}
	return all
}
