package wire

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// protoList cuts the body of a protobuf list into its items.
//
// The body is an envelope around a list message. The kind must precede the list, as every API server writes it:
// it distinguishes lists from other objects, and decides which of two layouts the list has. Lengths precede
// values, so a broken item does not hide the next one.
type protoList struct {
	w          window
	at         protoPlace
	apiVersion string
	kind       string
	end        int64 // the offset of the end of the list message
	// Field numbers of the list message.
	itemsField, metaField protowire.Number
	listMeta              ListMeta
	namespace             string // of the last item
}

// largeHead is the number of bytes read of an object that is too large.
const largeHead = 1 << 20

// protoPlace is the reader's position in the body.
type protoPlace int

const (
	atPrefix protoPlace = iota
	inEnvelope
	inList
	afterList // in the envelope again
)

func newProtoList(body io.Reader) *protoList {
	return &protoList{w: newWindow(body, listWindow)}
}

// Meta implements List.
func (l *protoList) Meta() ListMeta { return l.listMeta }

// Kind implements List.
func (l *protoList) Kind() (apiVersion, kind string) { return l.apiVersion, l.kind }

// Next implements List.
func (l *protoList) Next() (Object, error) {
	for {
		var err error
		switch l.at {
		case atPrefix:
			err = l.prefix()
		case inEnvelope, afterList:
			err = l.envelope()
		case inList:
			if l.w.offset() == l.end {
				l.at = afterList
				continue
			}
			var size int64
			if size, err = l.field(); size >= 0 {
				return l.item(size)
			}
		}
		if err != nil {
			return Object{}, err
		}
	}
}

func (l *protoList) prefix() error {
	for i := range len(protoPrefix) {
		if err := l.w.need(i + 1); err != nil {
			return err
		}
		if l.w.buf[l.w.pos+i] != protoPrefix[i] {
			return l.syntax("not Kubernetes protobuf")
		}
	}
	l.w.pos += len(protoPrefix)
	l.at = inEnvelope
	return nil
}

// envelope reads one field of the envelope, or enters the list.
func (l *protoList) envelope() error {
	if _, err := l.w.peek(); err != nil {
		if l.at == afterList {
			return err // io.EOF is expected
		}
		return inside(err)
	}
	num, typ, n, err := l.tag(math.MaxInt64)
	switch {
	case err != nil:
		return err
	case num <= unknownContentType && typ != protowire.BytesType:
		return l.syntax("wrong wire type")
	case num != unknownTypeMeta && num != unknownRaw:
		return l.w.skip(n)
	case l.at == afterList:
		return l.syntax("a second list, or a kind after the list")
	case num == unknownTypeMeta:
		return l.typeMeta(n)
	}
	return l.begin(n)
}

// begin enters the list message, which has n bytes.
func (l *protoList) begin(n int64) error {
	if !strings.HasSuffix(l.kind, "List") {
		return l.syntax("not a list: kind " + quote(l.kind))
	}
	l.metaField, l.itemsField = 1, 2
	if l.kind == "PartialObjectMetadataList" && l.apiVersion == "meta.k8s.io/v1beta1" {
		l.metaField, l.itemsField = 2, 1
	}
	l.end = l.w.offset() + n
	l.at = inList
	return nil
}

func (l *protoList) typeMeta(n int64) error {
	b, err := l.w.take(n)
	if err != nil {
		return err
	}
	var e envelope
	if bad := e.typeMeta(b); bad != "" {
		return l.syntax("kind: " + bad)
	}
	if e.kind != nil {
		l.kind = string(e.kind)
	}
	if e.apiVersion != nil {
		l.apiVersion = string(e.apiVersion)
	}
	return nil
}

// field reads one field of the list. For an item it returns the size and leaves the value unread; otherwise it
// returns -1.
func (l *protoList) field() (item int64, err error) {
	num, typ, n, err := l.tag(l.end)
	if err != nil {
		return -1, err
	}
	switch {
	case num != l.itemsField && num != l.metaField:
		return -1, l.w.skip(n)
	case typ != protowire.BytesType:
		return -1, l.syntax("wrong wire type")
	case num == l.itemsField:
		return n, nil
	}
	b, err := l.w.take(n)
	if err != nil {
		return -1, err
	}
	return -1, l.metadata(b)
}

func (l *protoList) metadata(b []byte) error {
	m := message{rest: b}
	for m.next() {
		switch m.num {
		case listSelfLink:
			m.bytes()
		case listRemaining:
			m.varints()
		case listResourceVersion:
			if m.bytes() {
				l.listMeta.ResourceVersion = string(m.val)
			}
		case listContinue:
			if m.bytes() {
				l.listMeta.Continue = string(m.val)
			}
		}
	}
	if m.bad != "" {
		return l.syntax("metadata of the list: " + m.bad)
	}
	return nil
}

// item reads an object of size bytes.
func (l *protoList) item(size int64) (Object, error) {
	limit := int64(l.w.limit)
	if size > limit {
		return l.tooLarge(size, min(limit, largeHead))
	}
	raw, err := l.w.take(size)
	if err != nil {
		return Object{}, err
	}
	return l.object(raw)
}

// tooLarge skips an object above the limit. Metadata comes first, so its first bytes identify it.
func (l *protoList) tooLarge(size, first int64) (Object, error) {
	head, err := l.w.take(first)
	if err != nil {
		return Object{}, err
	}
	m, _ := protoMeta(head, l.namespace) // the error only reports the cut
	if err := l.w.skip(size - first); err != nil {
		return Object{}, err
	}
	return Object{Meta: m}, &ObjectError{Msg: fmt.Sprintf("larger than %d bytes", l.w.limit)}
}

func (l *protoList) object(raw []byte) (Object, error) {
	m, err := protoMeta(raw, l.namespace)
	if err == nil && m.Name == "" {
		err = errors.New("an item without metadata.name")
	}
	if err != nil {
		return Object{Meta: m}, &ObjectError{Msg: err.Error()}
	}
	l.namespace = m.Namespace
	m.Typed = true
	return Object{Meta: m, Format: Protobuf, Raw: raw}, nil
}

// tag reads a field's number and type, and the size of its value, which must end at or before the offset end.
func (l *protoList) tag(end int64) (num protowire.Number, typ protowire.Type, n int64, err error) {
	tag, err := l.varint()
	if err != nil {
		return 0, 0, 0, err
	}
	num, typ = protowire.DecodeTag(tag)
	var size uint64
	switch {
	case num < protowire.MinValidNumber:
		return 0, 0, 0, l.syntax("field number out of range")
	case typ == protowire.VarintType:
		_, err = l.varint()
	case typ == protowire.BytesType:
		size, err = l.varint()
	case typ == protowire.Fixed32Type:
		size = 4
	case typ == protowire.Fixed64Type:
		size = 8
	default:
		err = l.syntax(fmt.Sprintf("wire type %d", typ))
	}
	if err != nil {
		return 0, 0, 0, err
	}
	if at := l.w.offset(); at > end || size > uint64(end-at) {
		return 0, 0, 0, l.syntax("field is longer than its message")
	}
	return num, typ, int64(size), nil
}

func (l *protoList) varint() (uint64, error) {
	for {
		v, n := protowire.ConsumeVarint(l.w.buf[l.w.pos:])
		if n >= 0 {
			l.w.pos += n
			return v, nil
		}
		if !errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
			return 0, l.syntax("number does not end")
		}
		if err := l.w.more(); err != nil {
			return 0, inside(err)
		}
	}
}

func (l *protoList) syntax(msg string) error {
	return &SyntaxError{Format: Protobuf, Offset: l.w.offset(), Msg: msg}
}
