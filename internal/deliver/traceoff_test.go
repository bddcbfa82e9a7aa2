package deliver

import (
	"errors"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/sink"
)

// TestUntraced: without Delivered, a change costs nothing.
func TestUntraced(t *testing.T) {
	tr := trace{o: &Options{}}
	items, m, letter, err := []Item{{Seq: 1}, {Seq: 2}}, &sink.Message{ID: "a"}, &DeadLetter{ID: "a"}, errors.New("no")
	if n := testing.AllocsPerRun(10_000, func() {
		tr.take(1, m)
		tr.sent(items, 1, err)
		tr.hold(items)
		tr.notFlushed(err)
		tr.acknowledged(items)
		tr.setAside(1, letter, err)
		tr.replayed(time.Time{}, letter, 1, err)
		tr.release()
		tr.moved(2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// few follows the changes whose id begins with "s".
type few struct {
	delivered []string
	untraced  int
}

func (f *few) Follows(id string) bool { return id[0] == 's' }
func (f *few) Delivered(d Delivery)   { f.delivered = append(f.delivered, d.ID) }
func (f *few) Untraced()              { f.untraced++ }

// TestTooMany: a change beyond the limit is counted once, however often it is read again and however its delivery ends.
// Changes that are not followed neither count nor take a place.
func TestTooMany(t *testing.T) {
	f := &few{}
	tr := trace{o: &Options{Traces: f}}
	const over = 5
	all := make([]Item, 0, 2*(maxTraced+over))
	read := func() {
		all = all[:0]
		for n := range int64(maxTraced + over) {
			tr.take(2*n+1, &sink.Message{ID: "sampled"})
			tr.take(2*n+2, &sink.Message{ID: "other"})
			all = append(all, Item{Seq: 2*n + 1}, Item{Seq: 2*n + 2})
		}
	}
	for range 3 { // a sink.Holder that drops what it held
		read()
		tr.hold(all)
		tr.release()
	}
	last := int64(2*(maxTraced+over) - 1)
	tr.setAside(last, &DeadLetter{ID: "sampled"}, errors.New("no"))
	tr.setAside(last+1, &DeadLetter{ID: "other"}, errors.New("no"))
	tr.replayed(time.Time{}, &DeadLetter{ID: "other"}, 1, nil)
	read()
	tr.sent(all, len(all), nil)
	tr.acknowledged(all)
	if f.untraced != over || len(f.delivered) != maxTraced || len(tr.taken) != 0 {
		t.Errorf("%d untraced, %d delivered, %d kept", f.untraced, len(f.delivered), len(tr.taken))
	}
	tr.reset()
	read() // a replay
	if tr.acknowledged(all); f.untraced != 2*over || len(f.delivered) != 2*maxTraced {
		t.Errorf("again: %d untraced, %d delivered", f.untraced, len(f.delivered))
	}
}
