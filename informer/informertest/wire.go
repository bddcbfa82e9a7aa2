package informertest

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The wire format of k8s.io/apimachinery (runtime/serializer/{json,protobuf}, runtime/generated.proto and
// meta/v1/generated.proto), assembled here so that an object is encoded only once.

// magic begins every protobuf object.
const magic = "k8s\x00"

// tail ends an envelope: an empty contentEncoding and contentType.
const tail = "\x1a\x00\x22\x00"

// envelope appends the head of a protobuf object: the part of runtime.Unknown before a message of n bytes.
func envelope(dst []byte, apiVersion, kind string, n int) []byte {
	typeMeta := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), apiVersion)
	typeMeta = protowire.AppendString(protowire.AppendTag(typeMeta, 2, protowire.BytesType), kind)
	dst = append(dst, magic...)
	dst = protowire.AppendBytes(protowire.AppendTag(dst, 1, protowire.BytesType), typeMeta)
	return protowire.AppendVarint(protowire.AppendTag(dst, 2, protowire.BytesType), uint64(n))
}

// enveloped appends a whole protobuf object.
func enveloped(dst []byte, apiVersion, kind string, message []byte) []byte {
	return append(append(envelope(dst, apiVersion, kind, len(message)), message...), tail...)
}

// withKind appends a JSON object with the given apiVersion and kind.
func withKind(dst []byte, apiVersion, kind string, bare []byte) []byte {
	dst = append(dst, `{"kind":"`+kind+`","apiVersion":"`+apiVersion+`"`...)
	if len(bare) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, bare[1:]...)
}

// names returns the apiVersion and kind of objects in this encoding.
func (m media) names(k *kind) (apiVersion, kind string) {
	if m.partial != "" {
		return "meta.k8s.io/" + m.partial, "PartialObjectMetadata"
	}
	return k.apiVersion(), k.name
}

// message returns an object's protobuf message as in a list, shared.
func (m media) message(k *kind, o *object) []byte {
	if m.partial != "" {
		return o.as(asPartial, k)
	}
	return o.as(asMessage, k)
}

// item appends an object's JSON as in a list: bare if its kind has a Go type, typed otherwise.
func (m media) item(dst []byte, k *kind, o *object) []byte {
	if m.partial != "" {
		return m.object(dst, k, o)
	}
	return append(dst, o.as(asJSON, k)...)
}

// object appends an object as it stands alone or in an event.
func (m media) object(dst []byte, k *kind, o *object) []byte {
	apiVersion, kind := m.names(k)
	switch {
	case m.protobuf:
		return enveloped(dst, apiVersion, kind, m.message(k, o))
	case m.partial != "":
		return withKind(dst, apiVersion, kind, o.as(asPartialJSON, k))
	case k.new != nil:
		return withKind(dst, apiVersion, kind, o.as(asJSON, k))
	}
	return append(dst, o.as(asJSON, k)...)
}

// status appends a Status.
func (m media) status(dst []byte, st metav1.Status) []byte {
	if m.protobuf {
		return enveloped(dst, "v1", "Status", encodeMessage(&st))
	}
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return append(dst, encodeJSON(st)...)
}

// frameHead is the size of the big-endian length before a protobuf event.
const frameHead = 4

// frame appends a watch event around its encoded object.
func (m media) frame(dst []byte, event string, object []byte) []byte {
	if !m.protobuf {
		dst = append(append(dst, `{"type":"`+event+`","object":`...), object...)
		return append(dst, "}\n"...)
	}
	extension := 1 + protowire.SizeBytes(len(object)) // its field 1, raw
	size := 1 + protowire.SizeBytes(len(event)) + 1 + protowire.SizeBytes(extension)
	dst = binary.BigEndian.AppendUint32(dst, uint32(size)) //nolint:gosec // an event is far smaller than 4 GiB
	dst = protowire.AppendString(protowire.AppendTag(dst, 1, protowire.BytesType), event)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, 2, protowire.BytesType), uint64(extension))
	return protowire.AppendBytes(protowire.AppendTag(dst, 1, protowire.BytesType), object)
}

// bookmark returns the object of a bookmark: it has only a version and, at the end of the initial events, the
// annotation that marks it.
func bookmark(k *kind, rv uint64, initialEnd bool) *object {
	m := map[string]any{"resourceVersion": formatVersion(rv)}
	if initialEnd {
		m["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	o := &object{rv: rv, fields: map[string]any{"apiVersion": k.apiVersion(), "kind": k.name, "metadata": m}}
	if k.new == nil {
		return o
	}
	return newTyped(o.typed(k), key{}, rv, "") // with the empty fields of the type
}
