package clientgo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// odd is a type whose fields have their own encodings.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	*OddBase          `json:",inline"`
	Level             oddLevel          `json:"level,omitempty"`
	ByKey             map[oddKey]int    `json:"byKey,omitempty"`
	Zero              oddZero           `json:"zero,omitzero"`
	Note              string            `json:"note,omitempty"`
	Notes             map[string]string `json:"notes,omitempty"`
}

type OddBase struct {
	Replicas int `json:"replicas,omitempty"`
}

// oddLevel reads words and writes numbers.
type oddLevel int

func (l *oddLevel) UnmarshalJSON(b []byte) error {
	if string(b) != `"high"` {
		return fmt.Errorf("bad level %s", b)
	}
	*l = 1
	return nil
}

type oddKey string

func (k oddKey) MarshalText() ([]byte, error) { return []byte("one"), nil }

// oddZero has an IsZero that is true for some non-zero values.
type oddZero struct {
	A int `json:"a"`
}

func (z oddZero) IsZero() bool { return z.A < 10 }

func (o *odd) DeepCopyObject() runtime.Object { c := *o; return &c }

// TestOddTypes: values that the first objects did not have round-trip, too, or are kept decoded.
func TestOddTypes(t *testing.T) {
	p := newPacking(false)
	for i := range verifyFirst {
		if it := p.item(&odd{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}); it.v == nil {
			t.Fatal("a plain one is not packed")
		}
	}
	for _, tc := range []struct {
		why string
		obj *odd
	}{
		{"it reads in a way of its own", &odd{Level: 1}},
		{"a map's keys write in a way of their own", &odd{ByKey: map[oddKey]int{"two": 1}}},
		{"an embedded pointer to nothing", &odd{OddBase: &OddBase{}}},
		{"it says that it is nothing", &odd{Zero: oddZero{A: 1}}},
		{"text that is no UTF-8", &odd{Note: "a\xff"}},
		{"an empty map of texts", &odd{Notes: map[string]string{}}},
		{"the same in a map", &odd{Notes: map[string]string{"a": "\xff"}}},
		{"the same in a map's key", &odd{Notes: map[string]string{"\xff": "a"}}},
	} {
		if back := p.item(tc.obj).decode(); !reflect.DeepEqual(back, tc.obj) {
			t.Errorf("%s: comes back as %+v", tc.why, back)
		}
	}
}

// hiding has a nested unexported field, which cannot be compared.
type hiding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Dest              hidingPart `json:"dest" protobuf:"bytes,2,opt,name=dest"`
}

type hidingPart struct {
	Server string `json:"server" protobuf:"bytes,1,opt,name=server"`
	hidden bool
}

func (h *hiding) DeepCopyObject() runtime.Object { c := *h; return &c }
func (h *hiding) Reset()                         {}
func (h *hiding) Size() int                      { return len(h.text()) }
func (h *hiding) Unmarshal(b []byte) error       { return json.Unmarshal(b, h) }

func (h *hiding) MarshalToSizedBuffer(b []byte) (int, error) { return copy(b, h.text()), nil }

func (h *hiding) text() []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	return text
}

// TestNestedUnexportedFields: an object that cannot be compared is kept decoded, without other effects.
func TestNestedUnexportedFields(t *testing.T) {
	p := newPacking(false)
	obj := &hiding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Dest: hidingPart{Server: "x", hidden: false}}
	if back := p.item(obj).decode(); !reflect.DeepEqual(back, obj) {
		t.Errorf("comes back as %+v", back)
	}
}

// TestIndexesCopyValues: an index function may return a part of the object, which the index must not change.
func TestIndexesCopyValues(t *testing.T) {
	values := []string{"all"}
	ix := &index{name: "x", found: map[string]*bucket{}}
	kept := ix.move(&entry{}, nil, values)
	values[0] = "other"
	if kept[0] != "all" {
		t.Errorf("the index has %q", kept)
	}
}

// unreliable has its own JSON encoding, which drops some values.
type unreliable struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Mood string
}

func (w *unreliable) DeepCopyObject() runtime.Object { c := *w; return &c }

func (w *unreliable) MarshalJSON() ([]byte, error) {
	switch w.Mood {
	case "bad":
		return json.Marshal([]string{w.Name, ""})
	case "worse":
		panic("not in this mood")
	}
	return json.Marshal([]string{w.Name, w.Mood})
}

func (w *unreliable) UnmarshalJSON(b []byte) error {
	var both [2]string
	err := json.Unmarshal(b, &both)
	w.Name, w.Mood = both[0], both[1]
	return err
}

// TestSelfEncodingTypesAreVerifiedEachTime: a type with its own encoding is verified for every object, since the
// first ones prove nothing; other types are unaffected.
func TestSelfEncodingTypesAreVerifiedEachTime(t *testing.T) {
	p := newPacking(false)
	feeling := func(mood string) *unreliable {
		return &unreliable{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Mood: mood}
	}
	for range 2 * verifyFirst {
		if it := p.item(feeling("good")); it.v == nil {
			t.Fatal("one that comes back is not packed")
		}
	}
	for _, mood := range []string{"bad", "worse"} {
		if back := p.item(feeling(mood)).decode(); !reflect.DeepEqual(back, feeling(mood)) {
			t.Errorf("comes back as %+v", back)
		}
		if it := p.item(feeling("good")); it.v == nil {
			t.Error("the others suffer for it")
		}
	}
}

// frank writes and reads some fields in ways of their own.
type frank struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Mood              mood                  `json:"mood"`
	Other             *mood                 `json:"other,omitempty"`
	Short             shortMood             `json:"short,omitempty"`
	Extra             *runtime.RawExtension `json:"extra,omitempty"`
}

func (f *frank) DeepCopyObject() runtime.Object { c := *f; return &c }

// mood writes nothing as something.
type mood struct{ word string }

func (m mood) MarshalJSON() ([]byte, error)      { return json.Marshal(cmp.Or(m.word, "calm")) }
func (m *mood) UnmarshalJSON(b []byte) error     { return json.Unmarshal(b, &m.word) }
func (m shortMood) MarshalJSON() ([]byte, error) { return json.Marshal(cmp.Or(string(m), "calm")) }

type shortMood string

// sealed has fields that are written as null where they are something.
type sealed struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Extra             *runtime.RawExtension   `json:"extra,omitempty"`
	Extras            []*runtime.RawExtension `json:"extras,omitempty"`
}

func (p *sealed) DeepCopyObject() runtime.Object { c := *p; return &c }

// TestWhatIsWrittenOtherwise: a zero value may be written as something, and a pointer to something as null.
func TestWhatIsWrittenOtherwise(t *testing.T) {
	p := newPacking(false)
	for range 2 * verifyFirst {
		for _, obj := range []any{&frank{Mood: mood{"bad"}}, &sealed{Extra: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}}} {
			if it := p.item(obj); it.v == nil {
				t.Fatalf("%+v is not packed", obj)
			}
		}
	}
	stripped := metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{}}}}
	for _, obj := range []any{
		&frank{}, &frank{Mood: mood{"bad"}, Other: &mood{}},
		&sealed{Extra: &runtime.RawExtension{}}, &sealed{Extras: []*runtime.RawExtension{{}}}, &sealed{ObjectMeta: stripped},
	} {
		if back := p.item(obj).decode(); !reflect.DeepEqual(back, obj) {
			t.Errorf("%+v comes back as %+v", obj, back)
		}
	}
}
