package wire

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// samplePods are eight pods as diverse as in a cluster, made by bench/gen with seed 1.
func samplePods(tb testing.TB) []corev1.Pod {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "pods.pb"))
	if err != nil {
		tb.Fatal(err)
	}
	raw, kind, err := Unwrap(b)
	if err != nil || kind != "PodList" {
		tb.Fatalf("kind %q: %v", kind, err)
	}
	var l corev1.PodList
	if err := l.Unmarshal(raw); err != nil {
		tb.Fatal(err)
	}
	return l.Items
}

// sampleObjects returns the sample pods' bytes, as in a watch.
func sampleObjects(tb testing.TB, f Format) (objects [][]byte) {
	for _, p := range samplePods(tb) {
		p.APIVersion, p.Kind = "v1", "Pod"
		objects = append(objects, encode(tb, f, &p))
	}
	return objects
}

// protoMessage is a generated type.
type protoMessage interface{ Marshal() ([]byte, error) }

// encode returns an object's bytes as Object.Raw has them.
func encode(tb testing.TB, f Format, o protoMessage) []byte {
	tb.Helper()
	var b []byte
	var err error
	if f == Protobuf {
		b, err = o.Marshal()
	} else {
		b, err = json.Marshal(o)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// wrap puts a bare message into its envelope.
func wrap(tb testing.TB, apiVersion, kind string, raw []byte) []byte {
	tb.Helper()
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	return append([]byte(protoPrefix), encode(tb, Protobuf, &u)...)
}

// rawList is any list of encoded items.
type rawList struct {
	metav1.ListMeta
	items [][]byte
}

// body encodes the list as a server does.
func (l rawList) body(tb testing.TB, f Format, apiVersion, kind string) []byte {
	tb.Helper()
	if f == JSON {
		items := make([]json.RawMessage, len(l.items))
		for i, b := range l.items {
			items[i] = b
		}
		b, err := json.Marshal(struct {
			Kind       string            `json:"kind"`
			APIVersion string            `json:"apiVersion"`
			Metadata   metav1.ListMeta   `json:"metadata"`
			Items      []json.RawMessage `json:"items"`
		}{kind, apiVersion, l.ListMeta, items})
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
	return wrap(tb, apiVersion, kind, l.message(tb, 1, 2))
}

// message returns the bare list with the given field numbers.
func (l rawList) message(tb testing.TB, metaField, itemsField byte) []byte {
	tb.Helper()
	meta := encode(tb, Protobuf, &l.ListMeta)
	b := append(binary.AppendUvarint([]byte{metaField<<3 | 2}, uint64(len(meta))), meta...)
	for _, item := range l.items {
		b = append(binary.AppendUvarint(append(b, itemsField<<3|2), uint64(len(item))), item...)
	}
	return b
}

// frame encodes a watch event as a server does. Only protobuf needs the kind.
func frame(tb testing.TB, f Format, eventType, apiVersion, kind string, raw []byte) []byte {
	tb.Helper()
	if f == JSON {
		return []byte(`{"type":"` + eventType + `","object":` + string(raw) + "}\n")
	}
	ev := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: wrap(tb, apiVersion, kind, raw)}}
	return prefixed(encode(tb, Protobuf, &ev))
}

// prefixed prepends a frame's length.
func prefixed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// bookmark is a bookmark's object.
func bookmark(rv string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: rv, Annotations: annotations},
	}
}
