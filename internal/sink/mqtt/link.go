package mqtt

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/packets"
)

const (
	// maxInFlight bounds the unanswered messages.
	maxInFlight = 256
	// maxAnswer bounds the packets that we accept: the server publishes nothing to us.
	maxAnswer = 64 << 10
	// maxPacket is MQTT's limit: the maximum length, and the header of up to five bytes.
	maxPacket = 268_435_455 + 5
)

// link is a connection, with one goroutine that reads it and one that keeps it alive.
type link struct {
	conn    net.Conn // with TLS, if configured
	raw     net.Conn // the TCP connection, whose Close does not block
	timeout time.Duration
	window  int // how many messages may be unanswered
	packet  int // the server's limit on packets, in bytes

	mu     sync.Mutex // guards writer, which Send and the pings share
	writer *bufio.Writer
	lastID uint16

	answers chan *packets.Puback // its capacity is the window
	silent  atomic.Bool          // nothing arrived since the last ping
	running sync.WaitGroup
	once    sync.Once
	done    chan struct{} // closed at the end, after err was set
	err     error
}

// dial opens a connection and logs in.
func (s *Sink) dial(ctx context.Context) (*link, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, s.o.Timeout, fmt.Errorf("no answer within %s", s.o.Timeout))
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(waiting, "tcp", hostPort(s.url))
	if err != nil {
		return nil, because(waiting, err)
	}
	l := &link{conn: raw, raw: raw, timeout: s.o.Timeout, done: make(chan struct{})}
	stop := context.AfterFunc(waiting, func() { _ = raw.Close() }) // it may be closed already
	keep, reader, err := s.hello(waiting, l)
	if !stop() && err == nil {
		err = errors.New("too late")
	}
	if err != nil {
		_ = raw.Close() // err is the reason
		return nil, because(waiting, err)
	}
	l.answers = make(chan *packets.Puback, l.window)
	l.running.Go(func() { l.listen(s, reader) })
	if keep > 0 {
		l.running.Go(func() { l.keep(keep / 2) })
	}
	return l, nil
}

// because returns the cause of a context that has ended, or else the error.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// hello performs the handshake and learns the server's limits.
func (s *Sink) hello(ctx context.Context, l *link) (keep time.Duration, reader *bufio.Reader, err error) {
	if s.tls != nil {
		secured := tls.Client(l.raw, s.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return 0, nil, fmt.Errorf("TLS: %w", err)
		}
		l.conn = secured
	}
	l.writer, reader = bufio.NewWriterSize(l.conn, 32<<10), bufio.NewReader(l.conn)
	longest := uint32(maxAnswer)
	connect := packets.Connect{
		ProtocolName: "MQTT", ProtocolVersion: 5, CleanStart: true, ClientID: s.o.ClientID,
		KeepAlive:    uint16(s.o.KeepAlive / time.Second), //nolint:gosec // Validate bounds it
		UsernameFlag: s.o.User != "", Username: s.o.User,
		PasswordFlag: s.o.Password != "", Password: []byte(s.o.Password),
		Properties: &packets.Properties{MaximumPacketSize: &longest, User: []packets.User{{Key: "agent", Value: s.agent}}},
	}
	if err := l.write(&connect, true); err != nil {
		return 0, nil, err
	}
	// The first byte shows whether the server speaks MQTT. Do not wait for the length that another protocol implies.
	first, err := reader.Peek(1)
	if err == nil && first[0] != packets.CONNACK<<4 && first[0] != packets.DISCONNECT<<4 {
		return 0, nil, fmt.Errorf("the server's answer begins with the byte 0x%02x, which is not MQTT 5", first[0])
	}
	answer, err := readPacket(reader)
	if err != nil {
		return 0, nil, fmt.Errorf("read the server's answer, which must be MQTT 5: %w", plain(err))
	}
	if bye, ok := answer.(*packets.Disconnect); ok {
		return 0, nil, s.disconnected(bye)
	}
	keep, err = s.agree(l, answer.(*packets.Connack)) //nolint:forcetypeassert // its first byte was checked
	return keep, reader, err
}

// agree adopts the server's limits, and returns an error if the sink cannot work within them.
func (s *Sink) agree(l *link, c *packets.Connack) (keep time.Duration, err error) {
	if c.ReasonCode != packets.ConnackSuccess {
		return 0, s.unwelcome(c)
	}
	l.window, l.packet, keep = maxInFlight, maxPacket, s.o.KeepAlive
	p := c.Properties
	if p.ReceiveMaximum != nil {
		if l.window = min(l.window, int(*p.ReceiveMaximum)); l.window == 0 {
			return 0, errors.New("the server breaks the protocol: its Receive Maximum is 0")
		}
	}
	if p.MaximumPacketSize != nil {
		if l.packet = int(min(*p.MaximumPacketSize, maxPacket)); l.packet == 0 {
			return 0, errors.New("the server breaks the protocol: its Maximum Packet Size is 0")
		}
	}
	if p.MaximumQOS != nil && *p.MaximumQOS == 0 {
		return 0, errors.New("the server acknowledges no messages (its Maximum QoS is 0): allow QoS 1")
	}
	if s.o.Retain && p.RetainAvailable != nil && *p.RetainAvailable == 0 {
		return 0, errors.New("the server retains no messages: allow it, or remove retain")
	}
	if p.ServerKeepAlive != nil {
		keep = time.Duration(*p.ServerKeepAlive) * time.Second
	}
	return keep, nil
}

// listen reads until the connection ends.
func (l *link) listen(s *Sink, r *bufio.Reader) {
	for {
		p, err := readPacket(r)
		if err != nil {
			l.end(fmt.Errorf("the connection ended: %w", plain(err)))
			return
		}
		l.silent.Store(false)
		switch p := p.(type) {
		case *packets.Puback:
			select {
			case l.answers <- p:
			default:
				l.end(errors.New("the server breaks the protocol: it acknowledges more than was sent"))
				return
			}
		case *packets.Pingresp:
		case *packets.Disconnect:
			l.end(s.disconnected(p))
			return
		default:
			l.end(fmt.Errorf("the server breaks the protocol: it sends a %T", p))
			return
		}
	}
}

// keep sends pings, and ends the connection if the server does not answer.
func (l *link) keep(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
		}
		if l.silent.Swap(true) {
			l.end(fmt.Errorf("the server did not answer a ping within %s", every))
			return
		}
		if err := l.write(&packets.Pingreq{}, true); err != nil {
			l.end(err)
			return
		}
	}
}

// write writes a packet to the buffer, and flushes it if asked to. After an error the connection is unusable.
func (l *link) write(p packets.Packet, flush bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.raw.SetWriteDeadline(time.Now().Add(l.timeout)); err != nil {
		return err
	}
	_, err := p.WriteTo(l.writer)
	if err == nil && flush {
		err = l.writer.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the server read nothing within %s", l.timeout)
	}
	return err
}

func (l *link) flush() error { return l.write(nothing{}, true) }

// end ends the connection. The first reason counts.
func (l *link) end(why error) {
	l.once.Do(func() {
		l.err = why
		close(l.done)
	})
	_ = l.raw.Close() // it may be closed already
}

// over reports whether the connection has ended.
func (l *link) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// close disconnects, and waits until the goroutines have ended.
func (l *link) close(ctx context.Context) {
	const maxWait = time.Second
	by := time.Now().Add(maxWait)
	if d, ok := ctx.Deadline(); ok && d.Before(by) {
		by = d
	}
	// A Send that hangs holds the writer. Then the connection ends without a DISCONNECT.
	if l.mu.TryLock() {
		if l.raw.SetWriteDeadline(by) == nil {
			bye := packets.Disconnect{Properties: &packets.Properties{}}
			if _, err := bye.WriteTo(l.writer); err == nil {
				_ = l.writer.Flush() // the connection ends either way
			}
		}
		l.mu.Unlock()
	}
	l.end(errors.New("the sink is closed"))
	l.running.Wait()
}

// nextID returns an unused packet number.
func (l *link) nextID(inFlight map[uint16]int) uint16 {
	for {
		l.lastID++
		if _, used := inFlight[l.lastID]; l.lastID != 0 && !used {
			return l.lastID
		}
	}
}
