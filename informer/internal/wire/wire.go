// Package wire cuts the responses of a Kubernetes API server into objects, without decoding them.
//
// It reads list bodies and watch streams, in JSON or protobuf, through a window that holds one object, never
// the whole. A shallow walk reads each object's key, UID and version on the way.
//
//   - The bytes of an Object are valid until the next call of Next.
//   - JSON's syntax is checked throughout, so that stored objects can be decoded later. In protobuf, the
//     contents of the fields of metadata and of the object are not checked: a decoder may refuse them.
//   - Invalid UTF-8 is passed on, since encoding/json and the generated decoders accept it.
//   - If a protobuf field occurs twice, the last one counts, as for the decoders. JSON decoders disagree; an
//     object where that matters here is refused.
package wire

import (
	"errors"
	"fmt"
)

// Meta is the part of an object's metadata that the shallow walk reads.
type Meta struct {
	Namespace, Name, UID, ResourceVersion string
	// Typed is true if the server sent apiVersion and kind: within JSON, in the envelope of protobuf.
	Typed bool
}

// Object is one object of a list or a watch.
type Object struct {
	Meta
	Format Format
	// Raw is the object in its format. It is valid until the next call of Next and must not be modified. JSON
	// contains apiVersion and kind if the object is Typed; protobuf is the bare message.
	Raw []byte
	// TypeFromList is true if the item has no apiVersion and kind and they were copied from the list.
	TypeFromList bool
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	ResourceVersion string
	// Continue asks for the next page; empty on the last one.
	Continue string
}

// The types of a watch event.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	// Bookmark carries an object with only a resource version (and annotations).
	Bookmark = "BOOKMARK"
	// Error carries a metav1.Status: see DecodeStatus.
	Error = "ERROR"
)

// Event is one frame of a watch.
type Event struct {
	Type string
	Object
	// InitialEnd marks the bookmark that ends the initial events of a streaming list.
	InitialEnd bool
}

// initialEnd is the annotation of that bookmark; its value is "true".
//
// Source: k8s.io/apimachinery/pkg/apis/meta/v1, InitialEventsAnnotationKey.
const initialEnd = "k8s.io/initial-events-end"

// flaw returns the reason if the event is invalid, or "".
func (ev *Event) flaw() string {
	switch ev.Type {
	case Added, Modified, Deleted:
		if ev.Name == "" {
			return "an event's object without metadata.name"
		}
	case Bookmark:
		if ev.ResourceVersion == "" {
			return "a bookmark without a version"
		}
	case Error:
		if len(ev.Raw) == 0 {
			return "an error event without a status"
		}
	default:
		return "unknown event type " + quote(ev.Type)
	}
	return ""
}

// known returns the type and metadata of an unreadable event, as far as it is known which object it is about.
func (ev *Event) known() Event {
	if ev.Name == "" || ev.Type != Added && ev.Type != Modified && ev.Type != Deleted {
		return Event{}
	}
	return Event{Type: ev.Type, Object: Object{Meta: ev.Meta}}
}

// eventTypeOf does not allocate for known types.
func eventTypeOf(b []byte) string {
	for _, t := range [...]string{Added, Modified, Deleted, Bookmark, Error} {
		if string(b) == t {
			return t
		}
	}
	return string(b)
}

// same does not allocate if b equals the last value: objects of a namespace follow each other.
func same(last string, b []byte) string {
	if string(b) == last {
		return last
	}
	return string(b)
}

// SyntaxError reports input that is not valid JSON or protobuf. The start of the next object is unknown after
// it.
type SyntaxError struct {
	Format Format
	Offset int64 // in bytes, of the body
	Msg    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("read %s: byte %d: %s", e.Format, e.Offset, e.Msg)
}

// TooLargeError reports an object that exceeds the limit.
type TooLargeError struct{ Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("read object: larger than %d bytes", e.Limit)
}

// ObjectError reports a well-formed value that is not a usable object, or a broken one whose end is known.
// Reading can continue after it.
type ObjectError struct{ Msg string }

func (e *ObjectError) Error() string { return "read object: " + e.Msg }

// Unreadable reports whether err is the fault of the bytes that the server sent, rather than the connection's.
// A premature end is the connection's.
func Unreadable(err error) bool {
	var syntax *SyntaxError
	var large *TooLargeError
	var object *ObjectError
	return errors.As(err, &syntax) || errors.As(err, &large) || errors.As(err, &object)
}
