// Package wire cuts what a Kubernetes API server sends into objects, without decoding them.
//
// A list body and a watch stream, of JSON or protobuf, are read through a window that holds one
// object, never the whole; a shallow walk reads an object's key, UID and version on the way.
//
//   - The bytes of an Object are valid until the next call of Next.
//   - JSON's syntax is checked throughout, so that what is stored can be decoded later. Of protobuf,
//     what is within the fields of metadata and of the object is not: a decoder may refuse it.
//   - Invalid UTF-8 is passed on, as encoding/json and the generated decoders would accept it.
//   - Of a protobuf field that occurs twice the last one counts, as for the decoders. JSON's decoders
//     disagree: where that would matter here, the object is refused.
package wire

import (
	"errors"
	"fmt"
)

// Meta is what the shallow walk reads of an object's metadata.
type Meta struct {
	Namespace, Name, UID, ResourceVersion string
	// Typed is true where the server said what the apiVersion and kind are: in the bytes of JSON,
	// around those of protobuf.
	Typed bool
}

// Object is one object, cut out.
type Object struct {
	Meta
	Format Format
	// Raw is the object in its format: valid until the next call of Next, and not to be written to.
	// JSON has apiVersion and kind, if the object is Typed; protobuf is the bare message.
	Raw []byte
	// Lent is true where apiVersion and kind are those that the list says: the item itself has none.
	Lent bool
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

// flaw says what an event lacks, or nothing.
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

// known is what can be told of an event that cannot be read: which object it is about, if that is known.
func (ev *Event) known() Event {
	if ev.Name == "" || ev.Type != Added && ev.Type != Modified && ev.Type != Deleted {
		return Event{}
	}
	return Event{Type: ev.Type, Object: Object{Meta: ev.Meta}}
}

// eventTypeOf allocates nothing for the types that there are.
func eventTypeOf(b []byte) string {
	for _, t := range [...]string{Added, Modified, Deleted, Bookmark, Error} {
		if string(b) == t {
			return t
		}
	}
	return string(b)
}

// same allocates nothing where b is what the last one was: objects of a namespace follow each other.
func same(last string, b []byte) string {
	if string(b) == last {
		return last
	}
	return string(b)
}

// SyntaxError says that the input is not the JSON or protobuf that it should be. Where the next
// object begins is unknown after it.
type SyntaxError struct {
	Format Format
	Offset int64 // in bytes, of the body
	Msg    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("read %s: byte %d: %s", e.Format, e.Offset, e.Msg)
}

// TooLargeError says that an object exceeds the limit.
type TooLargeError struct{ Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("read object: larger than %d bytes", e.Limit)
}

// ObjectError says that a value is well-formed but no object that can be kept, or one whose inside
// is broken although its end is known. Reading may go on behind it.
type ObjectError struct{ Msg string }

func (e *ObjectError) Error() string { return "read object: " + e.Msg }

// Unreadable tells whether err blames the bytes that the server sent, rather than the connection.
// Bytes that end early are the connection's fault.
func Unreadable(err error) bool {
	var syntax *SyntaxError
	var large *TooLargeError
	var object *ObjectError
	return errors.As(err, &syntax) || errors.As(err, &large) || errors.As(err, &object)
}
