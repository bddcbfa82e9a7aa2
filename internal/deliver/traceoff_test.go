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
	if n := testing.AllocsPerRun(100, func() {
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
