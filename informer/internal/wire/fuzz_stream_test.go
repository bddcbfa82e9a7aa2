package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsjson "sigs.k8s.io/json"
)

func formatOf(protobuf bool) Format {
	if protobuf {
		return Protobuf
	}
	return JSON
}

// FuzzList checks that no input panics, that the size of the reads does not matter, and that the items equal
// the decoders' result.
func FuzzList(f *testing.F) {
	for _, c := range listCases {
		if len(c.in) < 4<<10 { // long inputs are slow to mutate
			f.Add(false, []byte(c.in))
		}
	}
	for _, c := range protoListCases {
		f.Add(true, []byte(c.in))
	}
	f.Fuzz(func(t *testing.T, protobuf bool, in []byte) {
		format := formatOf(protobuf)
		items, meta, err := readList(format, bytes.NewReader(in))
		slow, slowMeta, slowErr := readList(format, iotest.OneByteReader(bytes.NewReader(in)))
		if diff := cmp.Diff(items, slow); diff != "" || meta != slowMeta || kindOf(err) != kindOf(slowErr) {
			t.Errorf("byte by byte: %v, %v; %s", err, slowErr, diff)
		}
		switch {
		case err != nil:
		case protobuf:
			checkProtoList(t, in)
		case !json.Valid(in):
			t.Errorf("accepted a list that is not JSON")
		}
	})
}

// checkProtoList compares an accepted list with the generated decoders' result.
func checkProtoList(t *testing.T, in []byte) {
	var u runtime.Unknown
	if err := u.Unmarshal(in[len(protoPrefix):]); err != nil {
		t.Fatalf("accepted an envelope that cannot be decoded: %v", err)
	}
	var want metav1.PartialObjectMetadataList
	err := want.Unmarshal(u.Raw)
	if u.APIVersion == "meta.k8s.io/v1beta1" && u.Kind == "PartialObjectMetadataList" {
		var swapped metav1beta1.PartialObjectMetadataList
		err = swapped.Unmarshal(u.Raw)
		want = metav1.PartialObjectMetadataList{ListMeta: swapped.ListMeta, Items: swapped.Items}
	}
	l := NewList(Protobuf, bytes.NewReader(in))
	for i := 0; ; i++ {
		o, nextErr := l.Next()
		var bad *ObjectError
		switch {
		case errors.Is(nextErr, io.EOF):
			if err == nil && (i != len(want.Items) || l.Meta() != ListMeta{want.ResourceVersion, want.Continue}) {
				t.Errorf("%d items, %+v; decoded %+v", i, l.Meta(), want)
			}
			return
		case errors.As(nextErr, &bad):
		case nextErr != nil:
			t.Fatal(nextErr)
		default:
			checkProtoMeta(t, o.Raw, o.Meta)
			if err == nil && want.Items[i].Name != o.Name {
				t.Errorf("item %d is %q, decoded %q", i, o.Name, want.Items[i].Name)
			}
		}
	}
}

// checkProtoMeta compares metadata with the generated decoder's result. The decoder reads nested messages too,
// so it is given the metadata without them.
func checkProtoMeta(t *testing.T, raw []byte, m Meta) {
	t.Helper()
	var whole, flat metav1.PartialObjectMetadata
	if err := flat.Unmarshal(withoutMessages(t, raw)); err != nil {
		t.Fatalf("accepted %q, which cannot be decoded: %v", raw, err)
	}
	decoded := []metav1.PartialObjectMetadata{flat}
	if whole.Unmarshal(raw) == nil {
		decoded = append(decoded, whole)
	}
	for _, p := range decoded {
		if p.Name != m.Name || p.Namespace != m.Namespace || string(p.UID) != m.UID || p.ResourceVersion != m.ResourceVersion {
			t.Errorf("read %+v of %q, decoded %+v", m, raw, p.ObjectMeta)
		}
	}
}

// withoutMessages drops the fields that the walk does not look into.
func withoutMessages(t *testing.T, raw []byte) []byte {
	each := func(b []byte, f func(num protowire.Number, field, val []byte)) {
		for len(b) > 0 {
			num, typ, n := protowire.ConsumeTag(b)
			if n < 0 {
				t.Fatalf("accepted %q: %v", raw, protowire.ParseError(n))
			}
			size := protowire.ConsumeFieldValue(num, typ, b[n:])
			if size < 0 {
				t.Fatalf("accepted %q: %v", raw, protowire.ParseError(size))
			}
			val, _ := protowire.ConsumeBytes(b[n:])
			f(num, b[:n+size], val)
			b = b[n+size:]
		}
	}
	var out []byte
	each(raw, func(num protowire.Number, field, val []byte) {
		if num != objectMetadata {
			out = append(out, field...)
			return
		}
		var meta []byte
		each(val, func(num protowire.Number, field, _ []byte) {
			if !slices.Contains([]protowire.Number{8, 9, 11, 12, 13, 17}, num) {
				meta = append(meta, field...)
			}
		})
		out = protowire.AppendBytes(protowire.AppendTag(out, objectMetadata, protowire.BytesType), meta)
	})
	return out
}

// FuzzWatch is FuzzList for watches. It also checks that reading ends.
func FuzzWatch(f *testing.F) {
	for _, c := range watchCases {
		if len(c.in) < 4<<10 {
			f.Add(false, []byte(c.in))
		}
	}
	for _, c := range protoWatchCases() {
		f.Add(true, []byte(c.in))
	}
	f.Fuzz(func(t *testing.T, protobuf bool, in []byte) {
		format := formatOf(protobuf)
		events, err := readWatch(format, bytes.NewReader(in))
		slow, slowErr := readWatch(format, iotest.OneByteReader(bytes.NewReader(in)))
		if diff := cmp.Diff(events, slow); diff != "" || kindOf(err) != kindOf(slowErr) {
			t.Errorf("byte by byte: %v, %v; %s", err, slowErr, diff)
		}
		if len(events) > len(in) {
			t.Errorf("%d events of %d bytes", len(events), len(in))
		}
		ev, err := NewWatch(format, bytes.NewReader(in)).Next()
		if err != nil {
			return
		}
		p, err := DecodeMetadata(format, ev.Raw)
		if ends := err == nil && ev.Type == Bookmark && p.Annotations[initialEnd] == "true"; ev.InitialEnd != ends && (!protobuf || err == nil && wellFormed(ev.Raw)) {
			t.Errorf("%s ends the initial events: %v", ev.Raw, ev.InitialEnd)
		}
		if protobuf {
			checkProtoEvent(t, in, ev)
		} else {
			checkJSONEvent(t, in, ev)
		}
	})
}

func checkProtoEvent(t *testing.T, in []byte, ev Event) {
	size := int(in[0])<<24 | int(in[1])<<16 | int(in[2])<<8 | int(in[3])
	var want metav1.WatchEvent
	if err := want.Unmarshal(in[frameHeader : frameHeader+size]); err != nil || want.Type != ev.Type {
		t.Fatalf("accepted a %s, decoded a %s: %v", ev.Type, want.Type, err)
	}
	var u runtime.Unknown
	if err := u.Unmarshal(want.Object.Raw[len(protoPrefix):]); err != nil {
		t.Fatalf("accepted an envelope that cannot be decoded: %v", err)
	}
	if !bytes.Equal(u.Raw, ev.Raw) || ev.Typed != (u.APIVersion != "" && u.Kind != "" || ev.Type == Error) {
		t.Errorf("typed %v, %q, decoded %+v", ev.Typed, ev.Raw, u)
	}
	if ev.Type != Error {
		checkProtoMeta(t, ev.Raw, ev.Meta)
	}
}

func checkJSONEvent(t *testing.T, in []byte, ev Event) {
	var first json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(in)).Decode(&first); err != nil {
		t.Fatalf("accepted a frame that encoding/json refuses: %v", err)
	}
	var want struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	strict, err := sigsjson.UnmarshalStrict(first, &want)
	if err != nil || len(strict) > 0 || !utf8.Valid(in) {
		return // lenient decoders disagree about the rest
	}
	if want.Type != ev.Type || !bytes.Equal(want.Object, ev.Raw) {
		t.Errorf("a %s: %s, decoded %+v", ev.Type, ev.Raw, want)
	}
}
