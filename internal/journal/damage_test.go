package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// served reads everything from a journal and compares it with the model: it may report damage, but must not return anything
// else. It returns whether damage was reported, and how many changes were read.
func (m *model) served(t *testing.T, path, why string) (said bool, changes int) {
	t.Helper()
	ctx := t.Context()
	reported := func(err error) {
		var damaged *DamagedError
		var format *FormatError
		if said = true; !errors.As(err, &damaged) && !errors.As(err, &format) {
			t.Errorf("%s: %v is no *DamagedError", why, err)
		}
	}
	r, err := OpenReader(ctx, path)
	if err != nil {
		reported(err)
		return true, 0
	}
	defer r.Close()
	for e, err := range r.Rows(ctx, Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			reported(err)
			break
		}
		if changes >= len(m.rows) {
			t.Fatalf("%s: change %d was invented", why, e.Seq)
		}
		w := &m.rows[changes]
		changes++
		if !sameMeta(w.Meta, e.Meta) || e.Seq != w.seq || e.ID != w.id {
			t.Fatalf("%s: change %d is served wrong:\n%s", why, e.Seq, cmp.Diff(w.Meta, e.Meta))
		}
		before, after, err := e.Contents(ctx)
		if err != nil {
			reported(err)
		} else if !bytes.Equal(before, w.Before) || !bytes.Equal(after, w.After) {
			t.Fatalf("%s: the contents of change %d are served wrong", why, e.Seq)
		}
	}
	if rep, err := r.Verify(ctx, Verifying{}); err != nil {
		reported(err)
	} else {
		said = said || rep.Damaged > 0
	}
	return said, changes
}

// sameMeta compares as cmp.Diff does, in a fraction of its time.
func sameMeta(a, b Meta) bool {
	for _, m := range []*Meta{&a, &b} {
		m.Time, m.At, m.Since = m.Time.UTC(), m.At.UTC(), m.Since.UTC()
	}
	return reflect.DeepEqual(a, b)
}

// written writes a history, exact to the millisecond, and returns its model.
func written(t *testing.T, path string, steps int) (*history, *Journal) {
	t.Helper()
	h := newHistory(5)
	j := open(t, path)
	for range steps {
		batches, _ := h.next()
		if _, err := j.Append(t.Context(), batches); err != nil {
			t.Fatal(err)
		}
	}
	return h, j
}

// TestDamage changes bytes in every page of a file: damage is reported, and only what was written is served.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	h, j := written(t, filepath.Join(dir, "journal.db"), 25)
	// Damage in free pages has no effect.
	if err := errors.Join(j.db.exec("PRAGMA incremental_vacuum"), j.Close()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var places []int
	for page := 0; page < len(good); page += 4096 {
		places = append(places, page, page+8+rng.IntN(120), page+4088+rng.IntN(8), page+rng.IntN(4096))
	}
	for at := 0; at < 100; at += 9 { // the file's header
		places = append(places, at)
	}
	path := filepath.Join(dir, "damaged.db")
	for _, at := range places {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		why := "byte " + hex(at)
		said, changes := h.served(t, path, why)
		if !said {
			t.Errorf("%s: nothing is said, %d of %d changes are served", why, changes, len(h.rows))
		}
		h.servedStates(t, path, why)
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + end)
		}
	}
}

// TestDamagedPageSaysSo: an error names the checksum, and does not blame the disk.
func TestDamagedPageSaysSo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	_, j := written(t, path, 25)
	must(t, j.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	for page := 4096; page < len(b); page += 4096 {
		b[page+2000] ^= 1
	}
	must(t, os.WriteFile(path, b, 0o600))
	_, err = Restore(t.Context(), path, filepath.Join(dir, "other.db"), epoch)
	if text := fmt.Sprint(err); !strings.HasSuffix(text, "is damaged: page: its checksum is wrong") {
		t.Error(text)
	}
}

// servedStates opens a damaged journal for writing.
func (h *history) servedStates(t *testing.T, path, why string) {
	t.Helper()
	j, err := Open(t.Context(), path, Options{})
	if err != nil {
		return // TestDamage has checked what a reader reports
	}
	defer j.Close()
	for st, want := range h.objects {
		for o, err := range j.Objects(t.Context(), st) {
			if err == nil && !reflect.DeepEqual(want[o.UID], o) {
				t.Errorf("%s: the state of %s is served wrong", why, o.Name)
			}
		}
	}
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	if n < 16 {
		return digits[n : n+1]
	}
	return hex(n/16) + digits[n%16:n%16+1]
}

// TestDamagedLog changes bytes of the write-ahead log of a crash: the journal is then as after some earlier transaction.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	h, j := written(t, path, 20)
	var files [2][]byte
	for i, end := range []string{"", "-wal"} {
		var err error
		if files[i], err = os.ReadFile(path + end); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	copied := filepath.Join(dir, "copy.db")
	earlier := 0
	for range 25 {
		bad := bytes.Clone(files[1])
		at := rng.IntN(len(bad))
		bad[at] ^= 1 << rng.IntN(8)
		if err := errors.Join(os.WriteFile(copied, files[0], 0o600), os.WriteFile(copied+"-wal", bad, 0o600)); err != nil {
			t.Fatal(err)
		}
		why := "log, byte " + hex(at)
		j, err := Open(t.Context(), copied, Options{Cluster: "prod"})
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		steps := stepsOf(t, j)
		then := newHistory(5)
		for range steps {
			then.next()
		}
		then.checkStates(t, j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		then.check(t, copied)
		if steps < h.steps {
			earlier++
		}
	}
	if earlier == 0 {
		t.Error("no damage made a difference")
	}
}

// TestDamagedContent changes contents but not the pages' checksums: the contents' checksums detect it.
func TestDamagedContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.db")
	h, j := written(t, path, 25)
	must(t, j.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	for i, c := range []struct{ why, sql string }{
		{"a state", "UPDATE live SET content = substr(content, 1, 7) || x'ff' || substr(content, 9) WHERE length(content) > 20"},
		{"a difference", "UPDATE contents SET before = substr(before, 1, length(before) - 1) || x'00' WHERE before IS NOT NULL"},
		{"a checksum", "UPDATE contents SET before = substr(before, 1, 1) || x'00000000' || substr(before, 6) WHERE before IS NOT NULL"},
		{"an unknown form", "UPDATE contents SET before = x'09' || substr(before, 2) WHERE before IS NOT NULL"},
		{"a content with a truncated header", "UPDATE contents SET before = substr(before, 1, 3) WHERE before IS NOT NULL"},
		{"missing states", "DELETE FROM live"},
		{"a state of no object", "INSERT INTO live SELECT 9999, stream, version, max_version, last, chain, sum, content FROM live LIMIT 1"},
		{"a content of no change", "INSERT INTO contents VALUES (9999, x'00', NULL)"},
		{"a missing object", "DELETE FROM objects WHERE id = 1"},
		{"missing namespaces", "DELETE FROM namespaces"},
		{"missing managers", "DELETE FROM managers"},
		{"missing kinds", "DELETE FROM kinds"},
		{"missing resources", "DELETE FROM resources"},
		{"missing clusters", "DELETE FROM clusters"},
		{"a block with other ids", "UPDATE block_ids SET ids = zeroblob(length(ids))"},
		{"a block without ids", "DELETE FROM block_ids"},
		{"a block without counts", "DELETE FROM block_counts"},
		{"a block that reaches another time", "UPDATE blocks SET reached = reached + 1"},
		{"an unknown operation", "UPDATE changes SET op = 77"},
		{"an unknown severity", "UPDATE changes SET severity = 9"},
		{"a last change that does not exist", "UPDATE live SET last = last + 1"},
	} {
		path := filepath.Join(dir, fmt.Sprint(i, ".db"))
		must(t, os.WriteFile(path, whole, 0o600))
		j := open(t, path)
		must(t, j.db.script("SAVEPOINT s; "+c.sql), j.db.script("RELEASE s"))
		if said, _ := h.served(t, path, c.why); !said {
			t.Errorf("%s: nothing is said", c.why)
		}
		must(t, j.Close())
	}
}

// TestReferences: Verify finds each row that refers to a missing one, and a name that retention would remove too early.
func TestReferences(t *testing.T) {
	const early = "1 changes of block 1 use a name that is noted as unused"
	for _, tc := range []struct{ sql, want string }{
		{"UPDATE resources SET cluster = 9", "1 rows of resources refer to no row of clusters"},
		{"UPDATE kinds SET resource = 9", "1 rows of kinds refer to no row of resources"},
		{"UPDATE streams SET resource = 9", "1 rows of streams refer to no row of resources"},
		{"UPDATE namespaces SET cluster = 9", "1 rows of namespaces refer to no row of clusters"},
		{"UPDATE objects SET resource = 9", "1 rows of objects refer to no row of resources"},
		{"UPDATE objects SET namespace = 9", "1 rows of objects refer to no row of namespaces"},
		{"UPDATE live SET object = 9", "1 rows of live refer to no row of objects"},
		{"UPDATE live SET stream = 9", "1 rows of live refer to no row of streams"},
		{"UPDATE contents SET seq = 9", "1 rows of contents refer to no row of changes"},
		{"UPDATE namespaces SET last = -65533", ""}, // change 2 noted no other use
		{"UPDATE namespaces SET last = -65534", early},
		{"UPDATE managers SET last = -65533", ""},
		{"UPDATE managers SET last = -65534", early},
	} {
		path := filepath.Join(t.TempDir(), "journal.db")
		j := open(t, path)
		created, updated := pod(event.Created, 1), pod(event.Updated, 2)
		created.Manager, updated.Manager = "kubelet", "kubelet"
		add(t, j, created, updated)
		must(t, j.db.script(tc.sql))
		r, err := OpenReader(t.Context(), path)
		must(t, err)
		var found []string
		_, err = r.Verify(t.Context(), Verifying{Damage: func(d Damage) { found = append(found, d.Text) }})
		if must(t, err, r.Close(), j.Close()); tc.want == "" && len(found) > 0 || tc.want != "" && !slices.Contains(found, tc.want) {
			t.Errorf("%s: %q, want %q", tc.sql, found, tc.want)
		}
	}
}

// TestMissingBlock: changes without a block, or with another one, are not found through blocks. Verify reports them, once, and
// does not report gaps that retention left.
func TestMissingBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, many(1100, event.Created)...)
	must(t, j.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	for _, tc := range []struct {
		why, sql, want string
	}{
		{"whole", "", ""},
		{"the first", "DELETE FROM blocks WHERE first = 1", "256 changes from 1 to 256 are in no block"},
		{"two between", "DELETE FROM blocks WHERE first IN (257, 513)", "512 changes from 257 to 768 are in no block"},
		{"the newest", "DELETE FROM blocks WHERE first = 1025", "76 changes from 1025 to 1100 are in no block"},
		{"all", "DELETE FROM blocks", "1100 changes from 1 to 1100 are in no block"},
		{"a block without changes", "UPDATE blocks SET size = 0 WHERE first = 1025", "block 1025 has 380 bytes of ids of 0 changes; 76 changes from 1025 to 1100 are in no block"},
		{"changes of another severity", "UPDATE changes SET severity = 3 WHERE seq = 300", "change 300 does not match its block 257; the counts of block 257 do not match its changes"},
		{"changes in another namespace", "INSERT INTO namespaces VALUES (9, 1, 'other', 300); UPDATE changes SET namespace = 9 WHERE seq = 300",
			"change 300 does not match its block 257; 1 changes of block 257 are in other namespaces than their objects; the counts of block 257 do not match its changes"},
		{"a block that reaches too far", "UPDATE blocks SET reached = reached + 1 WHERE first = 513", "block 513 does not match the times before it; block 769 does not match the times before it"},
		{"a block together with its changes", "DELETE FROM changes WHERE seq BETWEEN 257 AND 512; DELETE FROM blocks WHERE first = 257", ""},
	} {
		path := filepath.Join(t.TempDir(), "journal.db")
		must(t, os.WriteFile(path, whole, 0o600))
		j := open(t, path)
		must(t, j.db.script(tc.sql))
		r, err := OpenReader(t.Context(), path)
		must(t, err)
		var got []string
		rep, err := r.Verify(t.Context(), Verifying{Damage: func(d Damage) {
			if d.Part == Index && strings.Contains(d.Text, "block") {
				got = append(got, d.Text)
			}
		}})
		if must(t, err, r.Close(), j.Close()); strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, %+v; want %q", tc.why, got, rep, tc.want)
		}
	}
}
