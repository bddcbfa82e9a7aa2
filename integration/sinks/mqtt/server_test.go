package mqtt_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// broker is a mochi server that is stopped and started again, each time on another port. It remembers what arrived.
type broker struct {
	server.HookBase
	user, password string // the only allowed credentials; empty: everyone may connect
	tls            *tls.Config
	configure      func(c *server.Capabilities)
	// publish, if set, decides about a message; a packets.Code is the answer.
	publish func(cl *server.Client, pk packets.Packet) error
	// encode, if set, changes outgoing packets.
	encode func(pk packets.Packet) packets.Packet
	// subscribed, if set, is called for each subscription.
	subscribed chan struct{}

	mu       sync.Mutex
	running  *server.Server // nil while it is down
	addr     string
	arrived  []packets.Packet
	passedOn int // how many messages subscribers got
	connects []packets.Packet
}

func (b *broker) ID() string { return "test" }

func (b *broker) Provides(hook byte) bool {
	return bytes.IndexByte([]byte{server.OnConnectAuthenticate, server.OnACLCheck, server.OnPublish, server.OnPublished, server.OnPacketEncode, server.OnSubscribed}, hook) >= 0
}

func (b *broker) OnConnectAuthenticate(_ *server.Client, pk packets.Packet) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.connects = append(b.connects, pk)
	return b.user == "" || string(pk.Connect.Username) == b.user && string(pk.Connect.Password) == b.password
}

// OnACLCheck forbids one topic.
func (b *broker) OnACLCheck(_ *server.Client, topic string, write bool) bool {
	return !write || topic != "forbidden"
}

func (b *broker) OnPublish(cl *server.Client, pk packets.Packet) (packets.Packet, error) {
	b.mu.Lock()
	publish := b.publish
	b.mu.Unlock()
	if publish != nil {
		if err := publish(cl, pk); err != nil {
			return pk, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived = append(b.arrived, pk)
	return pk, nil
}

func (b *broker) OnPublished(*server.Client, packets.Packet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.passedOn++
}

func (b *broker) OnPacketEncode(_ *server.Client, pk packets.Packet) packets.Packet {
	if b.encode != nil {
		return b.encode(pk)
	}
	return pk
}

func (b *broker) OnSubscribed(*server.Client, packets.Packet, []byte) {
	if b.subscribed != nil {
		b.subscribed <- struct{}{}
	}
}

// on sets how messages are treated.
func (b *broker) on(publish func(cl *server.Client, pk packets.Packet) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.publish = publish
}

// messages returns the messages that arrived.
func (b *broker) messages() []packets.Packet {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]packets.Packet(nil), b.arrived...)
}

// address returns the last listening address.
func (b *broker) address() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addr
}

func start(t *testing.T, b *broker) *broker {
	t.Helper()
	b.start(t)
	t.Cleanup(func() { b.stop(t) })
	return b
}

func (b *broker) start(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	down := b.running == nil
	b.mu.Unlock()
	if !down {
		return
	}
	capabilities := server.NewDefaultServerCapabilities()
	capabilities.Compatibilities.NoInheritedPropertiesOnAck = true
	if b.configure != nil {
		b.configure(capabilities)
	}
	s := server.New(&server.Options{Capabilities: capabilities, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err := s.AddHook(b, nil); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if b.tls != nil {
		l = tls.NewListener(l, b.tls)
	}
	if err := s.AddListener(newDoor(l)); err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.addr = s, addr
}

func (b *broker) stop(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	s := b.running
	b.running = nil
	b.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
