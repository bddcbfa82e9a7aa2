package clientgo

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

var metadataType = reflect.TypeFor[metav1.PartialObjectMetadata]()

// metadataCodec decodes metadata from the server's bytes: metadata alone, or a whole object.
func metadataCodec(f wire.Format, growth float64, parts *plans.Table) *codec {
	c := &codec{
		typ: metadataType, format: f, growth: growth,
		decode: func(raw []byte) (any, error) { return wire.DecodeMetadata(f, raw) },
	}
	switch shared := shareProtobuf(metadataType, parts); {
	case shared == nil:
	case f == wire.Protobuf:
		c.share, c.near = shared, nearProtobuf(metadataType, parts)
	default:
		c.share = shareJSONMetadata(shared)
	}
	return c
}

// shareJSONMetadata decodes JSON, encodes the result as protobuf, and decodes that with shared parts. Few servers
// send metadata as JSON, so it has no decoder of its own here. Metadata that protobuf cannot represent, such as an
// empty map of labels, shares nothing.
func shareJSONMetadata(shared func([]byte) (any, int64, bool)) func([]byte) (any, int64, bool) {
	exact := planOf(metadataType, true)
	return func(raw []byte) (any, int64, bool) {
		own, err := wire.DecodeMetadata(wire.JSON, raw)
		if err != nil || exact != nil && exact(reflect.ValueOf(own).UnsafePointer()) != same {
			return nil, 0, false
		}
		b := borrow()
		defer giveBack(b)
		if *b, err = appendProtobuf((*b)[:0], own); err != nil {
			return nil, 0, false
		}
		obj, size, ok := shared(*b)
		if m, is := obj.(*metav1.PartialObjectMetadata); ok && is {
			m.TypeMeta = own.TypeMeta
		}
		return obj, size, ok
	}
}
