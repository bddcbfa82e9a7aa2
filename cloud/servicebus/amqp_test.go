package servicebus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// The parts of AMQP 1.0 (OASIS, parts 1 to 3 and 5) that azservicebus needs: frames, and those values that the fake
// reads. It passes other values on unchanged.

// The codes of performatives and states.
const (
	open        = 0x10
	begin       = 0x11
	attach      = 0x12
	flow        = 0x13
	transfer    = 0x14
	disposition = 0x15
	detach      = 0x16
	end         = 0x17
	closing     = 0x18
	accepted    = 0x24
	rejected    = 0x25
	failure     = 0x1d
	mechanisms  = 0x40
	saslInit    = 0x41
	outcome     = 0x44
)

// value is an encoded value.
type value []byte

// nothing is an encoded null.
var nothing = value{0x40}

func boolean(b bool) value {
	if b {
		return value{0x41}
	}
	return value{0x42}
}

func uint32of(n uint32) value { return binary.BigEndian.AppendUint32(value{0x70}, n) }

func uint64of(n uint64) value { return binary.BigEndian.AppendUint64(value{0x80}, n) }

func uint16of(n uint16) value { return binary.BigEndian.AppendUint16(value{0x60}, n) }

func text(s string) value { return sized(0xb1, []byte(s)) }

func symbol(s string) value { return sized(0xb3, []byte(s)) }

func binaryOf(b []byte) value { return sized(0xb0, b) }

func sized(code byte, b []byte) value {
	return append(binary.BigEndian.AppendUint32(value{code}, uint32(len(b))), b...)
}

// described is a list with a descriptor: a performative, or a state.
func described(code byte, fields ...value) value {
	body := binary.BigEndian.AppendUint32(nil, uint32(len(fields)))
	for _, f := range fields {
		body = append(body, f...)
	}
	return append(value{0x00, 0x53, code}, sized(0xd0, body)...)
}

// cut splits off the first value.
func cut(b []byte) (value, []byte, error) {
	n, err := length(b)
	if err != nil || n > len(b) {
		return nil, nil, fmt.Errorf("a value of %d bytes in %d: %w", n, len(b), errors.Join(err, io.ErrUnexpectedEOF))
	}
	return b[:n], b[n:], nil
}

// length returns the length of the first value: the high half of its code determines it (part 1, 1.2).
func length(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	switch b[0] >> 4 {
	case 0x0: // a descriptor and a value
		descriptor, err := length(b[1:])
		if err != nil || 1+descriptor > len(b) {
			return 0, io.ErrUnexpectedEOF
		}
		described, err := length(b[1+descriptor:])
		return 1 + descriptor + described, err
	case 0x4:
		return 1, nil
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		return 1 + 1<<(b[0]>>4-5), nil
	case 0xa, 0xc, 0xe:
		if len(b) > 1 {
			return 2 + int(b[1]), nil
		}
	case 0xb, 0xd, 0xf:
		if len(b) > 4 {
			return 5 + int(binary.BigEndian.Uint32(b[1:])), nil
		}
	}
	return 0, fmt.Errorf("a value with the code %#x, which ends", b[0])
}

// number returns the value of a uint.
func (v value) number() uint32 {
	switch {
	case len(v) == 2 && v[0] == 0x52:
		return uint32(v[1])
	case len(v) == 5 && v[0] == 0x70:
		return binary.BigEndian.Uint32(v[1:])
	}
	return 0
}

// truth returns the value of a boolean.
func (v value) truth() bool {
	return len(v) > 0 && (v[0] == 0x41 || len(v) == 2 && v[0] == 0x56 && v[1] == 1)
}

// bytes returns the value of a string, a symbol or a binary.
func (v value) bytes() []byte {
	switch {
	case len(v) > 1 && v[0]>>4 == 0xa:
		return v[2:]
	case len(v) > 4 && v[0]>>4 == 0xb:
		return v[5:]
	}
	return nil
}

// list splits a described list.
func list(v value) (code byte, fields []value, err error) {
	if len(v) < 4 || v[0] != 0 || v[1] != 0x53 {
		return 0, nil, fmt.Errorf("% x is no performative", v[:min(len(v), 8)])
	}
	code, body := v[2], []byte(v[3:])
	switch {
	case body[0] == 0x45:
		return code, nil, nil
	case body[0] == 0xc0 && len(body) > 2:
		body = body[3:]
	case body[0] == 0xd0 && len(body) > 8:
		body = body[9:]
	default:
		return 0, nil, fmt.Errorf("performative %#x is no list", code)
	}
	for len(body) > 0 {
		var f value
		if f, body, err = cut(body); err != nil {
			return 0, nil, err
		}
		fields = append(fields, f)
	}
	return code, fields, nil
}

// frame is a performative on its channel, and its payload.
type frame struct {
	channel uint16
	code    byte
	fields  []value
	payload []byte
}

// field returns the i-th field, or null.
func (f frame) field(i int) value {
	if i < len(f.fields) {
		return f.fields[i]
	}
	return nothing
}

// readFrame reads a frame. It skips empty ones, which only keep the connection alive.
func readFrame(conn net.Conn) (frame, error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return frame{}, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size < 8 || size > 1<<20 || head[4] != 2 {
			return frame{}, fmt.Errorf("a frame begins % x", head)
		}
		body := make([]byte, size-8)
		if _, err := io.ReadFull(conn, body); err != nil {
			return frame{}, err
		}
		if len(body) == 0 {
			continue
		}
		performative, payload, err := cut(body)
		if err != nil {
			return frame{}, err
		}
		code, fields, err := list(performative)
		return frame{binary.BigEndian.Uint16(head[6:]), code, fields, payload}, err
	}
}

// writeFrame writes a frame. Kind is 0 for AMQP and 1 for SASL.
func writeFrame(conn net.Conn, kind byte, channel uint16, performative value, payload []byte) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(performative)+len(payload)))
	b = append(b, 2, kind)
	b = binary.BigEndian.AppendUint16(b, channel)
	b = append(append(b, performative...), payload...)
	_, err := conn.Write(b)
	return err
}

// shake performs the handshake: SASL without a user, then AMQP.
func shake(conn net.Conn) error {
	if err := protocol(conn, 3); err != nil {
		return err
	}
	if err := writeFrame(conn, 1, 0, described(mechanisms, symbol("ANONYMOUS")), nil); err != nil {
		return err
	}
	if f, err := readFrame(conn); err != nil || f.code != saslInit {
		return fmt.Errorf("SASL: %#x: %w", f.code, err)
	}
	if err := writeFrame(conn, 1, 0, described(outcome, value{0x50, 0}), nil); err != nil {
		return err
	}
	return protocol(conn, 0)
}

// protocol exchanges the headers of a protocol.
func protocol(conn net.Conn, id byte) error {
	want := [8]byte{'A', 'M', 'Q', 'P', id, 1, 0, 0}
	var got [8]byte
	if _, err := io.ReadFull(conn, got[:]); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("protocol % x, want % x", got, want)
	}
	_, err := conn.Write(want[:])
	return err
}
