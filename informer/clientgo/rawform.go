package clientgo

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rawForms holds the forms in which an informer's objects are decoded from the server's bytes.
type rawForms struct {
	codecs      map[wire.Format]*codec // only formats from which the type can be decoded
	bare        map[wire.Format]*codec // variants that clear an object's kind
	undecodable *undecodableLog

	mu   *sync.Mutex
	made map[rawForm]*form
}

type rawForm struct {
	format wire.Format
	kinds  kinds
}

func newRawForms(example runtime.Object, parts *plans.Table, m *undecodableLog) rawForms {
	f := rawForms{
		codecs: map[wire.Format]*codec{}, bare: map[wire.Format]*codec{},
		undecodable: m, mu: &sync.Mutex{}, made: map[rawForm]*form{},
	}
	add := func(c *codec) {
		cleared := &codec{typ: c.typ, format: c.format, growth: c.growth, decode: kindless(c.decode), share: kindlessShared(c.share), near: c.near}
		f.codecs[c.format], f.bare[c.format] = c, cleared
	}
	switch t := reflect.TypeOf(example).Elem(); t {
	case reflect.TypeFor[unstructured.Unstructured]():
		add(newCodec(reflect.PointerTo(t), parts))
	case metadataType:
		add(metadataCodec(wire.JSON, 2, parts))
		add(metadataCodec(wire.Protobuf, 3, parts))
	default:
		add(jsonCodec(t, parts))
		if c := newCodec(reflect.PointerTo(t), parts); c != nil && c.format == wire.Protobuf {
			add(c)
		}
	}
	return f
}

// of returns the form of objects, or nil if they cannot be decoded. A kind that comes from the list alone (fromList)
// is not set on Go types.
func (f *rawForms) of(w wire.Format, k kinds, fromList bool) *form {
	if f.codecs[w] == nil {
		return nil
	}
	if fromList && k.given.Empty() && f.codecs[w].typ != reflect.TypeFor[unstructured.Unstructured]() {
		k.clear = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := rawForm{w, k}
	if have := f.made[key]; have != nil {
		return have
	}
	made := &form{codec: f.codecs[w], kind: k.given, undecodable: f.undecodable}
	if k.clear {
		made.codec = f.bare[w]
	}
	f.made[key] = made
	return made
}

func clearKind(obj any) {
	if o, ok := obj.(runtime.Object); ok {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

func kindless(decode func([]byte) (any, error)) func([]byte) (any, error) {
	return func(raw []byte) (any, error) {
		obj, err := decode(raw)
		if err == nil {
			clearKind(obj)
		}
		return obj, err
	}
}

func kindlessShared(share func([]byte) (any, int64, bool)) func([]byte) (any, int64, bool) {
	if share == nil {
		return nil
	}
	return func(raw []byte) (any, int64, bool) {
		obj, size, ok := share(raw)
		if ok {
			clearKind(obj)
		}
		return obj, size, ok
	}
}
