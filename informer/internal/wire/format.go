package wire

import (
	"fmt"
	"io"
)

// Format is how an object's bytes are to be read.
type Format uint8

// The formats. Protobuf is the bare message, without the envelope that names its kind.
const (
	JSON Format = 1 + iota
	Protobuf
)

func (f Format) String() string {
	switch f {
	case JSON:
		return "JSON"
	case Protobuf:
		return "protobuf"
	}
	return fmt.Sprintf("format %d", uint8(f))
}

// List cuts the body of a list into its items.
type List interface {
	// Next returns the next item, or io.EOF behind the last one. After an *ObjectError, beside which
	// the object has the metadata that could be read, the next call goes on behind the bad item; any
	// other error is final.
	Next() (Object, error)
	// Meta is the list's metadata: complete once Next has returned io.EOF, and as far as it was
	// read before.
	Meta() ListMeta
	// Kind is what the list says it is, as far as it was read.
	Kind() (apiVersion, kind string)
}

// Watch cuts a watch stream into events.
type Watch interface {
	// Next returns the next event, and io.EOF where the stream ends between frames;
	// io.ErrUnexpectedEOF is an end within one. After an error for which Unreadable is true, the
	// next call goes on at the next frame that can be made out. Beside an *ObjectError, the event has
	// its type and the object's metadata, where both could be read, and nothing else.
	Next() (Event, error)
}

// NewList reads a list from body, which stays the caller's to close.
func NewList(f Format, body io.Reader) List {
	if f == Protobuf {
		return newProtoList(body)
	}
	return newJSONList(body)
}

// NewWatch reads a watch stream from body, which stays the caller's to close.
func NewWatch(f Format, body io.Reader) Watch {
	if f == Protobuf {
		return newProtoWatch(body)
	}
	return newJSONWatch(body)
}

// ReadMeta reads an object's metadata.
func ReadMeta(f Format, raw []byte) (Meta, error) {
	read := jsonMeta
	if f == Protobuf {
		read = protoMeta
	}
	m, err := read(raw, "")
	if err != nil {
		return Meta{}, err
	}
	return m, nil
}

// ReadLabels yields an object's labels until yield returns false. The slices are valid until then,
// and are not to be written to. Bytes that Next handed out have been checked; of others, nothing
// behind the metadata is.
func ReadLabels(f Format, raw []byte, yield func(key, value []byte) bool) error {
	if f == Protobuf {
		return protoLabels(raw, yield)
	}
	return jsonLabels(raw, yield)
}

// Fingerprint tells which objects of one kind look alike, by what made them: it is made of the kind
// of the controlling owner and, as far as there is one, of the application that the labels name;
// else of generateName; else of the size. It is the same in every process, and false is returned
// where the bytes cannot be read.
func Fingerprint(f Format, raw []byte) (sum uint64, ok bool) {
	var s shape
	if f == Protobuf {
		s, ok = protoShape(raw)
	} else {
		s, ok = jsonShape(raw)
	}
	return s.sum(len(raw)), ok
}

// DropManagedFields returns a copy of an object without metadata.managedFields. Where there are
// none, or the bytes cannot be read, it is raw itself.
func DropManagedFields(f Format, raw []byte) []byte {
	if f == Protobuf {
		return protoDropManaged(raw)
	}
	return jsonDropManaged(raw)
}
