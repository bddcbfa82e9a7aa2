package mqtt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/tattler-dev/tattler/internal/sink"
)

// name returns the name of a reason code; the client's texts begin with it.
func name(code byte) string {
	for _, p := range []interface{ Reason() string }{
		&packets.Connack{ReasonCode: code}, &packets.Pubrec{ReasonCode: code}, &packets.Disconnect{ReasonCode: code},
	} {
		if name, _, found := strings.Cut(p.Reason(), " - "); found {
			return strings.ToLower(name)
		}
	}
	return "a reason unknown to MQTT 5"
}

// Codes of a server that speaks only MQTT 3 and refuses our user.
const (
	oldBadUser       = 0x04
	oldNotAuthorized = 0x05
)

// said describes a reason code and the server's additions to it.
func (s *Sink) said(code byte, reason, reference string) string {
	text := fmt.Sprintf("%s (0x%02x)", name(code), code)
	if more := s.mask.Excerpt([]byte(reason)); more != "" {
		text += ": " + more
	}
	if other := s.mask.Excerpt([]byte(reference)); other != "" {
		text += ": the server refers to " + other
	}
	return text
}

// oldAnswer describes the CONNACK of a server that speaks an older MQTT.
func oldAnswer(code byte) error {
	if code == oldBadUser || code == oldNotAuthorized {
		return errors.New("the server refuses the user, and does not seem to speak MQTT 5, which the sink needs")
	}
	return errors.New("the server does not speak MQTT 5, which the sink needs")
}

// unwelcome describes a refused connection.
func (s *Sink) unwelcome(c *paho.Connack) error {
	text := s.said(c.ReasonCode, c.Properties.ReasonString, c.Properties.ServerReference)
	switch c.ReasonCode {
	case packets.ConnackUnsupportedProtocolVersion:
		text += "; the sink needs MQTT 5"
	case packets.ConnackInvalidClientID:
		text += "; set clientId to a name that the server accepts"
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized:
		text += "; check user, password, the certificate and clientId"
	}
	return fmt.Errorf("the server refuses the connection: %s", text)
}

// refused returns why the server did not take a message, or nil if it did.
func (s *Sink) refused(a *packets.Puback, m sink.Message) error {
	if a.ReasonCode < 0x80 { // including 0x10: no subscribers
		return nil
	}
	topic, _ := s.topic.Of(m.Event) // the message was sent, so it has a topic
	err := fmt.Errorf("the server refuses the message for topic %s: %s", topic, s.said(a.ReasonCode, a.Properties.ReasonString, ""))
	switch a.ReasonCode {
	case packets.PubackNotAuthorized:
		return fmt.Errorf("%w; the user needs the right to publish to the topic", err)
	case packets.PubackTopicNameInvalid:
		if s.fixed { // every message has this topic
			return fmt.Errorf("%w; set topic to one that the server accepts", err)
		}
		return &sink.PermanentError{Err: err}
	case packets.PubackPayloadFormatInvalid:
		return &sink.PermanentError{Err: err}
	}
	return err
}

// disconnected is the error of a connection that the server ended with a reason.
type disconnected struct {
	code byte
	text string
}

func (d *disconnected) Error() string { return "the server ended the connection: " + d.text }

// ended reports whether a server ended the connection with a reason code.
func ended(err error, code byte) bool {
	var d *disconnected
	return errors.As(err, &d) && d.code == code
}

func (s *Sink) disconnected(d *paho.Disconnect) error {
	text := s.said(d.ReasonCode, d.Properties.ReasonString, d.Properties.ServerReference)
	switch d.ReasonCode {
	case packets.DisconnectSessionTakenOver:
		text += "; another connection has the same clientId: give each its own, or leave it out"
	case packets.DisconnectNotAuthorized:
		text += "; the user needs the right to publish to the topic"
	}
	return &disconnected{code: d.ReasonCode, text: text}
}
