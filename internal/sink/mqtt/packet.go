package mqtt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
)

const contentType = "application/cloudevents+json"

// publication returns the packet of a message, without its number.
func (s *Sink) publication(m sink.Message) (*packets.Publish, error) {
	topic, err := s.topic.Of(m.Event)
	if err != nil {
		return nil, &sink.PermanentError{Err: fmt.Errorf("make topic: %w", err)}
	}
	utf8 := byte(1)
	p := &packets.Publish{
		Topic: topic, QoS: 1, Retain: s.o.Retain, Payload: m.Body,
		Properties: &packets.Properties{
			PayloadFormat: &utf8, ContentType: contentType,
			User: []packets.User{{Key: "id", Value: m.ID}, {Key: "key", Value: m.Key}},
		},
	}
	if s.o.Expiry > 0 {
		seconds := uint32(s.o.Expiry / time.Second) //nolint:gosec // Validate bounds it
		p.Properties.MessageExpiry = &seconds
	}
	return p, nil
}

// size returns the length of a packet on the wire, in bytes.
func size(p *packets.Publish) int {
	n := 0
	for _, b := range p.Buffers() {
		n += len(b)
	}
	head := 2
	for rest := n >> 7; rest > 0; rest >>= 7 {
		head++
	}
	return head + n
}

// errHungUp means that the server closed the connection without a reason.
var errHungUp = errors.New("the server hung up")

// plain replaces the various errors of a closed connection by errHungUp.
func plain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return errHungUp
	}
	return err
}

// readPacket reads a packet from an untrusted server. It limits the length, and passes the library a whole packet.
func readPacket(r *bufio.Reader) (packets.Packet, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	length := 0
	for shift := 0; ; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		if length |= int(b&0x7f) << shift; b < 0x80 {
			break
		}
		if shift == 21 {
			return nil, errors.New("malformed packet length")
		}
	}
	if length > maxAnswer {
		return nil, fmt.Errorf("a packet of %d bytes exceeds the limit of %d", length, maxAnswer)
	}
	body := make([]byte, length, length+1)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	return decode(kind>>4, body)
}

// decode decodes a packet. It adds optional fields that the library requires.
func decode(kind byte, body []byte) (packets.Packet, error) {
	switch {
	case kind == packets.DISCONNECT && len(body) == 0: // a normal disconnection
		body = append(body, packets.DisconnectNormalDisconnection)
	case kind == packets.CONNACK && len(body) == 2: // from a server that speaks MQTT 3
		body = append(body, 0)
	}
	cp := packets.NewControlPacket(kind)
	if cp == nil {
		return nil, fmt.Errorf("a packet of unknown type %d", kind)
	}
	if err := cp.Content.Unpack(bytes.NewBuffer(body)); err != nil {
		return nil, fmt.Errorf("a malformed %s: %w", cp.PacketType(), noEOF(err))
	}
	return cp.Content, nil
}

// noEOF distinguishes a packet that is too short from a connection that ended.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// nothing is an empty packet.
type nothing struct{}

func (nothing) Unpack(*bytes.Buffer) error       { return nil }
func (nothing) Buffers() net.Buffers             { return nil }
func (nothing) WriteTo(io.Writer) (int64, error) { return 0, nil }
