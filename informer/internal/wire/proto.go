package wire

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields that the walk reads.
//
// Source: the generated.proto files of k8s.io/apimachinery/pkg/runtime and
// k8s.io/apimachinery/pkg/apis/meta/v1.
const (
	objectMetadata = 1 // of every built-in kind that can be listed

	metaName            = 1
	metaGenerateName    = 2
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
	metaLabels          = 11
	metaAnnotations     = 12
	metaOwnerReferences = 13
	metaManagedFields   = 17

	ownerKind       = 1
	ownerController = 6

	entryKey   = 1 // of a map's entry
	entryValue = 2

	unknownTypeMeta        = 1
	unknownRaw             = 2
	unknownContentEncoding = 3
	unknownContentType     = 4

	typeAPIVersion = 1
	typeKind       = 2

	listSelfLink        = 1
	listResourceVersion = 2
	listContinue        = 3
	listRemaining       = 4

	eventType   = 1
	eventObject = 2

	extensionRaw = 1
)

// message walks over the fields of a protobuf message in memory, without looking into them:
//
//	m := message{rest: raw}
//	for m.next() {
//		switch m.num { … }
//	}
//	if m.bad != "" { … }
//
// It is stricter than the generated decoders of Kubernetes: it refuses groups, which no API has, field numbers
// beyond 32 bits, and varints beyond 64 bits.
type message struct {
	rest []byte // not read yet
	num  protowire.Number
	typ  protowire.Type
	val  []byte // the value of a length-delimited field
	n    uint64 // the value of a varint
	bad  string // the reason if the walk ended early
}

// next moves to the next field.
func (m *message) next() bool {
	if len(m.rest) == 0 || m.bad != "" {
		return false
	}
	tag, ok := m.varint()
	if !ok {
		return false
	}
	m.num, m.typ = protowire.DecodeTag(tag)
	if m.num < protowire.MinValidNumber {
		return m.fail("field number out of range")
	}
	switch m.typ {
	case protowire.BytesType:
		n, ok := m.varint()
		if !ok {
			return false
		}
		if n > uint64(len(m.rest)) {
			return m.fail("field is longer than its message")
		}
		m.val, m.rest = m.rest[:n:n], m.rest[n:]
		return true
	case protowire.VarintType:
		m.n, ok = m.varint()
		return ok
	case protowire.Fixed64Type:
		return m.fixed(8)
	case protowire.Fixed32Type:
		return m.fixed(4)
	case protowire.StartGroupType, protowire.EndGroupType:
		return m.fail("groups are not supported")
	}
	return m.fail("unknown wire type")
}

// bytes reports whether the field is length-delimited, and fails the walk if not.
func (m *message) bytes() bool {
	return m.typ == protowire.BytesType || m.fail("wrong wire type")
}

// varints reports whether the field is a varint, and fails the walk if not.
func (m *message) varints() bool {
	return m.typ == protowire.VarintType || m.fail("wrong wire type")
}

func (m *message) fail(msg string) bool {
	m.bad = msg
	return false
}

func (m *message) varint() (uint64, bool) {
	if len(m.rest) > 0 && m.rest[0] < 0x80 { // most are
		v := m.rest[0]
		m.rest = m.rest[1:]
		return uint64(v), true
	}
	v, n := protowire.ConsumeVarint(m.rest)
	if n < 0 {
		return 0, m.fail("number does not end")
	}
	m.rest = m.rest[n:]
	return v, true
}

func (m *message) fixed(n int) bool {
	if n > len(m.rest) {
		return m.fail("field is longer than its message")
	}
	m.rest = m.rest[n:]
	return true
}

// metaVarints has a bit for each varint field of ObjectMeta, metaBytes for each length-delimited one. A known
// field of another wire type cannot be decoded.
const (
	metaVarints = 1<<7 | 1<<10
	metaBytes   = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<8 | 1<<9 | 1<<11 | 1<<12 | 1<<13 | 1<<14 | 1<<17
)

// metaField checks the wire type of the current field of ObjectMeta.
func (m *message) metaField() bool {
	if m.num > metaManagedFields {
		return true
	}
	bit := uint32(1) << m.num
	if bit&metaBytes != 0 && m.typ != protowire.BytesType || bit&metaVarints != 0 && m.typ != protowire.VarintType {
		return m.fail("wrong wire type")
	}
	return true
}

// metadataWalk walks over the fields of an object's metadata and over the object's other fields. Like the
// generated decoders, it merges metadata that occurs twice.
type metadataWalk struct {
	message // the metadata
	object  message
	size    int // of the object, in bytes
}

func metadataOf(object []byte) metadataWalk {
	return metadataWalk{object: message{rest: object}, size: len(object)}
}

// next moves to the next field of the metadata.
func (w *metadataWalk) next() bool {
	for {
		if w.message.next() {
			return w.metaField()
		}
		if w.bad != "" || !w.object.next() {
			return false
		}
		if w.object.num == objectMetadata && w.object.bytes() {
			w.message = message{rest: w.object.val}
		}
	}
}

// err returns the error that ended the walk early.
func (w *metadataWalk) err() error {
	msg := w.object.bad
	if w.bad != "" {
		msg = "metadata: " + w.bad
	}
	if msg == "" {
		return nil
	}
	return &SyntaxError{Format: Protobuf, Offset: int64(w.size - len(w.object.rest)), Msg: msg}
}

// envelope is the wrapper of a protobuf object: a prefix, then a runtime.Unknown that names the kind.
type envelope struct {
	apiVersion, kind []byte
	raw              []byte // the object; nil if absent
}

// protoPrefix begins every envelope.
const protoPrefix = "k8s\x00"

// open reads an envelope.
func (e *envelope) open(b []byte) (bad string) {
	if !IsProtobuf(b) {
		return "object without its envelope"
	}
	m := message{rest: b[len(protoPrefix):]}
	for m.next() {
		switch m.num {
		case unknownTypeMeta:
			if m.bytes() {
				m.bad = e.typeMeta(m.val)
			}
		case unknownRaw:
			if m.bytes() {
				e.raw = m.val
			}
		case unknownContentEncoding, unknownContentType:
			m.bytes()
		}
	}
	return m.bad
}

func (e *envelope) typeMeta(b []byte) (bad string) {
	m := message{rest: b}
	for m.next() {
		switch m.num {
		case typeAPIVersion:
			if m.bytes() {
				e.apiVersion = m.val
			}
		case typeKind:
			if m.bytes() {
				e.kind = m.val
			}
		}
	}
	return m.bad
}

func (e *envelope) typed() bool { return len(e.apiVersion) > 0 && len(e.kind) > 0 }

// IsProtobuf reports whether b begins like a protobuf object in its envelope.
func IsProtobuf(b []byte) bool { return bytes.HasPrefix(b, []byte(protoPrefix)) }

// Unwrap returns the bare message of a protobuf object, which lies in b, and its kind.
func Unwrap(b []byte) (raw []byte, kind string, err error) {
	var e envelope
	if bad := e.open(b); bad != "" {
		return nil, "", &SyntaxError{Format: Protobuf, Msg: bad}
	}
	return e.raw, string(e.kind), nil
}
