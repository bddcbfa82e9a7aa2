package mqtt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

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
			case answered < count-window && len(waiting) == window: // all but one, the last first
				slices.Reverse(waiting)
				answers, waiting = waiting[:window-1], waiting[window-1:]
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

// TestWindow checks step by step what is sent and what is counted, including answers just before the end.
func TestWindow(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	ms := sinktest.Messages(0, 9)
	for i := range ms {
		ms[i].Key = ms[i].ID
	}
	s := newFake(t, &fake{})
	l := &link{raw: ours, timeout: time.Minute, window: 3, packet: maxPacket, writer: bufio.NewWriter(io.Discard), answers: make(chan *packets.Puback, 3)}
	x := exchange{s: s, l: l, ms: ms, end: len(ms), inFlight: map[uint16]int{}, keys: map[string]bool{}, answered: make([]bool, len(ms))}
	step := func(sent, acked int) {
		t.Helper()
		if err := x.write(); err != nil || x.next != sent || x.acked != acked {
			t.Errorf("%d were sent, %d are acknowledged, %v; want %d and %d", x.next, x.acked, err, sent, acked)
		}
	}
	step(3, 0)
	x.take(&packets.Puback{PacketID: 2})
	step(4, 0) // the first one is unanswered
	x.take(&packets.Puback{PacketID: 1})
	step(5, 2)
	s.suspects = 2
	step(5, 2)
	x.take(&packets.Puback{PacketID: 3})
	x.take(&packets.Puback{PacketID: 4})
	x.take(&packets.Puback{PacketID: 5})
	step(8, 5) // unchanged
	l.answers <- &packets.Puback{PacketID: 6}
	x.lost(io.EOF)
	if x.acked != 6 || !errors.Is(x.err, io.EOF) {
		t.Errorf("acknowledged %d, %v; want 6", x.acked, x.err)
	}
}
