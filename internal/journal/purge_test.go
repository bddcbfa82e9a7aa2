package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// vault is a journal of pods that hold values which later rules hide.
type vault struct {
	*testing.T
	*rand.Rand
	j       *Journal
	pods    int
	version int
	now     map[int][]byte // the pods' JSON
	fillers map[int][]byte
	planted []string // the values
}

func newVault(t *testing.T) *vault {
	v := &vault{T: t, Rand: rand.New(rand.NewPCG(1, 2)), pods: 40, now: map[int][]byte{}, fillers: map[int][]byte{}}
	v.j = open(t, filepath.Join(t.TempDir(), "journal.db"))
	for i := range v.pods {
		v.fillers[i] = noise(v.Rand, []int{50, 900, 9000}[i%3]) // within a page, and beyond
	}
	return v
}

// json is a pod's, with a value.
func (v *vault) json(i int, value string) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","metadata":{"resourceVersion":"%d"},"spec":{"filler":"%s","password":"%s"}}`, v.version, v.fillers[i], value)
}

// change has something happen to a pod.
func (v *vault) change(i int, op event.Op, value string) Row {
	v.version++
	at := epoch.Add(time.Duration(v.version) * time.Second)
	r := Row{Before: v.now[i], Meta: Meta{
		Op: op, Kind: podKind, Namespace: "shop", Name: "web-" + strconv.Itoa(i), UID: "uid-" + strconv.Itoa(i), ResourceVersion: strconv.Itoa(v.version), Time: at, At: at,
	}}
	delete(v.now, i)
	if leaves(op) {
		r.After = v.json(i, value)
		v.now[i] = r.After
	}
	return r
}

// record lets a lot happen, with a new value each time.
func (v *vault) record(rules string) {
	v.Helper()
	_, err := v.j.Rules(v.Context(), rules, epoch.Add(time.Duration(v.version)*time.Second))
	must(v.T, err)
	for step := range 60 {
		var rows []Row
		for range 4 {
			i := v.IntN(v.pods)
			value := string(noise(v.Rand, 20))
			op := event.Updated
			switch {
			case v.now[i] == nil:
				op = event.Created
			case v.IntN(10) == 0:
				op = event.Deleted
			}
			if rules == "open" {
				v.planted = append(v.planted, value)
			} else {
				value = fmt.Sprintf("hidden #%016x", v.Uint64())
			}
			rows = append(rows, v.change(i, op, value))
		}
		v.append(rules, true, rows...)
		if step == 30 {
			must(v.T, v.j.SetCursor(v.Context(), "hook", int64(v.version)))
			must(v.T, v.j.Bury(v.Context(), DeadLetter{Sink: "hook", Seq: int64(v.version) - 1, Reason: "400 for " + string(rows[0].Before), At: epoch}))
		}
	}
}

func (v *vault) append(rules string, live bool, rows ...Row) {
	v.Helper()
	_, err := v.j.Append(v.Context(), []Batch{{Stream: pods, Head: Head{Version: "1", Live: live, EverLive: true, Pipeline: "1 v1 " + rules, At: epoch}, Rows: rows}})
	must(v.T, err)
}

// rewrite is the list that hides what the pods show.
func (v *vault) rewrite() {
	v.Helper()
	var rows []Row
	for i := range v.pods {
		if v.now[i] == nil {
			continue
		}
		v.now[i] = v.json(i, fmt.Sprintf("hidden #%016x", v.Uint64()))
		rows = append(rows, Row{Rewritten: true, After: v.now[i], Meta: Meta{
			Kind: podKind, Namespace: "shop", Name: "web-" + strconv.Itoa(i), UID: "uid-" + strconv.Itoa(i), ResourceVersion: "1",
		}})
	}
	v.append("closed", true, rows...)
}

// raw is all that the disk has of the journal.
func (v *vault) raw() []byte {
	v.Helper()
	var all []byte
	files, err := filepath.Glob(v.j.Path() + "*")
	must(v.T, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(v.T, err)
		all = append(all, b...)
	}
	return all
}

// blobs returns the contents that the tables have.
func (v *vault) blobs() (all [][]byte) {
	v.Helper()
	for _, sql := range []string{"SELECT before FROM changes", "SELECT after FROM changes", "SELECT content FROM objects"} {
		must(v.T, v.j.db.query(sql, nil, func(s *sqlite3.Stmt) error {
			if b := blob(s, 0); len(b) > 60 {
				all = append(all, b)
			}
			return nil
		}))
	}
	return all
}

// windows are the ends of contents, where the values are: what compressed text is found by. Those that
// are in the contents beside, too, prove nothing.
func windows(contents, beside [][]byte) (all [][]byte) {
	rest := bytes.Join(beside, nil)
	for _, b := range contents {
		if w := b[len(b)-20:]; !bytes.Contains(rest, w) {
			all = append(all, w)
		}
	}
	return all
}

func count[T string | []byte](in []byte, needles []T) (n int) {
	for _, needle := range needles {
		if bytes.Contains(in, []byte(needle)) {
			n++
		}
	}
	return n
}

// TestPurgeErases plants values, compressed and not, in changes, states, free pages and the log, and
// looks for them in the raw files after a purge.
func TestPurgeErases(t *testing.T) {
	v := newVault(t)
	v.record("open")
	old := v.blobs()
	first := v.version
	v.rewrite()
	v.record("closed")
	kept := contents(t, v.j.Path())[first:]
	found := windows(old, nil)
	if raw := v.raw(); count(raw, v.planted) < len(v.planted)*8/10 || count(raw, found) < len(found)*8/10 {
		t.Fatalf("before, %d of %d values and %d of %d contents are found: the test could not fail", count(raw, v.planted), len(v.planted), count(raw, found), len(found))
	}
	purge := Purge{OtherRules: true}
	plan, err := v.j.PlanPurge(t.Context(), purge)
	want := Purging{Changes: int64(first), Dead: 1}
	if d := cmp.Diff(want, plan); d != "" || err != nil {
		t.Fatalf("%v\n%s", err, d)
	}
	told := int64(0)
	if err := v.j.Purge(t.Context(), purge, func(n int64) { told = n }); err != nil || told != int64(first) {
		t.Fatalf("%d of %d were removed, %v", told, first, err)
	}
	raw := v.raw()
	for _, value := range v.planted {
		if at := bytes.Index(raw, []byte(value)); at >= 0 {
			t.Fatalf("a value is still there, at byte %d", at)
		}
	}
	lost := windows(old, v.blobs())
	if n := count(raw, lost); n > 0 || len(lost) < len(old)/2 {
		t.Errorf("%d of %d compressed contents are still there", n, len(lost))
	}
	if fi, err := os.Stat(v.j.Path() + "-wal"); err != nil || fi.Size() > 16<<10 {
		t.Errorf("the log: %v, %v", fi, err)
	}
	if d := cmp.Diff(kept, contents(t, v.j.Path())); d != "" {
		t.Errorf("what was to stay (-want +got):\n%s", d)
	}
	v.whole()
	if plan, err := v.j.PlanPurge(t.Context(), purge); err != nil || !plan.None() {
		t.Errorf("again: %+v, %v", plan, err)
	}
	v.record("closed") // it goes on
	must(t, v.j.Close())
	v.j = open(t, v.j.Path())
	v.whole()
}

// whole verifies the journal, and that states are the pods'.
func (v *vault) whole() {
	v.Helper()
	r, err := OpenReader(v.Context(), v.j.Path())
	must(v.T, err)
	defer r.Close()
	if rep, err := r.Verify(v.Context(), Verifying{Damage: func(d Damage) { v.Errorf("%s: %s", d.Part, d.Text) }}); err != nil || rep.Changes == 0 {
		v.Errorf("%+v, %v", rep, err)
	}
	n := 0
	for o, err := range v.j.Objects(v.Context(), pods) {
		i, _ := strconv.Atoi(o.UID[len("uid-"):])
		if n++; err != nil || !bytes.Equal(o.JSON, v.now[i]) {
			v.Errorf("%s is %.80s, %v", o.Name, o.JSON, err)
		}
	}
	if n != len(v.now) {
		v.Errorf("%d states, want %d", n, len(v.now))
	}
}

// TestPurgeBetween removes what rules made that came and went: what is before and after reads as it did.
func TestPurgeBetween(t *testing.T) {
	v := newVault(t)
	v.record("closed")
	from := v.version
	v.record("open")
	to := v.version
	v.rewrite()
	v.record("closed")
	all := contents(t, v.j.Path())
	must(t, v.j.Purge(t.Context(), Purge{OtherRules: true}, nil))
	if d := cmp.Diff(slices.Concat(all[:from], all[to:]), contents(t, v.j.Path())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := count(v.raw(), v.planted); n > 0 {
		t.Errorf("%d values are still there", n)
	}
	v.whole()
}

// TestPurgeForgets: streams that were not read since the rules changed are forgotten, with their states.
func TestPurgeForgets(t *testing.T) {
	v := newVault(t)
	v.record("open")
	_, err := v.j.Rules(t.Context(), "closed", epoch)
	must(t, err)
	purge := Purge{OtherRules: true}
	plan, err := v.j.PlanPurge(t.Context(), purge)
	if err != nil || len(plan.Streams) != 1 || plan.Changes != int64(v.version) {
		t.Fatalf("%+v, %v", plan, err)
	}
	must(t, v.j.Purge(t.Context(), purge, nil))
	if n := count(v.raw(), v.planted); n > 0 {
		t.Errorf("%d values are still there", n)
	}
	if _, ok, err := v.j.Head(t.Context(), pods); ok || err != nil {
		t.Errorf("the stream is known, %v", err)
	}
}

// TestPurgeUntil removes what was seen before a time. Sinks that are behind are named before.
func TestPurgeUntil(t *testing.T) {
	v := newVault(t)
	v.record("open")
	all := contents(t, v.j.Path())
	must(t, v.j.SetCursor(t.Context(), "hook", 20), v.j.SetCursor(t.Context(), "done", 1000), v.j.Pause(t.Context(), "new", true))
	purge := Purge{Until: epoch.Add(101 * time.Second)}
	plan, err := v.j.PlanPurge(t.Context(), purge)
	if d := cmp.Diff(Purging{Changes: 100, Missed: []Missed{{"hook", 80}}}, plan); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	must(t, v.j.Purge(t.Context(), purge, nil))
	if d := cmp.Diff(all[100:], contents(t, v.j.Path())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	v.whole()
	if err := v.j.Purge(t.Context(), Purge{}, nil); err == nil {
		t.Error("a purge of nothing in particular is made")
	}
}

// TestPurgeBesideReader: while somebody reads, the log cannot be emptied. That is said, also at the next
// start, and the next purge makes it good.
func TestPurgeBesideReader(t *testing.T) {
	v := newVault(t)
	v.record("open")
	v.rewrite()
	_, err := v.j.Rules(t.Context(), "closed", epoch)
	must(t, err)
	r, err := OpenReader(t.Context(), v.j.Path())
	must(t, err)
	defer r.Close()
	must(t, v.j.db.script("PRAGMA busy_timeout = 20"))
	purge := Purge{OtherRules: true}
	err = r.do(t.Context(), func() error {
		if _, err := r.db.integer("SELECT count(*) FROM changes"); err != nil {
			return err
		}
		return v.j.Purge(t.Context(), purge, nil)
	})
	var busy *WriteError
	if !errors.As(err, &busy) || !bytes.Contains([]byte(err.Error()), []byte("another process reads")) {
		t.Fatalf("%v", err)
	}
	u, err := v.j.Rules(t.Context(), "closed", epoch)
	if err != nil || !u.Unfinished || u.Changes != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	must(t, v.j.Purge(t.Context(), purge, nil))
	if n := count(v.raw(), v.planted); n > 0 {
		t.Errorf("%d values are still there", n)
	}
}
