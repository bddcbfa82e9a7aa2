package clientgo

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// sizeless is a type whose Size method panics.
type sizeless struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Inner             *sizeless `json:"inner,omitempty" protobuf:"bytes,2,opt,name=inner"`
}

func (s *sizeless) DeepCopyObject() runtime.Object { c := *s; return &c }
func (s *sizeless) Reset()                         { *s = sizeless{} }
func (s *sizeless) Size() int                      { return len(s.Inner.Name) }
func (s *sizeless) Unmarshal([]byte) error         { return nil }
func (s *sizeless) MarshalToSizedBuffer(b []byte) (int, error) {
	return copy(b, s.Inner.Name), nil
}

// TestSizePanics: an object whose Size panics is kept decoded and weighed like any other.
func TestSizePanics(t *testing.T) {
	i := NewSharedIndexInformer(&cache.ListWatch{}, &sizeless{}, 0, nil)
	obj := &sizeless{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if err := i.GetStore().Add(obj); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := i.GetStore().GetByKey("a"); got != any(obj) || !ok || err != nil {
		t.Error(got, ok, err)
	}
	if w := weigh(obj); w < 100 {
		t.Errorf("it weighs %d bytes", w)
	}
}
