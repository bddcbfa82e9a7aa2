package journal

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tattler-dev/tattler/event"
)

// heavy returns a journal with states of about so many bytes, and changes that take 80 to 90 KB per hundred besides.
func heavy(t *testing.T, path string, states, changes int) *Journal {
	t.Helper()
	j := open(t, path)
	h := newHistory(3)
	for n := 0; n < states; n += 64 << 10 {
		add(t, j, Row{Meta: Meta{
			Op: event.Snapshot, Kind: podKind, Namespace: "shop", Name: fmt.Sprint("big-", n), UID: fmt.Sprint("big-", n), ResourceVersion: strconv.Itoa(n + 1), Time: epoch, At: epoch,
		}, After: fmt.Appendf(nil, `{"data":%q}`, noise(h.Rand, 64<<10))})
	}
	h.grow(t, j, changes, 0)
	return j
}

// grow appends updates that take 800 bytes each, some halves of them quiet.
func (h *history) grow(t *testing.T, j *Journal, changes, quiet int) {
	t.Helper()
	first := int(j.tail.next())
	for rows := []Row{}; changes > 0; changes-- {
		r := pod(event.Updated, first+len(rows))
		r.Quiet = h.IntN(2) < quiet
		r.Before, r.After = nil, fmt.Appendf(nil, `{"data":%q}`, noise(h.Rand, 800))
		if len(rows) > 0 {
			r.Before = rows[len(rows)-1].After
		}
		if rows = append(rows, r); len(rows) == 100 || changes == 1 {
			add(t, j, rows...)
			first, rows = first+len(rows), nil
		}
	}
}

// TestRetainFloor: states larger than the limit do not cost the history. The oldest changes go, those that every sink has got
// first, and a quarter of the limit stays.
func TestRetainFloor(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := heavy(t, path, 4<<20, 1000)
	newest, err := j.Last(ctx)
	must(t, err)
	must(t, j.SetCursor(ctx, "slow", newest-300))
	limit := Retention{Size: 2 << 20}
	got, err := j.Retain(ctx, epoch, limit, newest)
	must(t, err)
	r, err := OpenReader(ctx, path)
	must(t, err)
	defer r.Close()
	s, err := r.Size(ctx)
	must(t, err)
	kept, err := j.db.integer("SELECT total(length(before)) + total(length(after)) FROM contents")
	must(t, err)
	if got.Removed == 0 || len(got.Lost) > 0 || s.Last != newest || kept < 400<<10 || kept > 512<<10 {
		t.Errorf("%+v; %d to %d are left, in %d bytes; want a quarter of the limit, and nothing that a sink lacks removed", got, s.First, s.Last, kept)
	}
	again, err := j.Retain(ctx, epoch, limit, newest)
	if err != nil || again.Removed != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	verify(t, path)
}

// TestStatesApart: if the states alone exceed the limit, changes still have a quarter of it, quiet ones too. What exceeds the
// quarter goes, quiet changes first, and then the oldest ones.
func TestStatesApart(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
	j := heavy(t, path, 4<<20, 0)
	newHistory(4).grow(t, j, 300, 1)
	r, err := OpenReader(ctx, path)
	must(t, err)
	defer r.Close()
	retain := func(cursor int64) Retained {
		t.Helper()
		limit := Retention{Size: 2 << 20}
		limit.States, err = r.States(ctx)
		must(t, err, j.SetCursor(ctx, "slow", cursor))
		got, err := j.Retain(ctx, epoch, limit, 1<<62)
		must(t, err)
		return got
	}
	if got := retain(0); got.Removed != 0 {
		t.Errorf("%+v; want a quarter of the limit for changes, quiet ones too", got)
	}
	newHistory(5).grow(t, j, 600, 1)
	got := retain(0)
	if got.Quiet == 0 || got.Quiet != got.Removed || len(got.Lost) > 0 {
		t.Errorf("%+v; want quiet ones to go", got)
	}
	newHistory(6).grow(t, j, 600, 0)
	newest, err := j.Last(ctx)
	must(t, err)
	if got = retain(newest - 300); got.Removed == got.Quiet || len(got.Lost) > 0 {
		t.Errorf("%+v; want the oldest to go, and none that the sink lacks", got)
	}
	verify(t, path)
}
