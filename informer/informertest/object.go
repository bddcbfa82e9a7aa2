package informertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
)

// object is one version of an object. It is made from fields, from generate, or from the bytes of its protobuf
// message, and keeps its encodings.
type object struct {
	key
	rv   uint64
	uid  string
	form int // number of the resource's forms applied to it

	fields   map[string]any // never changed in place
	generate func() runtime.Object

	encoded [forms]atomic.Pointer[[]byte]
}

// form is an encoding of an object without the envelope or kind that the wire adds.
type form uint8

const (
	asJSON        form = iota // without apiVersion and kind if the kind has a Go type
	asMessage                 // protobuf without its envelope
	asPartialJSON             // PartialObjectMetadata without apiVersion and kind
	asPartial                 // PartialObjectMetadata as a message
	forms
)

// newTyped makes an object of its Go type and writes the version and UID into it.
func newTyped(typed runtime.Object, k key, rv uint64, uid string) *object {
	o := &object{key: k, rv: rv, uid: uid}
	b := encodeMessage(o.own(typed))
	o.encoded[asMessage].Store(&b)
	return o
}

// own sets the fields that belong to the server and clears kind and apiVersion, which the wire adds where they
// belong.
func (o *object) own(typed runtime.Object) message {
	m, err := meta.Accessor(typed)
	if err != nil {
		panic(fmt.Sprintf("informertest: %T is not an object: %v", typed, err))
	}
	m.SetResourceVersion("")
	if o.rv > 0 { // otherwise it is of a dry run
		m.SetResourceVersion(formatVersion(o.rv))
	}
	m.SetUID(types.UID(o.uid))
	typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return typed.(message)
}

// at returns the object with another version, as in a DELETED event.
func (o *object) at(k *kind, rv uint64) *object {
	gone := &object{key: o.key, rv: rv, uid: o.uid, form: o.form}
	if o.fields == nil {
		b := o.as(asMessage, k)
		p, n := metadataOf(b)
		p.ResourceVersion = formatVersion(rv)
		b = append(encodeMessage(p), b[n:]...)
		gone.encoded[asMessage].Store(&b)
		return gone
	}
	fields, m := maps.Clone(o.fields), maps.Clone(metaOf(o.fields))
	m["resourceVersion"] = formatVersion(rv)
	fields["metadata"] = m
	gone.fields = fields
	return gone
}

// metadataOf reads the metadata of a message and returns its end: it is the first field of every kind.
func metadataOf(message []byte) (p *metav1.PartialObjectMetadata, end int) {
	_, _, end = protowire.ConsumeField(message)
	p = &metav1.PartialObjectMetadata{}
	if end < 0 {
		panic("informertest: message without metadata")
	}
	if err := p.Unmarshal(message[:end]); err != nil {
		panic(fmt.Sprintf("informertest: decode the metadata of a message: %v", err))
	}
	return p, end
}

// typed returns a new object of the kind's Go type.
func (o *object) typed(k *kind) message {
	if o.generate != nil {
		return o.own(o.generate())
	}
	typed := k.new().(message)
	var err error
	if o.fields == nil {
		err = typed.Unmarshal(*o.encoded[asMessage].Load())
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(encodeJSON(o.fields), typed)
	}
	if err != nil {
		panic(fmt.Sprintf("informertest: %s/%s is not a %s: %v", o.namespace, o.name, k.name, err))
	}
	return typed
}

// asFields returns the object as a map, shared.
func (o *object) asFields(k *kind) map[string]any {
	if o.fields != nil {
		return o.fields
	}
	typed := o.typed(k)
	typed.GetObjectKind().SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.name))
	return toFields(typed)
}

// labels returns the labels, for selectors.
func (o *object) labels(k *kind) map[string]string {
	if o.fields == nil {
		return o.partial(k).Labels
	}
	given, _ := metaOf(o.fields)["labels"].(map[string]any)
	set := make(map[string]string, len(given))
	for name, v := range given {
		set[name] = fmt.Sprint(v)
	}
	return set
}

// as returns the object's encoding in a form, shared. Encodings of generated objects are not kept.
func (o *object) as(f form, k *kind) []byte {
	if b := o.encoded[f].Load(); b != nil {
		return *b
	}
	b := o.encode(f, k)
	if o.generate == nil {
		o.encoded[f].Store(&b)
	}
	return b
}

func (o *object) encode(f form, k *kind) []byte {
	switch f {
	case asMessage:
		return encodeMessage(o.typed(k))
	case asPartial:
		return encodeMessage(o.partial(k))
	case asPartialJSON:
		return encodeJSON(o.partial(k))
	}
	switch {
	case o.fields == nil:
		return encodeJSON(o.typed(k))
	case k.new == nil:
		return encodeJSON(o.fields)
	}
	fields := maps.Clone(o.fields)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	return encodeJSON(fields)
}

// partial returns the object's metadata.
func (o *object) partial(k *kind) *metav1.PartialObjectMetadata {
	if o.fields == nil {
		p, _ := metadataOf(o.as(asMessage, k))
		return p
	}
	p := &metav1.PartialObjectMetadata{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encodeJSON(metaOf(o.fields)), &p.ObjectMeta); err != nil {
		panic(fmt.Sprintf("informertest: decode the metadata of %s/%s: %v", o.namespace, o.name, err))
	}
	return p
}

func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("informertest: encode an object as JSON: %v", err))
	}
	return b
}

func encodeMessage(m interface{ Marshal() ([]byte, error) }) []byte {
	b, err := m.Marshal()
	if err != nil {
		panic(fmt.Sprintf("informertest: encode an object as protobuf: %v", err))
	}
	return b
}

func metaOf(o map[string]any) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}
