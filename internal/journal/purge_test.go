package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// vault is a journal of pods with values that later rules hide.
type vault struct {
	*testing.T
	*rand.Rand
	j       *Journal
	pods    int
	version int
	now     map[int][]byte // the pods' JSON
	fillers map[int][]byte
	planted []string // the values
	who     []int    // the pod of each change
}

func newVault(t *testing.T) *vault {
	v := &vault{T: t, Rand: rand.New(rand.NewPCG(1, 2)), pods: 40, now: map[int][]byte{}, fillers: map[int][]byte{}}
	v.j = open(t, filepath.Join(t.TempDir(), "journal.db"))
	for i := range v.pods {
		v.fillers[i] = noise(v.Rand, []int{50, 900, 9000}[i%3]) // within a page, and larger
	}
	return v
}

// json returns a pod with a value.
func (v *vault) json(i int, value string) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","metadata":{"resourceVersion":"%d"},"spec":{"filler":"%s","password":"%s"}}`, v.version, v.fillers[i], value)
}

// change makes a change of a pod.
func (v *vault) change(i int, op event.Op, value string) Row {
	v.version++
	v.who = append(v.who, i)
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

// record records many changes, with a new value each time.
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
			setAside(v.T, v.j, DeadLetter{Sink: "hook", Seq: int64(v.version) - 1, Reason: "400 for " + string(rows[0].Before), At: epoch})
		}
	}
}

func (v *vault) append(rules string, live bool, rows ...Row) {
	v.Helper()
	_, err := v.j.Append(v.Context(), []Batch{{Stream: pods, Head: Head{Version: "1", Live: live, EverLive: true, Pipeline: "1 v1 " + rules, At: epoch}, Rows: rows}})
	must(v.T, err)
}

// rewrite rewrites the pods' states, as a list under other rules does.
func (v *vault) rewrite(rules string) {
	v.Helper()
	_, err := v.j.Rules(v.Context(), rules, epoch.Add(time.Duration(v.version)*time.Second))
	must(v.T, err)
	var rows []Row
	for i := range v.pods {
		if v.now[i] == nil {
			continue
		}
		value := fmt.Sprintf("hidden #%016x", v.Uint64())
		if rules == "open" {
			value = string(noise(v.Rand, 20))
			v.planted = append(v.planted, value)
		}
		v.now[i] = v.json(i, value)
		rows = append(rows, Row{Rewritten: true, After: v.now[i], Meta: Meta{
			Kind: podKind, Namespace: "shop", Name: "web-" + strconv.Itoa(i), UID: "uid-" + strconv.Itoa(i), ResourceVersion: "1",
		}})
	}
	v.append(rules, true, rows...)
}

// raw returns everything that the disk holds of the journal.
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

// blobs returns the contents in the tables.
func (v *vault) blobs() (all [][]byte) {
	v.Helper()
	for _, sql := range []string{"SELECT before FROM contents", "SELECT after FROM contents", "SELECT content FROM live"} {
		must(v.T, v.j.db.query(sql, nil, func(s *sqlite3.Stmt) error {
			if b := blob(s, 0); len(b) > 60 {
				all = append(all, b)
			}
			return nil
		}))
	}
	return all
}

// tailsOf returns the ends of contents, which hold the values: compressed text is found by them. Ends that also occur in
// neighbouring contents prove nothing.
func tailsOf(contents, beside [][]byte) (all [][]byte) {
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

// TestPurgeErases plants values, compressed and not, in changes, states, free pages and the log, and searches the raw files
// after a purge.
func TestPurgeErases(t *testing.T) {
	v := newVault(t)
	v.record("open")
	old := v.blobs()
	first := v.version
	v.rewrite("closed")
	v.record("closed")
	kept := contents(t, v.j.Path())[first:]
	found := tailsOf(old, nil)
	if raw := v.raw(); count(raw, v.planted) < len(v.planted)*8/10 || count(raw, found) < len(found)*8/10 {
		t.Fatalf("before, %d of %d values and %d of %d contents are found: the test could not fail", count(raw, v.planted), len(v.planted), count(raw, found), len(found))
	}
	purge := Purge{OtherRules: true}
	plan, err := v.j.PlanPurge(t.Context(), purge)
	want := Purging{Changes: int64(first), Dead: 1}
	if d := cmp.Diff(want, plan); d != "" || err != nil {
		t.Fatalf("%v\n%s", err, d)
	}
	reported := int64(0)
	if err := v.j.Purge(t.Context(), purge, func(n int64) { reported = n }); err != nil || reported != int64(first) {
		t.Fatalf("%d of %d were removed, %v", reported, first, err)
	}
	raw := v.raw()
	for _, value := range v.planted {
		if at := bytes.Index(raw, []byte(value)); at >= 0 {
			t.Fatalf("a value is still there, at byte %d", at)
		}
	}
	lost := tailsOf(old, v.blobs())
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
	v.record("closed") // recording continues
	must(t, v.j.Close())
	v.j = open(t, v.j.Path())
	v.whole()
}

// whole verifies the journal, and that the states are the pods'.
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

// TestPurgeBetween removes changes under rules that came and went: earlier and later ones read as before.
func TestPurgeBetween(t *testing.T) {
	v := newVault(t)
	v.record("closed")
	from := v.version
	v.record("open")
	to := v.version
	v.rewrite("closed")
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

// TestPurgeUntil removes changes seen before a time. The plan names sinks that are behind.
func TestPurgeUntil(t *testing.T) {
	v := newVault(t)
	v.record("open")
	want, cut := contents(t, v.j.Path())[100:], int64(0)
	gone, seen := map[int]bool{}, map[int]bool{}
	for i, pod := range v.who[100:] {
		before := regexp.MustCompile(`^\d+ \w+ (\S+) -> `)
		if m := before.FindStringSubmatchIndex(want[i]); m != nil && !seen[pod] {
			want[i] = want[i][:m[2]] + "(purged)" + want[i][m[3]:]
			cut++
		}
		seen[pod] = true
	}
	for i := 99; i >= 0; i-- { // a pod that did not change since stays
		gone[i] = seen[v.who[i]]
		seen[v.who[i]] = true
	}
	must(t, v.j.SetCursor(t.Context(), "hook", 20), v.j.SetCursor(t.Context(), "done", 1000), v.j.Pause(t.Context(), "new", true))
	purge := Purge{Until: epoch.Add(101 * time.Second)}
	plan, err := v.j.PlanPurge(t.Context(), purge)
	if d := cmp.Diff(Purging{Changes: 100, Cut: cut, Missed: []Missed{{"hook", 80}}}, plan); d != "" || err != nil || cut < 20 {
		t.Errorf("%v\n%s", err, d)
	}
	must(t, v.j.Purge(t.Context(), purge, nil))
	if d := cmp.Diff(want, contents(t, v.j.Path())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	raw := v.raw()
	for i := range gone {
		if gone[i] && bytes.Contains(raw, []byte(v.planted[i])) {
			t.Errorf("the value of change %d is still there", i+1)
		}
	}
	if plan, err := v.j.PlanPurge(t.Context(), purge); err != nil || !plan.None() {
		t.Errorf("again: %+v, %v", plan, err)
	}
	v.whole()
	if err := v.j.Purge(t.Context(), Purge{}, nil); err == nil {
		t.Error("a purge of nothing in particular is made")
	}
}

// TestPurgeBesideReader: while a reader is open, the log cannot be emptied. That is reported, also at the next start, and the
// next purge finishes.
func TestPurgeBesideReader(t *testing.T) {
	v := newVault(t)
	v.record("open")
	v.rewrite("closed")
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
	if err != nil || u.Unfinished == nil || !u.Unfinished.OtherRules || u.Changes != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	must(t, v.j.Purge(t.Context(), purge, nil))
	if n := count(v.raw(), v.planted); n > 0 {
		t.Errorf("%d values are still there", n)
	}
}

// TestPurgeUnfinished: an interrupted purge can only be finished by one that removes as much.
func TestPurgeUnfinished(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for _, tc := range []struct {
		why         string
		begun, then Purge
		refused     string
	}{
		{"the same", Purge{Until: at}, Purge{Until: at}, ""},
		{"a later end", Purge{Until: at}, Purge{Until: at.Add(time.Second)}, ""},
		{"an earlier end", Purge{Until: at}, Purge{Until: at.Add(-time.Second)}, "--until 2023-11-14T22:13:20.123Z"},
		{"other rules, after an end", Purge{Until: at}, Purge{OtherRules: true}, "--until 2023-11-14T22:13:20.123Z"},
		{"an end, after other rules", Purge{OtherRules: true}, Purge{Until: at}, "--older-rules"},
		{"other rules again", Purge{OtherRules: true}, Purge{OtherRules: true}, ""},
	} {
		path := filepath.Join(t.TempDir(), "journal.db")
		j := open(t, path)
		_, err := j.Append(t.Context(), []Batch{{Stream: pods, Head: Head{Version: "9", Live: true, EverLive: true, At: epoch}, Rows: many(3, event.Created)}})
		must(t, err)
		ended, end := context.WithCancel(t.Context())
		end()
		must(t, j.write(t.Context(), "write", func() error {
			return j.db.exec("INSERT INTO meta VALUES (?, ?)", purging, tc.begun.note())
		}))
		_, planned := j.PlanPurge(t.Context(), tc.then)
		for _, err := range []error{planned, j.Purge(t.Context(), tc.then, nil)} {
			var unfinished *UnfinishedPurgeError
			if errors.As(err, &unfinished) != (tc.refused != "") || err != nil && !strings.HasSuffix(err.Error(), tc.refused) {
				t.Errorf("%s: %v", tc.why, err)
			}
		}
		if err := j.Purge(ended, tc.begun, nil); err == nil {
			t.Errorf("%s: an interrupted purge completed", tc.why)
		}
	}
}

// TestPurgeStatesOfOtherRules: rules that came and went have rewritten states, which the histories of other rules end with.
// Whatever forgot the states, nothing of them is left, and the histories read as before.
func TestPurgeStatesOfOtherRules(t *testing.T) {
	for _, tc := range []struct {
		why    string
		forget func(*vault)
	}{
		{"the purge itself", func(*vault) {}},
		{"the daemon", func(v *vault) { must(v.T, v.j.Forget(v.Context(), pods)) }},
		{"the daemon, which then watched the stream again", func(v *vault) {
			must(v.T, v.j.Forget(v.Context(), pods))
			_, err := v.j.Rules(v.Context(), "closed", epoch.Add(time.Hour))
			must(v.T, err)
			seen := v.change(0, event.Snapshot, "hidden")
			seen.Before = nil
			v.append("closed", true, seen)
		}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			v := newVault(t)
			v.record("closed")
			v.rewrite("open")
			if n := count(v.raw(), v.planted); n < len(v.planted)*8/10 || len(v.planted) < 10 {
				t.Fatalf("%d of %d values are found: the test could not fail", n, len(v.planted))
			}
			tc.forget(v)
			want := contents(t, v.j.Path())
			_, err := v.j.Rules(t.Context(), "closed", epoch.Add(time.Hour))
			must(t, err)
			must(t, v.j.Purge(t.Context(), Purge{OtherRules: true}, nil))
			if n := count(v.raw(), v.planted); n > 0 {
				t.Errorf("%d values are still there", n)
			}
			if d := cmp.Diff(want, contents(t, v.j.Path())); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestPurgeCuts: if retention removed the change before, its result counts as seen before the time as well. Changes that clocks
// put on either side of the time stay or go individually.
func TestPurgeCuts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	rows := []Row{pod(event.Created, 1), pod(event.Updated, 2), pod(event.Updated, 3), pod(event.Updated, 4), pod(event.Deleted, 5)}
	rows[1].At = epoch.Add(time.Hour) // a clock that was ahead
	add(t, j, rows...)
	left := pod(event.Updated, 9)
	left.Name, left.UID = "left", "u2"
	born := pod(event.Created, 8)
	born.Name, born.UID, born.After, born.Quiet = "left", "u2", left.Before, true
	add(t, j, born, left)
	p := pruner{j: j, done: &Retained{}}
	if err := j.write(t.Context(), "shrink", func() error { return p.step(epoch, Retention{Size: 1}, 9) }); err != nil || p.quiet != 1 {
		t.Fatalf("%d quiet ones were removed, %v", p.quiet, err)
	}
	plan, err := j.PlanPurge(t.Context(), Purge{Until: epoch.Add(4 * time.Second)})
	if d := cmp.Diff(Purging{Changes: 2, Cut: 3}, plan); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	setAside(t, j, DeadLetter{Sink: "hook", Seq: 4, Reason: "400 for " + string(rows[3].Before), At: epoch, Body: rows[3].Before})
	setAside(t, j, DeadLetter{Sink: "hook", Seq: 5, Reason: "400", At: epoch})
	must(t, j.Purge(t.Context(), Purge{Until: epoch.Add(4 * time.Second)}, nil))
	letters, err := j.DeadLetters(t.Context(), "hook")
	if err != nil || len(letters) != 2 || letters[0].Reason != "purged" || letters[0].Body != nil || letters[1].Reason != "400" {
		t.Errorf("dead letters: %+v, %v", letters, err)
	}
	want := []string{
		`2 updated (purged) -> {"kind":"Pod","version":2}`,
		`4 updated (purged) -> {"kind":"Pod","version":4}`,
		`5 deleted {"kind":"Pod","version":4} -> `,
		`7 updated (purged) -> {"kind":"Pod","version":9}`,
	}
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	must(t, j.Purge(t.Context(), Purge{Until: epoch.Add(5 * time.Second)}, nil))
	if d := cmp.Diff([]string{want[0], `5 deleted (purged) -> `, want[3]}, contents(t, path)); d != "" {
		t.Errorf("a deletion (-want +got):\n%s", d)
	}
	if got := add(t, j, pod(event.Entered, 20)); got.Rows != 1 {
		t.Errorf("it goes on: %+v", got)
	}
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	if rep, err := r.Verify(t.Context(), Verifying{Damage: func(d Damage) { t.Errorf("%s: %s", d.Part, d.Text) }}); err != nil || rep.Changes != 4 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// TestPurgeDeadLetters: dead letters whose changes retention removed are the only thing to purge, and are purged.
func TestPurgeDeadLetters(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	_, err := j.Rules(t.Context(), "a", epoch)
	must(t, err)
	_, err = j.Append(t.Context(), []Batch{{
		Stream: pods, Head: Head{Version: "2", Live: true, Pipeline: "1 v1 a", At: epoch}, Rows: []Row{pod(event.Created, 1), pod(event.Updated, 2)},
	}})
	must(t, err)
	const planted = "hunter2-hunter2-hunter2"
	setAside(t, j, DeadLetter{Sink: "hook", Seq: 1, Reason: "400 for " + planted, At: epoch})
	setAside(t, j, DeadLetter{Sink: "hook", Seq: 2, Reason: "400", At: epoch})
	if got, err := j.Retain(t.Context(), epoch.Add(12*time.Second), Retention{Age: 10*time.Second + 500*time.Millisecond}, 2); err != nil || got.Removed != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, purge := range []Purge{{OtherRules: true}, {Until: epoch}} {
		plan, err := j.PlanPurge(t.Context(), purge)
		if plan.Cut = 0; plan.None() || err != nil {
			t.Errorf("%+v: nothing is planned, %v", purge, err)
		}
		if d := cmp.Diff(Purging{Dead: 1}, plan); d != "" {
			t.Errorf("%+v:\n%s", purge, d)
		}
	}
	must(t, j.Purge(t.Context(), Purge{OtherRules: true}, nil))
	letters, err := j.DeadLetters(t.Context(), "hook")
	if err != nil || len(letters) != 1 || letters[0].Seq != 2 {
		t.Errorf("%+v, %v", letters, err)
	}
	v := vault{T: t, j: j}
	if bytes.Contains(v.raw(), []byte(planted)) {
		t.Error("its reason is still there")
	}
	if plan, err := j.PlanPurge(t.Context(), Purge{OtherRules: true}); err != nil || !plan.None() {
		t.Errorf("again: %+v, %v", plan, err)
	}
}
