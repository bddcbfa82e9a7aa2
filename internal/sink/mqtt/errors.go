package mqtt

import (
	"errors"
	"fmt"

	"github.com/eclipse/paho.golang/packets"

	"github.com/tattler-dev/tattler/internal/sink"
)

// reasons are the names of reason codes in MQTT 5.0, 2.4.
var reasons = map[byte]string{
	0x00: "normal disconnection",
	0x80: "unspecified error",
	0x81: "malformed packet",
	0x82: "protocol error",
	0x83: "implementation specific error",
	0x84: "unsupported protocol version",
	0x85: "client identifier not valid",
	0x86: "bad user name or password",
	0x87: "not authorized",
	0x88: "server unavailable",
	0x89: "server busy",
	0x8a: "banned",
	0x8b: "server shutting down",
	0x8c: "bad authentication method",
	0x8d: "keep alive timeout",
	0x8e: "session taken over",
	0x90: "topic name invalid",
	0x91: "packet identifier in use",
	0x93: "receive maximum exceeded",
	0x94: "topic alias invalid",
	0x95: "packet too large",
	0x96: "message rate too high",
	0x97: "quota exceeded",
	0x98: "administrative action",
	0x99: "payload format invalid",
	0x9a: "retain not supported",
	0x9b: "QoS not supported",
	0x9c: "use another server",
	0x9d: "server moved",
	0x9f: "connection rate exceeded",
	0xa0: "maximum connect time",
}

// The codes with which a server of MQTT 3 refuses one that speaks MQTT 5, and who we are.
const (
	oldVersion       = 0x01
	oldBadUser       = 0x04
	oldNotAuthorized = 0x05
)

// said is a reason code and what the server added.
func (s *Sink) said(code byte, p *packets.Properties) string {
	name, known := reasons[code]
	if !known {
		name = "a reason that is not in MQTT 5"
	}
	text := fmt.Sprintf("%s (0x%02x)", name, code)
	if p == nil {
		return text
	}
	if more := s.blot.Excerpt([]byte(p.ReasonString)); more != "" {
		text += ": " + more
	}
	if other := s.blot.Excerpt([]byte(p.ServerReference)); other != "" {
		text += ": the server names " + other
	}
	return text
}

// unwelcome is about a server that does not want us.
func (s *Sink) unwelcome(c *packets.Connack) error {
	switch c.ReasonCode {
	case oldVersion:
		return errors.New("the server speaks no MQTT 5, which is needed")
	case oldBadUser, oldNotAuthorized:
		return errors.New("the server refuses the user, and seems to speak no MQTT 5, which is needed")
	}
	text := s.said(c.ReasonCode, c.Properties)
	switch c.ReasonCode {
	case packets.ConnackUnsupportedProtocolVersion:
		text += "; MQTT 5 is needed"
	case packets.ConnackInvalidClientID:
		text += "; set clientId to a name that the server takes"
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized:
		text += "; check user, password, the certificate and clientId"
	}
	return fmt.Errorf("the server refuses the connection: %s", text)
}

// refused is why a message was not taken; nil where it was.
func (s *Sink) refused(a *packets.Puback, m sink.Message) error {
	if a.ReasonCode < 0x80 { // also 0x10: nobody has subscribed
		return nil
	}
	topic, _ := s.topic.Of(m.Event) // it could be made
	err := fmt.Errorf("the server refuses the message for topic %s: %s", topic, s.said(a.ReasonCode, a.Properties))
	switch a.ReasonCode {
	case packets.PubackNotAuthorized:
		return fmt.Errorf("%w; the user needs the right to publish to the topic", err)
	case packets.PubackTopicNameInvalid:
		if s.fixed { // it is the configuration's, and refused with every message
			return fmt.Errorf("%w; set topic to one that the server takes", err)
		}
		return &sink.PermanentError{Err: err}
	case packets.PubackPayloadFormatInvalid:
		return &sink.PermanentError{Err: err}
	}
	return err
}

// disconnected is the server's last word.
type disconnected struct {
	code byte
	text string
}

func (d *disconnected) Error() string { return "the server ended the connection: " + d.text }

func (s *Sink) disconnected(d *packets.Disconnect) error {
	text := s.said(d.ReasonCode, d.Properties)
	switch d.ReasonCode {
	case packets.DisconnectSessionTakenOver:
		text += "; another connection has the same clientId: give each its own, or none"
	case packets.DisconnectNotAuthorized:
		text += "; the user needs the right to publish to the topic"
	}
	return &disconnected{code: d.ReasonCode, text: text}
}
