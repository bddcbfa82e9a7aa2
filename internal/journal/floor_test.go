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
	h.grow(t, j, changes)
	return j
}

// grow appends updates that take 800 bytes each.
func (h *history) grow(t *testing.T, j *Journal, changes int) {
	t.Helper()
	first := int(j.tail.next())
	for rows := []Row{}; changes > 0; changes-- {
		r := pod(event.Updated, first+len(rows))
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

// TestFloorMoves: the floor follows the newest changes, and uses earlier measurements.
func TestFloorMoves(t *testing.T) {
	ctx := t.Context()
	j := heavy(t, filepath.Join(t.TempDir(), "journal.db"), 0, 1200)
	last, limit := int64(0), int64(1<<20)
	for range 3 {
		cached, err := j.floor(ctx, limit)
		must(t, err)
		j.listed = nil
		fresh, err := j.floor(ctx, limit)
		if err != nil || cached != fresh || fresh <= last || fresh < 2 {
			t.Errorf("the floor is %d, measured anew %d, before %d: %v", cached, fresh, last, err)
		}
		last = fresh
		newHistory(uint64(last)).grow(t, j, 300)
	}
	for limit, want := range map[int64]int64{0: j.tail.next(), 1 << 40: 0} {
		if got, err := j.floor(ctx, limit); err != nil || got != want {
			t.Errorf("limit %d: floor %d, want %d: %v", limit, got, want, err)
		}
	}
}
