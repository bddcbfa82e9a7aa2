package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session"
	"github.com/eclipse/paho.golang/paho/session/state"

	"github.com/tattler-dev/tattler/internal/sink"
)

const (
	// maxInFlight bounds the unanswered messages.
	maxInFlight = 256
	// maxPacket is MQTT's limit: the maximum length, and the header.
	maxPacket = 268_435_455 + maxHeader
)

// link is a connection, with the client's goroutines.
type link struct {
	client  *paho.Client
	raw     net.Conn // its Close does not block
	session *answers
	window  int // how many messages may be unanswered
	packet  int // the server's limit on packets, in bytes

	once sync.Once
	done chan struct{} // closed at the end, after err was set
	err  error
}

// answer receives the acknowledgement of a message, or an empty packet if the connection is lost.
type answer chan packets.ControlPacket

// answers is the client's session. The client can publish without waiting, but then reports no acknowledgement; so
// the session passes it to the channel next instead.
type answers struct {
	*state.State
	next answer
}

func (a *answers) AddToSession(ctx context.Context, p session.Packet, _ chan<- packets.ControlPacket) error {
	return a.State.AddToSession(ctx, p, a.next)
}

// pinger sends a ping twice in the interval of the keep alive.
type pinger struct {
	*paho.DefaultPinger
	l *link
}

func (p pinger) Run(ctx context.Context, conn net.Conn, keepAlive uint16) error {
	if keepAlive == 0 {
		return nil
	}
	every := max(1, keepAlive/2)
	err := p.DefaultPinger.Run(ctx, conn, every)
	if err != nil {
		p.l.end(fmt.Errorf("the server did not answer a ping within %s", time.Duration(every)*time.Second))
	}
	return err
}

// open opens a connection and logs in.
func (s *Sink) open(ctx context.Context) (*link, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.url.HostPort)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() }) // it may be closed already
	defer stop()
	conn := raw
	if s.tls != nil {
		secured := tls.Client(raw, s.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS: %w", err)
		}
		conn = secured
	}
	l, err := s.login(ctx, conn, raw)
	if err != nil {
		_ = raw.Close() // err is the reason
	}
	return l, err
}

// login sends CONNECT and learns the server's limits.
func (s *Sink) login(ctx context.Context, conn, raw net.Conn) (*link, error) {
	l := &link{raw: raw, session: &answers{State: state.NewInMemory()}, done: make(chan struct{})}
	l.client = paho.NewClient(paho.ClientConfig{
		Conn: newWire(conn, raw, s.o.Timeout, l.broken), Session: l.session, PacketTimeout: s.o.Timeout,
		PingHandler:        pinger{paho.NewDefaultPinger(), l},
		OnServerDisconnect: func(d *paho.Disconnect) { l.end(s.disconnected(d)) },
		OnClientError:      func(err error) { l.end(lost(err)) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(paho.PublishReceived) (bool, error) {
			l.end(errors.New("the server breaks the protocol: it publishes to us"))
			return true, nil
		}},
	})
	longest := uint32(maxAnswer)
	c, err := l.client.Connect(ctx, &paho.Connect{
		CleanStart: true, ClientID: s.o.ClientID,
		KeepAlive:    uint16(s.o.KeepAlive / time.Second), //nolint:gosec // Validate bounds it
		UsernameFlag: s.o.User != "", Username: s.o.User,
		PasswordFlag: s.o.Password != "", Password: []byte(s.o.Password),
		Properties: &paho.ConnectProperties{
			MaximumPacketSize: &longest, RequestProblemInfo: true, User: paho.UserProperties{{Key: "agent", Value: s.agent}},
		},
	})
	switch {
	case c != nil && c.ReasonCode >= 0x80:
		return nil, s.unwelcome(c)
	case errors.Is(err, errHungUp):
		return nil, fmt.Errorf("read the server's answer, which must be MQTT 5: %w", err)
	case errors.Is(err, io.EOF): // the client reads a packet to its end before it decodes it
		return nil, errors.New("a malformed CONNACK")
	case err != nil:
		return nil, err
	}
	if err := s.agree(l, c.Properties); err != nil {
		l.end(err)
		<-l.client.Done()
		return nil, err
	}
	return l, nil
}

// agree adopts the server's limits, and returns an error if the sink cannot work within them.
func (s *Sink) agree(l *link, p *paho.ConnackProperties) error {
	l.window, l.packet = maxInFlight, maxPacket
	if p.ReceiveMaximum != nil {
		l.window = min(l.window, int(*p.ReceiveMaximum))
	}
	if p.MaximumPacketSize != nil {
		l.packet = int(min(*p.MaximumPacketSize, maxPacket))
	}
	switch {
	case l.window == 0:
		return errors.New("the server breaks the protocol: its Receive Maximum is 0")
	case l.packet == 0:
		return errors.New("the server breaks the protocol: its Maximum Packet Size is 0")
	case p.MaximumQoS != nil && *p.MaximumQoS == 0:
		return errors.New("the server acknowledges no messages (its Maximum QoS is 0): allow QoS 1")
	case s.o.Retain && !p.RetainAvailable:
		return errors.New("the server retains no messages: allow it, or remove retain")
	}
	return nil
}

// publish sends a message without waiting for its answer. The window leaves room for it in the client's quota.
func (l *link) publish(ctx context.Context, p *paho.Publish) (answer, error) {
	l.session.next = make(answer, 1)
	_, err := l.client.PublishWithOptions(ctx, p, paho.PublishOptions{Method: paho.PublishMethod_AsyncSend})
	if err != nil {
		return nil, l.why(err)
	}
	return l.session.next, nil
}

// await returns the answer to a message.
func (l *link) await(a answer, within time.Duration) (*packets.Puback, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	var p packets.ControlPacket
	select {
	case p = <-a:
	case <-l.done: // if the connection ends while the client registers a message, it passes nothing to the channel
		select {
		case p = <-a: // it arrived before
		default:
		}
	case <-timer.C:
		l.end(fmt.Errorf("no acknowledgement within %s", within))
	}
	if ack, ok := p.Content.(*packets.Puback); ok {
		return ack, nil
	}
	return nil, l.why(errors.New("the server breaks the protocol: its answer is not a PUBACK"))
}

// why returns the reason for the end of the connection, which may still be on its way, or else err.
func (l *link) why(err error) error {
	l.grace()
	l.end(err)
	return l.err
}

// grace waits until the connection has ended, but not long.
func (l *link) grace() {
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}

// broken handles an error of writing. If the server ended the connection, the reader knows more.
func (l *link) broken(err error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
		l.grace()
	}
	l.end(lost(err))
}

// lost describes the client's error.
func lost(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, errHungUp) { // the client reads a packet to its end before it decodes it
		return errors.New("the server breaks the protocol: it sends a malformed packet")
	}
	return fmt.Errorf("the connection ended: %w", plain(err))
}

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

// close disconnects within a second if ctx has not ended, and waits until the goroutines have ended.
func (l *link) close(ctx context.Context) error {
	if ctx.Err() == nil && !l.over() {
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		defer context.AfterFunc(within, func() { _ = l.raw.Close() })()
		_ = l.client.Disconnect(&paho.Disconnect{}) // the connection ends either way
	}
	l.end(sink.ErrClosed)
	<-l.client.Done()
	return nil
}
