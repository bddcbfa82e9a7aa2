package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// protoMeta reads an object's metadata and checks that the lengths of its other fields add up. It reuses
// namespace, without an allocation, if that is the object's. If only bytes after the metadata are broken, it
// returns the metadata beside the error.
func protoMeta(raw []byte, namespace string) (Meta, error) {
	var name, ns, uid, rv []byte
	w := metadataOf(raw)
	for w.next() {
		switch w.num {
		case metaName:
			name = w.val
		case metaNamespace:
			ns = w.val
		case metaUID:
			uid = w.val
		case metaResourceVersion:
			rv = w.val
		}
	}
	if w.message.bad != "" {
		return Meta{}, w.err()
	}
	return Meta{Namespace: same(namespace, ns), Name: string(name), UID: string(uid), ResourceVersion: string(rv)}, w.err()
}

// protoLabels yields an object's labels.
func protoLabels(raw []byte, yield func(key, value []byte) bool) error {
	w := metadataOf(raw)
	for w.next() {
		if w.num != metaLabels {
			continue
		}
		var key, value []byte
		if key, value, w.bad = mapEntry(w.val); w.bad == "" && !yield(key, value) {
			return nil
		}
	}
	return w.err()
}

// protoInitialEnd reports whether a bookmark ends the initial events.
func protoInitialEnd(raw []byte) bool {
	end := false
	w := metadataOf(raw)
	for w.next() {
		if w.num == metaAnnotations {
			var key, value []byte
			key, value, w.bad = mapEntry(w.val)
			if string(key) == initialEnd {
				end = string(value) == "true"
			}
		}
	}
	return end && w.err() == nil
}

// protoShape reads the input of a fingerprint.
func protoShape(raw []byte) (s shape, ok bool) {
	w := metadataOf(raw)
	for w.next() {
		switch w.num {
		case metaGenerateName:
			s.generate = w.val
		case metaLabels:
			var key, value []byte
			key, value, w.bad = mapEntry(w.val)
			s.label(key, value)
		case metaOwnerReferences:
			w.bad = s.protoOwner(w.val)
		}
	}
	return s, w.err() == nil
}

// protoOwner records an owner if it is the controller.
func (s *shape) protoOwner(b []byte) (bad string) {
	var kind []byte
	controller := false
	m := message{rest: b}
	for m.next() {
		switch m.num {
		case ownerKind:
			if m.bytes() {
				kind = m.val
			}
		case ownerController:
			if m.varints() {
				controller = m.n != 0
			}
		}
	}
	if controller {
		s.owner = kind
	}
	return m.bad
}

// mapEntry reads one entry of a map of strings.
func mapEntry(b []byte) (key, value []byte, bad string) {
	m := message{rest: b}
	for m.next() {
		switch m.num {
		case entryKey:
			if m.bytes() {
				key = m.val
			}
		case entryValue:
			if m.bytes() {
				value = m.val
			}
		}
	}
	return key, value, m.bad
}

// protoDropManaged returns a copy of raw without managedFields, or raw itself if it has none or cannot be
// read.
func protoDropManaged(raw []byte) []byte {
	var out []byte
	copied := 0 // bytes of raw
	o := message{rest: raw}
	for at := 0; o.next(); at = len(raw) - len(o.rest) {
		if o.num != objectMetadata || !o.bytes() {
			continue
		}
		n, ok := sizeWithoutManaged(o.val)
		if !ok {
			return raw
		}
		if n == len(o.val) {
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(raw)-len(o.val)+n)
		}
		out = append(out, raw[copied:at]...)
		out = protowire.AppendTag(out, objectMetadata, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(n))
		out = appendWithoutManaged(out, o.val)
		copied = len(raw) - len(o.rest)
	}
	if out == nil || o.bad != "" {
		return raw
	}
	return append(out, raw[copied:]...)
}

// sizeWithoutManaged returns the size of the metadata without managedFields, in bytes.
func sizeWithoutManaged(meta []byte) (n int, ok bool) {
	n = len(meta)
	m := message{rest: meta}
	for before := len(meta); m.next() && m.metaField(); before = len(m.rest) {
		if m.num == metaManagedFields {
			n -= before - len(m.rest)
		}
	}
	return n, m.bad == ""
}

func appendWithoutManaged(out, meta []byte) []byte {
	m := message{rest: meta}
	for before := m.rest; m.next(); before = m.rest {
		if m.num != metaManagedFields {
			out = append(out, before[:len(before)-len(m.rest)]...)
		}
	}
	return out
}
