package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"
)

// addObjects adds objects that have every field the readers look at.
func addObjects(f *testing.F) {
	rich := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-5d4b9c6f5-x2x4z", GenerateName: "web-5d4b9c6f5-", Namespace: "ns", UID: "u", ResourceVersion: "12", Generation: 3,
			Labels: map[string]string{"app": "web", "k": "v"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Other"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: new(true)}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}},
		},
		Data: map[string]string{"k": "v\u00e4\n"},
	}
	for _, protobuf := range []bool{false, true} {
		f.Add(protobuf, encode(f, formatOf(protobuf), rich))
	}
	f.Add(false, []byte(`{"metadata":{"managedFields":[],"name":"\ud83d\ude00","labels":{"name":"x"}},"spec":[1,2.5e-3,{"a":null}]}`))
	for _, c := range protoListCases {
		f.Add(true, []byte(c.in))
	}
	for _, odd := range oddObjects {
		f.Add(true, []byte(odd))
	}
}

// oddObjects are malformed: a label whose key is a number, an annotation whose key is longer than its entry, before managed
// fields, and an owner with a group. The generated decoders accept them.
var oddObjects = []string{
	"\n\x08\n\x01a\x5a\x03\x08\x01x",
	"\n\x0d\n\x01a\x62\x03\n\x05a\x8a\x01\x02\n\x00",
	"\n\x07\n\x01a\x6a\x02\x7b\x7c",
}

// decoded decodes an object. ok is false if the decoders refuse it, disagree, or accept what is malformed.
func decoded(f Format, raw []byte) (p metav1.PartialObjectMetadata, ok bool) {
	if f == Protobuf {
		return p, p.Unmarshal(raw) == nil && wellFormed(raw)
	}
	strict, err := sigsjson.UnmarshalStrict(raw, &p)
	for _, e := range strict {
		if strings.Contains(e.Error(), "duplicate field") {
			return p, false
		}
	}
	return p, err == nil && utf8.Valid(raw)
}

// wellFormed reports whether the map entries and owners in an object's metadata are protobuf. Where they are not, we are
// right to refuse them: the generated decoders ignore wire types within map entries, read beyond the end of an entry, and
// skip groups, so that what they decode depends on the bytes behind.
func wellFormed(raw []byte) bool {
	ok := true
	fields := func(b []byte, each func(num protowire.Number, typ protowire.Type, val []byte)) {
		for len(b) > 0 && ok {
			num, typ, n := protowire.ConsumeTag(b)
			if n < 0 || typ == protowire.StartGroupType {
				ok = false
				return
			}
			size := protowire.ConsumeFieldValue(num, typ, b[n:])
			if size < 0 {
				ok = false
				return
			}
			val, _ := protowire.ConsumeBytes(b[n:])
			each(num, typ, val)
			b = b[n+size:]
		}
	}
	fields(raw, func(num protowire.Number, _ protowire.Type, meta []byte) {
		if num != objectMetadata {
			return
		}
		fields(meta, func(num protowire.Number, _ protowire.Type, val []byte) {
			switch num {
			case metaLabels, metaAnnotations:
				fields(val, func(num protowire.Number, typ protowire.Type, _ []byte) {
					ok = ok && (typ == protowire.BytesType || num != entryKey && num != entryValue)
				})
			case metaOwnerReferences:
				fields(val, func(protowire.Number, protowire.Type, []byte) {})
			}
		})
	})
	return ok
}

// stricter lists the errors for protobuf that we refuse and the generated decoders accept.
var stricter = []string{"groups are not supported", "field number out of range", "number does not end", "unknown wire type"}

func isStricter(err error) bool {
	return err != nil && slices.ContainsFunc(stricter, func(s string) bool { return strings.HasSuffix(err.Error(), s) })
}

// FuzzMeta compares the shallow walk with the decoders.
func FuzzMeta(f *testing.F) {
	addObjects(f)
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := formatOf(protobuf)
		m, err := ReadMeta(format, raw)
		p, ok := decoded(format, raw)
		switch {
		case err == nil && protobuf:
			checkProtoMeta(t, raw, m)
		case err == nil && !json.Valid(raw):
			t.Errorf("accepted invalid JSON")
		case err == nil && ok && (m.Name != p.Name || m.Namespace != p.Namespace || m.UID != string(p.UID) || m.ResourceVersion != p.ResourceVersion):
			t.Errorf("read %+v, decoded %+v", m, p.ObjectMeta)
		case err != nil && ok && protobuf && !isStricter(err):
			t.Errorf("refused a decodable object: %v", err)
		}
	})
}

// FuzzLabels compares the labels of accepted objects with the decoders'.
func FuzzLabels(f *testing.F) {
	addObjects(f)
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := formatOf(protobuf)
		labels, err := labelsOf(format, raw)
		p, ok := decoded(format, raw)
		if _, metaErr := ReadMeta(format, raw); metaErr != nil || !ok || protobuf && isStricter(err) {
			return
		}
		if err != nil || !maps.Equal(labels, p.Labels) {
			t.Errorf("read %q, %v, decoded %q", labels, err, p.Labels)
		}
	})
}

// FuzzFingerprint compares fingerprints with the ones computed from decoded metadata.
func FuzzFingerprint(f *testing.F) {
	addObjects(f)
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := formatOf(protobuf)
		sum, sumOK := Fingerprint(format, raw)
		p, ok := decoded(format, raw)
		n := 0
		err := ReadLabels(format, raw, func(_, _ []byte) bool {
			n++
			return true
		})
		if _, metaErr := ReadMeta(format, raw); metaErr != nil || !ok || err != nil || n != len(p.Labels) {
			return
		}
		if want := plainFingerprint(p.ObjectMeta, len(raw)); !sumOK || sum != want {
			t.Errorf("%x, %v, want %x", sum, sumOK, want)
		}
	})
}

// FuzzDropManagedFields checks that only managedFields are removed.
func FuzzDropManagedFields(f *testing.F) {
	addObjects(f)
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := formatOf(protobuf)
		before := bytes.Clone(raw)
		less := DropManagedFields(format, raw)
		if !bytes.Equal(raw, before) {
			t.Fatal("raw was changed")
		}
		if again := DropManagedFields(format, less); !bytes.Equal(again, less) {
			t.Errorf("dropped again: %q", again)
		}
		p, ok := decoded(format, raw)
		if _, metaErr := ReadMeta(format, raw); metaErr != nil || !ok {
			return
		}
		q, ok := decoded(format, less)
		p.ManagedFields = nil
		if !ok || !reflect.DeepEqual(p, q) {
			t.Errorf("%q: metadata %+v, want %+v", less, q, p)
		}
		if protobuf {
			if !bytes.Equal(withoutMetadata(t, less), withoutMetadata(t, raw)) {
				t.Errorf("more than metadata changed: %q", less)
			}
			return
		}
		var was, is map[string]any
		if json.Unmarshal(raw, &was) != nil || json.Unmarshal(less, &is) != nil {
			t.Fatalf("%q is not JSON", less)
		}
		if m, ok := was["metadata"].(map[string]any); ok {
			delete(m, "managedFields")
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// withoutMetadata returns an object's other fields.
func withoutMetadata(t *testing.T, raw []byte) (rest []byte) {
	for m := (message{rest: raw}); ; {
		before := m.rest
		if !m.next() {
			if m.bad != "" {
				t.Fatal(m.bad)
			}
			return rest
		}
		if m.num != objectMetadata {
			rest = append(rest, before[:len(before)-len(m.rest)]...)
		}
	}
}

// FuzzDecodeMetadata compares the decoder that skips spec and status with a plain one.
func FuzzDecodeMetadata(f *testing.F) {
	addObjects(f)
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := formatOf(protobuf)
		got, err := DecodeMetadata(format, raw)
		want, ok := decoded(format, raw)
		if ok && (err != nil || !reflect.DeepEqual(got, &want)) {
			t.Errorf("decoded %+v, %v, want %+v", got, err, want)
		}
		if err == nil && !protobuf && sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &want) != nil {
			t.Error("accepted an object that the decoder refuses")
		}
	})
}

// FuzzDecodeStatus checks that accepted bytes are a Status and can be encoded again.
func FuzzDecodeStatus(f *testing.F) {
	st := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Message: "m", Reason: "Expired", Code: 410,
		Details: &metav1.StatusDetails{Name: "n", RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: "t", Message: "m", Field: "f"}}},
	}
	f.Add(false, encode(f, JSON, st))
	f.Add(true, encode(f, Protobuf, st))
	f.Fuzz(func(t *testing.T, protobuf bool, raw []byte) {
		format := formatOf(protobuf)
		st, err := DecodeStatus(format, raw)
		if err != nil {
			return
		}
		again, err := DecodeStatus(format, encode(t, format, st))
		if err != nil || again.Code != st.Code || again.Kind != "Status" {
			t.Errorf("%+v, %v, want %+v", again, err, st)
		}
	})
}
