package mqtt

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
)

// exchange is one Send: messages that go out in their order, and answers that come in any.
type exchange struct {
	s  *Sink
	l  *link
	ms []sink.Message

	next     int             // the first that was not sent
	end      int             // the first that failed: none from there on is sent
	flying   map[uint16]int  // the unanswered, by their packets' numbers
	keys     map[string]bool // of the unanswered
	answered []bool          // the taken
	acked    int             // so many of the first are taken
	err      error           // why not all are
}

// run ends when all that was sent is answered, or nothing more will be.
func (x *exchange) run() {
	timer := time.NewTimer(x.l.timeout)
	defer timer.Stop()
	for {
		if err := x.write(); err != nil {
			x.broken(err)
			return
		}
		if len(x.flying) == 0 {
			return // what is left has failed
		}
		select {
		case a := <-x.l.answers:
			x.take(a)
			x.drain()
			timer.Reset(x.l.timeout)
		case <-x.l.done:
			x.lost(x.l.err)
			return
		case <-timer.C:
			x.l.end(fmt.Errorf("no acknowledgement within %s", x.l.timeout))
			x.lost(x.l.err)
			return
		}
	}
}

// write sends what may be sent. Its error is the connection's.
func (x *exchange) write() error {
	wrote := false
	for x.next < x.end && len(x.flying) < x.window() && !x.keys[x.ms[x.next].Key] {
		m := x.ms[x.next]
		p, err := x.packet(m)
		if err != nil {
			x.fail(x.next, err)
			break
		}
		p.PacketID = x.l.nextID(x.flying)
		x.flying[p.PacketID], x.keys[m.Key] = x.next, true
		x.next++
		wrote = true
		if err := x.l.write(p, false); err != nil {
			return err
		}
	}
	if !wrote {
		return nil
	}
	return x.l.flush()
}

func (x *exchange) window() int {
	if x.s.single > 0 {
		return 1
	}
	return x.l.window
}

// packet makes a message's packet, and sees to it that the server takes one so long.
func (x *exchange) packet(m sink.Message) (*packets.Publish, error) {
	p, err := x.s.publication(m)
	if err != nil {
		return nil, err
	}
	if n := size(p); n > x.l.packet {
		return nil, &sink.TooLargeError{
			Limit: max(0, len(m.Body)-(n-x.l.packet)),
			Err:   fmt.Errorf("a packet of %d bytes; the server takes %d (its Maximum Packet Size)", n, x.l.packet),
		}
	}
	return p, nil
}

// fail notes that a message was not taken; the first one counts.
func (x *exchange) fail(i int, err error) {
	if i < x.end {
		x.end, x.err = i, err
	}
}

// take takes an answer.
func (x *exchange) take(a *packets.Puback) {
	i, ok := x.flying[a.PacketID]
	if !ok {
		x.l.end(fmt.Errorf("the server breaks the protocol: it acknowledges packet %d, which is not on its way", a.PacketID))
		return
	}
	delete(x.flying, a.PacketID)
	delete(x.keys, x.ms[i].Key)
	x.s.single = max(0, x.s.single-1)
	if err := x.s.refused(a, x.ms[i]); err != nil {
		x.fail(i, err)
		return
	}
	x.answered[i] = true
	for x.acked < len(x.ms) && x.answered[x.acked] {
		x.acked++
	}
}

// drain takes the answers that are there.
func (x *exchange) drain() {
	for {
		select {
		case a := <-x.l.answers:
			x.take(a)
		default:
			return
		}
	}
}

// broken is about a connection that cannot be written to. Where the server ended it, what it said before tells
// more.
func (x *exchange) broken(err error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		select {
		case <-x.l.done:
		case <-time.After(min(x.l.timeout, time.Second)):
		}
	}
	x.l.end(fmt.Errorf("the connection ended: %w", gone(err)))
	x.lost(x.l.err)
}

// lost is about a connection that has ended. What was answered by then counts.
func (x *exchange) lost(why error) {
	x.drain()
	var gone *disconnected
	switch {
	case errors.As(why, &gone) && gone.code == packets.DisconnectPacketTooLarge:
		why = x.tooLarge(why)
	case errors.Is(why, errHungUp) && len(x.flying) == 1: // it may have other reasons, and a message is not cut on a guess
		why = fmt.Errorf("%w while it had a message of %d bytes; if it does so again and again, it takes none so long: set the sink's maxBytes", why, len(x.ms[x.acked].Body))
	}
	if x.acked < x.end { // else it was a message that failed
		x.err = why
	}
}

// tooLarge is about a server that ends the connection for the length of a message, without having said how
// long one may be. Of several on their way it may be any: they go alone next.
func (x *exchange) tooLarge(why error) error {
	if len(x.flying) == 1 {
		x.s.single = 0
		return &sink.TooLargeError{Err: why}
	}
	x.s.single = len(x.flying)
	return why
}
