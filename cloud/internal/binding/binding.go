// Package binding is what goes beside a body where a bus has attributes: what a subscription can filter by
// without reading bodies.
package binding

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tattler-dev/tattler/internal/sink"
)

// ContentType is that of a body: a CloudEvent in structured mode.
const ContentType = "application/cloudevents+json"

// Attributes are content-type and ce-type, and of the change op, kind and namespace. None is empty, which
// some buses do not take: what has no namespace has no such attribute.
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

// Key is a message's key as a bus takes it: at most so many (64 at least) of the characters of ASCII that are
// printed. Another, such as the path of a collection with a long name, becomes its hash.
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
