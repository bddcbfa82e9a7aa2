package mqtt

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// fake is a server that breaks the protocol on request, and answers messages as on says.
type fake struct {
	listener net.Listener
	connack  packets.Connack
	raw      []byte // instead of the CONNACK
	// on answers a message; nil ends the connection.
	on func(p *packets.Publish) []packets.Packet

	mu    sync.Mutex
	conns []net.Conn
	ended sync.WaitGroup
}

func newFake(t *testing.T, f *fake) *Sink {
	t.Helper()
	var err error
	if f.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if f.connack.Properties == nil {
		f.connack.Properties = &packets.Properties{}
	}
	f.ended.Go(func() {
		for {
			conn, err := f.listener.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, conn)
			f.mu.Unlock()
			f.ended.Go(func() { f.serve(conn) })
		}
	})
	s, err := New("tattler/test", Options{URL: "mqtt://" + f.listener.Addr().String(), Topic: "changes/{{.Data.Op}}", Password: canary, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		f.listener.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			c.Close()
		}
		f.mu.Unlock()
		f.ended.Wait()
	})
	return s
}

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	if _, err := packets.ReadPacket(r); err != nil {
		return
	}
	if f.raw != nil {
		if _, err := conn.Write(f.raw); err != nil {
			return
		}
	} else if _, err := f.connack.WriteTo(conn); err != nil {
		return
	}
	for {
		p, err := packets.ReadPacket(r)
		if err != nil {
			return
		}
		m, ok := p.Content.(*packets.Publish)
		if !ok {
			continue
		}
		answers := f.on(m)
		if answers == nil {
			return
		}
		for _, a := range answers {
			if _, err := a.WriteTo(conn); err != nil {
				return
			}
			if _, last := a.(*packets.Disconnect); last {
				return
			}
		}
	}
}

func ack(p *packets.Publish, code byte) []packets.Packet {
	return []packets.Packet{&packets.Puback{PacketID: p.PacketID, ReasonCode: code, Properties: &packets.Properties{}}}
}

func id(p *packets.Publish) string { return p.Properties.User[0].Value }

func disconnect(code byte, text string) []packets.Packet {
	return []packets.Packet{&packets.Disconnect{ReasonCode: code, Properties: &packets.Properties{ReasonString: text}}}
}

func ptr[T any](v T) *T { return &v }

// TestFakeConnect checks the errors for a server's first answer. None of them blames a message.
func TestFakeConnect(t *testing.T) {
	refuse := func(code byte) packets.Connack {
		return packets.Connack{ReasonCode: code, Properties: &packets.Properties{ReasonString: "no " + canary}}
	}
	with := func(p packets.Properties) packets.Connack { return packets.Connack{Properties: &p} }
	for _, tc := range []struct {
		why     string
		connack packets.Connack
		raw     string
		want    string
	}{
		{"no messages at all", with(packets.Properties{ReceiveMaximum: ptr(uint16(0))}), "", "its Receive Maximum is 0"},
		{"no bytes at all", with(packets.Properties{MaximumPacketSize: ptr(uint32(0))}), "", "its Maximum Packet Size is 0"},
		{"no acknowledgements", with(packets.Properties{MaximumQOS: ptr(byte(0))}), "", "allow QoS 1"},
		{"a wrong password, which is not repeated", refuse(0x86), "", "bad user name or password (0x86): no ***; check user, password"},
		{"no rights", refuse(0x87), "", "not authorized (0x87): no ***; check user, password"},
		{"a client's name", refuse(0x85), "", "set clientId"},
		{"a code of the future", refuse(0xf0), "", "a reason unknown to MQTT 5 (0xf0)"},
		{"another server", packets.Connack{ReasonCode: 0x9c, Properties: &packets.Properties{ServerReference: "h2:1883"}}, "", "use another server (0x9c): the server refers to h2:1883"},
		{"MQTT 3", packets.Connack{}, "\x20\x02\x00\x01", "the server does not speak MQTT 5"},
		{"the password of MQTT 3", packets.Connack{}, "\x20\x02\x00\x04", "refuses the user, and does not seem to speak MQTT 5"},
		{"no MQTT", packets.Connack{}, "HTTP/1.1 400 Bad Request\r\n\r\n", "begins with the byte 0x48, which is not MQTT 5"},
		{"a length without an end", packets.Connack{}, "\x20\xff\xff\xff\xff\xff", "malformed packet length"},
		{"a length beyond all bounds", packets.Connack{}, "\x20\xff\xff\xff\x7f", "a packet of 268435455 bytes exceeds the limit of 65536"},
		{"half a CONNACK", packets.Connack{}, "\x20\x01\x00", "a malformed CONNACK"},
		{"another packet", packets.Connack{}, "\xd0\x00", "begins with the byte 0xd0"},
		{"a farewell without a reason", packets.Connack{}, "\xe0\x00", "begins with the byte 0xe0"},
		{"the type that is not there", packets.Connack{}, "\x00\x00", "begins with the byte 0x00"},
	} {
		f := &fake{connack: tc.connack}
		if tc.raw != "" {
			f.raw = []byte(tc.raw)
		}
		n, err := newFake(t, f).Send(t.Context(), sinktest.Messages(0, 3))
		check(t, tc.why, err, tc.want)
		var permanent *sink.PermanentError
		if n != 0 || errors.As(err, &permanent) {
			t.Errorf("%s: acknowledged %d, %v", tc.why, n, err)
		}
	}
	s := newFake(t, &fake{connack: packets.Connack{Properties: &packets.Properties{RetainAvailable: ptr(byte(0))}}})
	s.o.Retain = true
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	check(t, "nothing is retained", err, "allow it, or remove retain")
}

// TestFakeRefusals checks which reason codes blame the message, and which are temporary.
func TestFakeRefusals(t *testing.T) {
	for _, tc := range []struct {
		code      byte
		fixed     bool // all messages have the same topic
		permanent bool
		want      string
	}{
		{0x00, false, false, ""},
		{0x10, false, false, ""},
		{0x80, false, false, "unspecified error (0x80)"},
		{0x83, false, false, "implementation specific error (0x83)"},
		{0x87, false, false, "the user needs the right to publish to the topic"},
		{0x90, false, true, "the server refuses the message for topic changes/updated: topic name invalid (0x90)"},
		{0x90, true, false, "topic name invalid (0x90); set topic to one that the server accepts"},
		{0x91, false, false, "packet identifier in use (0x91)"},
		{0x97, false, false, "quota exceeded (0x97)"},
		{0x99, false, true, "payload format invalid (0x99)"},
		{0xf0, false, false, "(0xf0)"},
	} {
		ms := sinktest.Messages(0, 5)
		s := newFake(t, &fake{on: func(p *packets.Publish) []packets.Packet {
			if id(p) == ms[2].ID {
				return ack(p, tc.code)
			}
			return ack(p, 0)
		}})
		s.fixed = tc.fixed
		n, err := s.Send(t.Context(), ms)
		check(t, tc.want, err, tc.want)
		var permanent *sink.PermanentError
		if n != 2 && tc.want != "" || errors.As(err, &permanent) != tc.permanent {
			t.Errorf("0x%02x: acknowledged %d, %v", tc.code, n, err)
		}
	}
}

// TestFakeTooLarge uses a server that does not announce its limit on messages and ends the connection for a longer
// one. The messages that were in flight are then sent one at a time, until the long one is found.
func TestFakeTooLarge(t *testing.T) {
	ms := sinktest.Messages(0, 9)
	var mu sync.Mutex
	var got []string
	s := newFake(t, &fake{on: func(p *packets.Publish) []packets.Packet {
		mu.Lock()
		defer mu.Unlock()
		if id(p) == ms[4].ID {
			return disconnect(0x95, "too long for us")
		}
		got = append(got, id(p))
		return ack(p, 0)
	}})
	var long *sink.TooLargeError
	acked, tries := 0, 0
	for ; !errors.As(s.try(t, ms, &acked), &long); tries++ {
		if tries == 10 {
			t.Fatal("the message is not found")
		}
	}
	if acked != 4 || long.Limit != 0 || !strings.Contains(long.Error(), "packet too large (0x95): too long for us") {
		t.Errorf("acknowledged %d, %v", acked, long)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, m := range ms[:4] {
		if !slices.Contains(got, m.ID) {
			t.Errorf("message %d did not arrive", i)
		}
	}
}

// try sends the remaining messages and counts the acknowledged ones.
func (s *Sink) try(t *testing.T, ms []sink.Message, acked *int) error {
	t.Helper()
	n, err := s.Send(t.Context(), ms[*acked:])
	*acked += n
	return err
}

// TestFakeBreaks checks errors that end a connection, and that the sink recovers.
func TestFakeBreaks(t *testing.T) {
	for _, tc := range []struct {
		why  string
		on   func(p *packets.Publish) []packets.Packet
		want string
	}{
		{"a reason", func(*packets.Publish) []packets.Packet { return disconnect(0x8b, "bye "+canary) }, "the server ended the connection: server shutting down (0x8b): bye ***"},
		{"another of the same name", func(*packets.Publish) []packets.Packet { return disconnect(0x8e, "") }, "give each its own"},
		{"no word", func(*packets.Publish) []packets.Packet { return nil }, "the server hung up"},
		{"messages for us", func(*packets.Publish) []packets.Packet {
			return []packets.Packet{&packets.Publish{Topic: "a", Properties: &packets.Properties{}}}
		}, "it publishes to us"},
	} {
		ms := sinktest.Messages(0, 4)
		broken := true
		var mu sync.Mutex
		s := newFake(t, &fake{on: func(p *packets.Publish) []packets.Packet {
			mu.Lock()
			defer mu.Unlock()
			if broken && id(p) == ms[1].ID {
				broken = false
				return tc.on(p)
			}
			return ack(p, 0)
		}})
		acked := 0
		check(t, tc.why, s.try(t, ms, &acked), tc.want)
		if acked != 1 {
			t.Errorf("%s: acknowledged %d, want what was answered before", tc.why, acked)
		}
		if err := s.try(t, ms, &acked); err != nil || acked != len(ms) {
			t.Errorf("%s: acknowledged %d afterwards, %v", tc.why, acked, err)
		}
	}
}

// TestFakeHint: a single message on which the server hangs up is not cut, and the error says what to do.
func TestFakeHint(t *testing.T) {
	s := newFake(t, &fake{on: func(*packets.Publish) []packets.Packet { return nil }})
	_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	check(t, "alone", err, "set the sink's maxBytes")
	var long *sink.TooLargeError
	if errors.As(err, &long) {
		t.Errorf("a message is cut on a guess: %v", err)
	}
}

// TestSize checks the computed size of a packet at each length of the length field.
func TestSize(t *testing.T) {
	for _, n := range []int{0, 10, 100, 200, 16_300, 16_400, 2_097_100, 2_097_200} {
		p := &packets.Publish{Topic: "a/b", QoS: 1, Payload: make([]byte, n), Properties: &packets.Properties{}}
		var written countWriter
		if _, err := p.WriteTo(&written); err != nil || size(p) != int(written) {
			t.Errorf("%d bytes of payload: reckoned %d, written %d, %v", n, size(p), written, err)
		}
	}
}

type countWriter int

func (w *countWriter) Write(b []byte) (int, error) {
	*w += countWriter(len(b))
	return len(b), nil
}

// TestKeepAlive checks that a silent connection gets pings, and ends if the server does not answer.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		pings := 0
		go func() {
			defer theirs.Close()
			for {
				p, err := packets.ReadPacket(theirs)
				if err != nil {
					return
				}
				var answer io.WriterTo
				switch {
				case p.Type == packets.CONNECT:
					answer = &packets.Connack{Properties: &packets.Properties{}}
				case p.Type != packets.PINGREQ:
					t.Errorf("%v, want a ping", p)
					return
				case pings == 5:
					continue
				default:
					pings++
					answer = packets.NewControlPacket(packets.PINGRESP)
				}
				if _, err := answer.WriteTo(theirs); err != nil {
					return
				}
			}
		}()
		s, err := New("tattler/test", Options{URL: "mqtt://h", Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.login(t.Context(), ours, ours)
		if err != nil {
			t.Fatal(err)
		}
		<-l.done
		check(t, "no answer", l.err, "the server did not answer a ping within 15s")
		if pings != 5 {
			t.Errorf("%d pings were answered", pings)
		}
		if err := l.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
