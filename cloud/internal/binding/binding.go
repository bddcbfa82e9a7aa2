// Package binding has the attributes of a message, for buses that support them: subscriptions can filter by them
// without reading bodies.
package binding

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tattler-dev/tattler/internal/sink"
)

// ContentType is the content type of a body: a CloudEvent in structured mode.
const ContentType = "application/cloudevents+json"

// Attributes returns content-type, ce-type, and the change's op, kind and namespace. Some buses reject empty values,
// so an object without a namespace has no such attribute.
func Attributes(m sink.Message) map[string]string {
	a := map[string]string{"content-type": ContentType, "ce-type": m.Event.Type}
	for name, value := range map[string]string{
		"op": string(m.Event.Data.Op), "kind": m.Event.Data.Resource.Kind, "namespace": m.Event.Data.Resource.Namespace,
	} {
		if value != "" {
			a[name] = value
		}
	}
	return a
}

// Key makes a bus's key from a message's key: printable ASCII of at most so many characters (64 or more). Another
// key, such as the path of a collection with a long name, is replaced by its hash.
func Key(key string, most int) string {
	fits := key != "" && len(key) <= most
	for i := range len(key) {
		fits = fits && key[i] > ' ' && key[i] < 0x7f
	}
	if fits {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
