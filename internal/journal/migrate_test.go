package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
)

// aged changes a file that an earlier program has written, as that program might have.
func aged(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec(sql), c.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestMigrateToBlocksThatWereSeen: from each older format, blocks come to say when their changes were seen,
// and those without changes are gone, but for the newest. Sinks have lost nothing that is known.
func TestMigrateToBlocksThatWereSeen(t *testing.T) {
	for format := 1; format < 3; format++ {
		path := filepath.Join(t.TempDir(), "journal.db")
		j := open(t, path)
		add(t, j, many(3*blockSize+1, event.Created)...)
		must(t, j.Close())
		older(t, path, format)
		aged(t, path, "INSERT INTO sinks VALUES ('hook', 7, 1); DELETE FROM changes WHERE seq BETWEEN 257 AND 512; UPDATE changes SET lag = lag + 5000 WHERE seq = 600; DELETE FROM changes WHERE seq > 768; DELETE FROM objects WHERE last BETWEEN 257 AND 512 OR last > 768")
		j = open(t, path)
		var got []string
		must(t, j.db.query("SELECT first, seen_oldest, seen_newest FROM blocks ORDER BY first", nil, func(s *sqlite3.Stmt) error {
			seen := "-"
			if s.ColumnType(1) != sqlite3.NULL {
				seen = fmt.Sprint(time.UnixMilli(s.ColumnInt64(1)).Sub(epoch), time.UnixMilli(s.ColumnInt64(2)).Sub(epoch))
			}
			got = append(got, fmt.Sprint(s.ColumnInt64(0), " ", seen))
			return nil
		}))
		if d := cmp.Diff([]string{"1 1s 1s", "513 1s 6s", "769 -"}, got); d != "" {
			t.Errorf("from format %d (-want +got):\n%s", format, d)
		}
		late := pod(event.Updated, 20)
		late.Before, late.Name, late.UID = nil, "late", "u2"
		if got := add(t, j, late); got.Last != 770 {
			t.Errorf("from format %d it goes on with %d", format, got.Last)
		}
		sinks, err := j.Sinks(t.Context())
		if d := cmp.Diff([]Sink{{Name: "hook", Cursor: 7, HasCursor: true, Paused: true}}, sinks); d != "" || err != nil {
			t.Errorf("from format %d: %v\n%s", format, err, d)
		}
		r, err := OpenReader(t.Context(), path)
		must(t, err)
		if seq, err := r.SeqAt(t.Context(), epoch.Add(7*time.Second)); seq != 769 || err != nil {
			t.Errorf("from format %d: seen since second 7: %d, %v", format, seq, err)
		}
		if seq, err := r.SeqAt(t.Context(), epoch.Add(3*time.Second)); seq != 599 || err != nil {
			t.Errorf("from format %d: seen since second 3: %d, %v", format, seq, err)
		}
		must(t, r.Close(), j.Close())
		verify(t, path)
	}
}

// older takes from a file what formats after one have added.
func older(t *testing.T, path string, format int) {
	t.Helper()
	undo := []string{
		2: `DROP TABLE rules; ALTER TABLE blocks DROP COLUMN sum; ALTER TABLE changes DROP COLUMN epoch;`,
		3: `ALTER TABLE sinks DROP COLUMN lost; ALTER TABLE blocks DROP COLUMN seen_oldest; ALTER TABLE blocks DROP COLUMN seen_newest;
			DROP INDEX gaps_versions; DROP INDEX objects_name; CREATE INDEX objects_name ON objects (name);`,
		4: `ALTER TABLE streams DROP COLUMN served; ALTER TABLE objects DROP COLUMN sum; ALTER TABLE changes DROP COLUMN form;`,
	}
	for n, sql := range slices.Backward(undo) {
		if n > format {
			aged(t, path, sql)
		}
	}
	aged(t, path, fmt.Sprintf("PRAGMA user_version = %d", format))
}

// TestMigrateEpochs: format 1 did not say in which history of the server a change was. Those since the last
// one began are known again, in that history and no other, and keep the ids under which they were delivered.
func TestMigrateEpochs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	gap := func(ns, from, reason string) Row {
		r := Row{Meta: Meta{Op: event.Gap, Kind: podKind, Namespace: ns, Time: epoch, At: epoch, Gap: &event.GapInfo{From: from, To: "9", Reason: reason}}}
		return r
	}
	in := func(ns, uid string, version int) Row {
		r := pod(event.Updated, version)
		r.Namespace, r.Name, r.UID = ns, uid, uid
		return r
	}
	other := in("shop", "elsewhere", 3)
	other.Kind = nodeKind
	shop := Stream{GroupResource: "pods", Namespace: "shop"}
	rows := []Row{in("shop", "a", 1), gap("shop", "1", "expired, history-changed"), in("shop", "a", 2), in("pay", "b", 2), gap("shop", "5", "expired"), other}
	_, err := j.Append(t.Context(), []Batch{{Stream: shop, Head: Head{Version: "9", Epoch: 2, At: epoch}, Rows: rows}})
	must(t, err, j.Close())
	ids := idsOf(t, path)
	older(t, path, 1)
	j = open(t, path)
	_, err = j.Rules(t.Context(), "a", epoch)
	must(t, err)
	if d := cmp.Diff(ids, idsOf(t, path)); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	for _, tc := range []struct {
		why   string
		row   Row
		epoch int64
		dup   bool
	}{
		{"before that history", in("shop", "a", 1), 2, false},
		{"before it, in the first", in("shop", "a", 1), 1, true},
		{"what began it", gap("shop", "1", "expired, history-changed"), 2, true},
		{"since", in("shop", "a", 2), 2, true},
		{"since, and a third history", in("shop", "a", 2), 3, false},
		{"in another stream", in("pay", "b", 2), 2, false},
		{"in another stream, in the first", in("pay", "b", 2), 1, true},
		{"a gap since", gap("shop", "5", "expired"), 2, true},
		{"of another kind", other, 2, false},
	} {
		tc.row.Epoch = tc.epoch
		if got := add(t, j, tc.row); got.Duplicates == 1 != tc.dup {
			t.Errorf("%s: %+v, want a duplicate: %t", tc.why, got, tc.dup)
		}
	}
	must(t, j.Close())
	j = open(t, path) // what it has had is not done again
	if got := add(t, j, in("shop", "a", 2)); got.Rows != 1 {
		t.Errorf("the first history had that version, too: %+v", got)
	}
	verify(t, path)
}

// TestMigrateOpenGaps: the id of a gap without a version at its end did not say since when it was; it stays.
func TestMigrateOpenGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	add(t, j, Row{Meta: Meta{Op: event.Gap, Kind: podKind, Namespace: "shop", Time: epoch, At: epoch, Gap: &event.GapInfo{From: "1", Reason: "expired"}}})
	must(t, j.db.exec("UPDATE changes SET since = 5000"), j.Close())
	older(t, path, 2)
	j = open(t, path)
	got := idsOf(t, path)
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	if _, err := r.ByID(t.Context(), strings.TrimSuffix(got[0], "0")); err != nil {
		t.Errorf("%v: %v", got, err)
	}
	must(t, j.Close())
	verify(t, path)
}

func idsOf(t *testing.T, path string) (ids []string) {
	t.Helper()
	r, err := OpenReader(t.Context(), path)
	must(t, err)
	defer r.Close()
	for e, err := range r.Rows(t.Context(), Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		must(t, err)
		ids = append(ids, fmt.Sprint(e.ID, e.Epoch))
	}
	return ids
}

// TestMigrateGolden brings what earlier programs have written up to date, and compares that with what this
// one would have made.
func TestMigrateGolden(t *testing.T) {
	schema := func(path string) (all []string) {
		j := open(t, path)
		defer j.Close()
		must(t, j.db.query("SELECT type, name, tbl_name FROM sqlite_schema ORDER BY 1, 2", nil, func(s *sqlite3.Stmt) error {
			line := fmt.Sprint(s.ColumnText(0), " ", s.ColumnText(1))
			if s.ColumnText(0) == "table" {
				columns := ""
				must(t, j.db.query("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?)", []any{s.ColumnText(1)}, func(c *sqlite3.Stmt) error {
					columns += fmt.Sprint(" ", c.ColumnText(0), " ", c.ColumnText(1), c.ColumnText(2), c.ColumnText(3), c.ColumnText(4), ",")
					return nil
				}))
				line += columns
			}
			all = append(all, line)
			return nil
		}))
		return all
	}
	want := schema(filepath.Join(t.TempDir(), "new.db"))
	for format := range len(migrations) {
		path := filepath.Join(t.TempDir(), "journal.db")
		restoreGolden(t, format+1, path)
		if d := cmp.Diff(want, schema(path)); d != "" {
			t.Errorf("from format %d (-want +got):\n%s", format+1, d)
		}
	}
}
