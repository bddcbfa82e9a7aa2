package mqtt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/mqtt"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func newSink(t *testing.T, b *broker, o mqtt.Options) *mqtt.Sink {
	t.Helper()
	if o.URL == "" {
		o.URL = "mqtt://" + b.address()
	}
	s := rig.Must(mqtt.New("tattler/test", o))(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send sends, and checks the number of acknowledged messages and the text of the error, which must be temporary.
func send(t *testing.T, s *mqtt.Sink, ms []sink.Message, acked int, want string) {
	t.Helper()
	n, err := s.Send(t.Context(), ms)
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	if n != acked || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || errors.As(err, &permanent) || errors.As(err, &long) {
		t.Errorf("acknowledged %d, %v; want %d, %q", n, err, acked, want)
	}
}

func ids(ms []sink.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.ID)
	}
	return out
}

// arrived returns the ids of a server's messages.
func arrived(b *broker) []string {
	var out []string
	for _, pk := range b.messages() {
		out = append(out, property(pk, "id"))
	}
	return out
}

// TestMessage checks each part of a message and of the connection.
func TestMessage(t *testing.T) {
	b := start(t, &broker{})
	s := newSink(t, b, mqtt.Options{Topic: "k8s/{{.Data.Resource.Name}}/x", Retain: true, Expiry: time.Hour, ClientID: "tattler-1", User: "u", KeepAlive: 5 * time.Second})
	ms := sinktest.Messages(0, 1)
	ms[0].Event.Data.Resource.Name = "a/+/#\x00"
	send(t, s, ms, 1, "")
	pk := b.messages()[0]
	if pk.TopicName != "k8s/a_____/x" || pk.FixedHeader.Qos != 1 || !pk.FixedHeader.Retain || pk.Properties.MessageExpiryInterval != 3600 || string(pk.Payload) != string(ms[0].Body) {
		t.Errorf("%+v", pk)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.connects[0]
	if c.Connect.ClientIdentifier != "tattler-1" || !c.Connect.Clean || c.Connect.Keepalive != 5 || string(c.Connect.Username) != "u" || c.Connect.PasswordFlag || c.Properties.SessionExpiryInterval != 0 {
		t.Errorf("%+v", c)
	}
}

// TestRepeats: MQTT stores repeats; their id shows that they are the same.
func TestRepeats(t *testing.T) {
	b := start(t, &broker{})
	s := newSink(t, b, mqtt.Options{})
	ms := sinktest.Messages(0, 3)
	send(t, s, ms, 3, "")
	send(t, s, ms, 3, "")
	if got, want := arrived(b), append(ids(ms), ids(ms)...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRefusals checks that refused credentials and missing rights are temporary, and that no error shows a
// credential.
func TestRefusals(t *testing.T) {
	b := start(t, &broker{user: "tattler", password: "w0rd-of-mine"})
	ms := sinktest.Messages(0, 3)
	send(t, newSink(t, b, mqtt.Options{User: "tattler", Password: "another"}), ms, 0, "bad user name or password (0x86): bad username or password; check user, password")
	s := newSink(t, b, mqtt.Options{User: "tattler", Password: "w0rd-of-mine", Topic: "forbidden"})
	send(t, s, ms, 0, "the server refuses the message for topic forbidden: not authorized (0x87): not authorized; the user needs the right to publish to the topic")
	o := mqtt.Options{User: "tattler", Password: "w0rd-of-mine"}
	send(t, newSink(t, b, o), ms, 3, "")
	b.on(func(*server.Client, packets.Packet) error {
		return packets.Code{Code: 0x97, Reason: "too much of w0rd-of-mine"}
	})
	send(t, newSink(t, b, o), ms, 0, "quota exceeded (0x97): too much of ***")
	// TLS on one side only: both sides report what they see.
	plain := newSink(t, b, mqtt.Options{URL: "mqtts://" + b.address()})
	send(t, plain, ms, 0, "connect: TLS: ")
}

// TestAnnouncedSize checks the server's limit to the byte; nothing beyond it is sent.
func TestAnnouncedSize(t *testing.T) {
	const limit = 8 << 10
	b := start(t, &broker{
		// The server counts a packet without the bytes of its length field.
		configure: func(c *server.Capabilities) { c.MaximumPacketSize = limit - 2 },
		encode: func(pk packets.Packet) packets.Packet {
			if pk.FixedHeader.Type == packets.Connack { // the server supports the property, but does not set it
				pk.Properties.MaximumPacketSize = limit
			}
			return pk
		},
	})
	s := newSink(t, b, mqtt.Options{})
	ms := sinktest.Messages(0, 3)
	ms[1].Body = append(ms[1].Body, strings.Repeat(" ", limit)...)
	n, err := s.Send(t.Context(), ms)
	var long *sink.TooLargeError
	if n != 1 || !errors.As(err, &long) || long.Limit <= 0 || long.Limit >= limit {
		t.Fatalf("acknowledged %d, %v; want 1, and a limit below %d", n, err, limit)
	}
	ms[1].Body = ms[1].Body[:long.Limit]
	send(t, s, ms[1:], 2, "")
	ms[2].Body = append(ms[2].Body, strings.Repeat(" ", long.Limit+1-len(ms[2].Body))...)
	if _, err := s.Send(t.Context(), ms[2:]); !errors.As(err, &long) {
		t.Errorf("one byte more: %v", err)
	}
	if got, want := arrived(b), ids(ms); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestUnannouncedSize uses a server that reveals its limit only when a message is too long.
func TestUnannouncedSize(t *testing.T) {
	b := &broker{}
	b.publish = func(cl *server.Client, pk packets.Packet) error {
		if len(pk.Payload) < 4<<10 {
			return nil
		}
		b.mu.Lock()
		s := b.running
		b.mu.Unlock()
		_ = s.DisconnectClient(cl, packets.ErrPacketTooLarge) // it returns the code
		return packets.ErrRejectPacket
	}
	start(t, b)
	s := newSink(t, b, mqtt.Options{})
	ms := sinktest.Messages(0, 5)
	ms[2].Body = append(ms[2].Body, strings.Repeat(" ", 4<<10)...)
	acked := 0
	var long *sink.TooLargeError
	for tries := 0; long == nil; tries++ {
		n, err := s.Send(t.Context(), ms[acked:])
		acked += n
		if !errors.As(err, &long) && (tries == 5 || err == nil || !strings.Contains(err.Error(), "packet too large (0x95)")) {
			t.Fatalf("acknowledged %d, %v", acked, err)
		}
	}
	if acked != 2 || long.Limit != 0 {
		t.Errorf("acknowledged %d, limit %d; want 2 and none", acked, long.Limit)
	}
	ms[2].Body = ms[2].Body[:1<<10]
	send(t, s, ms[2:], 3, "")
}

// TestHangsUp: a server ends the connection for a long message without a reason. The message is not cut, because
// there may be other reasons; the error says what to do.
func TestHangsUp(t *testing.T) {
	b := start(t, &broker{configure: func(c *server.Capabilities) { c.MaximumPacketSize = 4 << 10 }})
	s := newSink(t, b, mqtt.Options{})
	ms := sinktest.Messages(0, 2)
	ms[0].Body = append(ms[0].Body, strings.Repeat(" ", 4<<10)...)
	send(t, s, ms[:1], 0, "the server hung up while a message of "+fmt.Sprint(len(ms[0].Body))+" bytes")
	send(t, s, ms[1:], 1, "")
}

// TestOneName: two connections with the same client id end each other, and the error says so.
func TestOneName(t *testing.T) {
	b := start(t, &broker{})
	one, two := newSink(t, b, mqtt.Options{ClientID: "tattler"}), newSink(t, b, mqtt.Options{ClientID: "tattler"})
	ms := sinktest.Messages(0, 1)
	send(t, one, ms, 1, "")
	send(t, two, ms, 1, "")
	_, err := one.Send(t.Context(), ms)
	if err == nil || !strings.Contains(err.Error(), "session taken over (0x8e)") || !strings.Contains(err.Error(), "give each its own") {
		t.Errorf("%v", err)
	}
	send(t, one, ms, 1, "")
}

// TestHangingServer checks that a server that does not answer is given up after the timeout, and tried again.
func TestHangingServer(t *testing.T) {
	b := start(t, &broker{})
	p := rig.NewProxy(t, b.address)
	ms := sinktest.Messages(0, 3)
	p.Behave(sinktest.Hangs)
	send(t, newSink(t, b, mqtt.Options{URL: "mqtt://" + p.Addr(), Timeout: time.Second}), ms, 0, "connect: no answer within 1s")
	p.Behave(sinktest.Down)
	p.Behave(sinktest.Works)
	patient := newSink(t, b, mqtt.Options{URL: "mqtt://" + p.Addr(), Timeout: time.Second})
	works := func() {
		t.Helper()
		sinktest.Until(t, func() error { // a busy machine may take longer than the timeout
			_, err := patient.Send(t.Context(), ms)
			return err
		})
	}
	works()
	p.Behave(sinktest.Hangs)
	send(t, patient, ms, 0, "no acknowledgement within 1s")
	p.Behave(sinktest.Down)
	p.Behave(sinktest.Works)
	works()
}
