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

// exchange is one Send: messages go out in order, and answers may come in any order.
type exchange struct {
	s  *Sink
	l  *link
	ms []sink.Message

	next     int             // the first message that was not sent
	end      int             // the first message that failed: nothing from there on is sent
	inFlight map[uint16]int  // unanswered messages by packet number
	keys     map[string]bool // the keys of the unanswered messages
	answered []bool          // whether the server took a message
	acked    int             // the first messages that the server took
	err      error           // why the message at acked was not taken
}

// run returns when every sent message is answered, or when no more answers will come.
func (x *exchange) run() {
	timer := time.NewTimer(x.l.timeout)
	defer timer.Stop()
	for {
		if err := x.write(); err != nil {
			x.broken(err)
			return
		}
		if len(x.inFlight) == 0 {
			return // the rest has failed
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

// write sends as many messages as it may. An error is the connection's.
func (x *exchange) write() error {
	wrote := false
	for x.next < x.end && len(x.inFlight) < x.window() && !x.keys[x.ms[x.next].Key] {
		m := x.ms[x.next]
		p, err := x.packet(m)
		if err != nil {
			x.fail(x.next, err)
			break
		}
		p.PacketID = x.l.nextID(x.inFlight)
		x.inFlight[p.PacketID], x.keys[m.Key] = x.next, true
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
	if x.s.suspects > 0 {
		return 1
	}
	return x.l.window
}

// packet makes a message's packet, and checks its length against the server's limit.
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

// fail notes that a message was not taken. The first failure counts.
func (x *exchange) fail(i int, err error) {
	if i < x.end {
		x.end, x.err = i, err
	}
}

// take handles an answer.
func (x *exchange) take(a *packets.Puback) {
	i, ok := x.inFlight[a.PacketID]
	if !ok {
		x.l.end(fmt.Errorf("the server breaks the protocol: it acknowledges packet %d, which is not in flight", a.PacketID))
		return
	}
	delete(x.inFlight, a.PacketID)
	delete(x.keys, x.ms[i].Key)
	x.s.suspects = max(0, x.s.suspects-1)
	if err := x.s.refused(a, x.ms[i]); err != nil {
		x.fail(i, err)
		return
	}
	x.answered[i] = true
	for x.acked < len(x.ms) && x.answered[x.acked] {
		x.acked++
	}
}

// drain handles the answers that have arrived.
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

// broken handles a connection that cannot be written to. If the server ended it, the reader's error says more, so
// broken waits for that.
func (x *exchange) broken(err error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		select {
		case <-x.l.done:
		case <-time.After(min(x.l.timeout, time.Second)):
		}
	}
	x.l.end(fmt.Errorf("the connection ended: %w", plain(err)))
	x.lost(x.l.err)
}

// lost handles a connection that has ended. Answers that arrived before count.
func (x *exchange) lost(why error) {
	x.drain()
	var gone *disconnected
	switch {
	case errors.As(why, &gone) && gone.code == packets.DisconnectPacketTooLarge:
		why = x.tooLarge(why)
	case errors.Is(why, errHungUp) && len(x.inFlight) == 1: // there may be other reasons, and the sink does not cut on a guess
		why = fmt.Errorf("%w while a message of %d bytes was in flight; if this repeats, the message may be too long for the server: set the sink's maxBytes", why, len(x.ms[x.acked].Body))
	}
	if x.acked < x.end { // otherwise a message has failed, and x.err says why
		x.err = why
	}
}

// tooLarge handles a server that ends the connection because of a message's length and has not announced its limit.
// Any of the messages in flight may be to blame, so they are sent one at a time next.
func (x *exchange) tooLarge(why error) error {
	if len(x.inFlight) == 1 {
		x.s.suspects = 0
		return &sink.TooLargeError{Err: why}
	}
	x.s.suspects = len(x.inFlight)
	return why
}
