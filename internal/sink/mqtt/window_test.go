package mqtt

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestFakeWindow checks that messages of different objects are sent without waiting, but never more than the server
// allows, and that answers may come in any order. A sink that sends too few would block here.
func TestFakeWindow(t *testing.T) {
	const window, count = 5, 20
	ms := sinktest.Messages(0, count)
	for i := range ms {
		ms[i].Key = fmt.Sprint("object-", i)
	}
	var mu sync.Mutex
	var waiting []packets.Packet
	answered := 0
	s := newFake(t, &fake{
		connack: packets.Connack{Properties: &packets.Properties{ReceiveMaximum: ptr(uint16(window))}},
		on: func(p *packets.Publish) []packets.Packet {
			mu.Lock()
			defer mu.Unlock()
			if waiting = append(waiting, ack(p, 0)[0]); len(waiting) > window {
				t.Errorf("%d messages are unanswered", len(waiting))
			}
			answers := []packets.Packet{}
			switch {
			case answered < count-window && len(waiting) == window: // the last first
				slices.Reverse(waiting)
				answers, waiting = waiting, nil
			case answered+len(waiting) == count:
				answers, waiting = waiting, nil
			}
			answered += len(answers)
			return answers
		},
	})
	if n, err := s.Send(t.Context(), ms); n != count || err != nil {
		t.Errorf("acknowledged %d, %v", n, err)
	}
}

// TestFakeOneOfAnObject checks that no message is sent while an earlier one of its object is unanswered, so that it
// cannot overtake one that is refused.
func TestFakeOneOfAnObject(t *testing.T) {
	ms := sinktest.Messages(0, 9) // three objects take turns
	place := func(p *packets.Publish) int {
		return slices.IndexFunc(ms, func(m sink.Message) bool { return m.ID == id(p) })
	}
	var mu sync.Mutex
	var got []int
	s := newFake(t, &fake{on: func(p *packets.Publish) []packets.Packet {
		mu.Lock()
		defer mu.Unlock()
		i := place(p)
		got = append(got, i)
		if i == 3 {
			return ack(p, packets.PubackQuotaExceeded)
		}
		return ack(p, 0)
	}})
	n, err := s.Send(t.Context(), ms)
	check(t, "a refusal in the middle", err, "quota exceeded (0x97)")
	mu.Lock()
	defer mu.Unlock()
	if n != 3 || slices.Contains(got, 6) {
		t.Errorf("acknowledged %d; sent %v, and 6 is of the object of 3", n, got)
	}
}
