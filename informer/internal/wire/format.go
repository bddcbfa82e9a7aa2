package wire

import (
	"fmt"
	"io"
)

// Format is the encoding of an object's bytes.
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
	// Next returns the next item, or io.EOF after the last one. An *ObjectError is not final: the object beside
	// it has the metadata that could be read, and the next call returns the item after it. Any other error is
	// final.
	Next() (Object, error)
	// Meta returns the list's metadata as far as it was read. It is complete once Next has returned io.EOF.
	Meta() ListMeta
	// Kind returns the apiVersion and kind of the list, as far as they were read.
	Kind() (apiVersion, kind string)
}

// Watch cuts a watch stream into events.
type Watch interface {
	// Next returns the next event. It returns io.EOF if the stream ends between frames and io.ErrUnexpectedEOF
	// if it ends within one. After an error for which Unreadable returns true, the next call continues at the
	// next recognizable frame. Beside an *ObjectError, the event has only its type and the object's metadata,
	// provided that both could be read.
	Next() (Event, error)
}

// NewList reads a list from body. The caller closes body.
func NewList(f Format, body io.Reader) List {
	if f == Protobuf {
		return newProtoList(body)
	}
	return newJSONList(body)
}

// NewWatch reads a watch stream from body. The caller closes body.
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

// ReadLabels yields an object's labels until yield returns false. The slices are valid only during the call and
// must not be modified. Bytes from Next have been checked; of other bytes, nothing after the metadata is
// checked.
func ReadLabels(f Format, raw []byte, yield func(key, value []byte) bool) error {
	if f == Protobuf {
		return protoLabels(raw, yield)
	}
	return jsonLabels(raw, yield)
}

// Fingerprint returns equal sums for objects of one kind that were probably made from one template. It hashes
// the kind of the controlling owner and the application named by the labels; without such labels, generateName;
// without that, the size. It is the same in every process. ok is false if the bytes cannot be read.
func Fingerprint(f Format, raw []byte) (sum uint64, ok bool) {
	var s shape
	if f == Protobuf {
		s, ok = protoShape(raw)
	} else {
		s, ok = jsonShape(raw)
	}
	return s.sum(len(raw)), ok
}

// DropManagedFields returns a copy of an object without metadata.managedFields. It returns raw itself if there
// is nothing to drop or the bytes cannot be read.
func DropManagedFields(f Format, raw []byte) []byte {
	if f == Protobuf {
		return protoDropManaged(raw)
	}
	return jsonDropManaged(raw)
}
