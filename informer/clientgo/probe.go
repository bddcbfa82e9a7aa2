package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// sample is what the first list and the first watch of an informer are answered with, besides what the server
// says: objects that are made up. A ListerWatcher that hands them on as they were sent does so with all.
type sample struct {
	example runtime.Object
	kind    schema.GroupVersionKind // what the objects say that they are
	filled  []byte                  // an object with something in every field, without its kind
	bare    []byte                  // one with a name
}

// newSample makes up what fits a collection: its kind is as near to the real one as can be told.
func newSample(example runtime.Object, path string) *sample {
	s := &sample{example: example, kind: example.GetObjectKind().GroupVersionKind()}
	gv, namespace := placeOf(path)
	switch example.(type) {
	case *metav1.PartialObjectMetadata:
		s.kind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	case *unstructured.Unstructured:
		if s.kind.Empty() {
			s.kind = gv.WithKind("Probe")
		}
	default:
		if s.kind.Empty() {
			s.kind = gv.WithKind(reflect.TypeOf(example).Elem().Name())
		}
	}
	place := ""
	if namespace != "" {
		place = fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	s.bare = fmt.Appendf(nil, `{"metadata":{"name":"tattler-bare","resourceVersion":"1"%s}}`, place)
	s.filled = fmt.Appendf(nil, `{"metadata":{"name":"tattler-filled","resourceVersion":"1","uid":"7461-7474-6c65"%s,`+
		`"labels":{"probe":"yes"},"annotations":{"probe":"yes"},"finalizers":["probe"],"generation":1,`+
		`"managedFields":[{"manager":"probe"}]}}`, place)
	if _, ok := example.(*unstructured.Unstructured); ok {
		s.filled = append(s.filled[:len(s.filled)-1], `,"spec":{"probe":{"list":[1,"two",3.5,null,{"a":true}],"text":"yes"}},`+
			`"status":{"conditions":[{"type":"Probe","status":"True"}]},"data":{"probe":"eWVz"}}`...)
	} else if raw := fillExample(example, namespace); raw != nil {
		s.filled = raw
	}
	return s
}

// placeOf reads the path of a collection.
func placeOf(path string) (gv schema.GroupVersion, namespace string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" && len(parts) > 2 {
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	} else if len(parts) > 3 {
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	}
	if len(parts) == 3 {
		namespace = parts[1]
	}
	return gv, namespace
}

// fillExample is an object of the example's type with something in every field, or nil.
func fillExample(example runtime.Object, namespace string) (raw []byte) {
	defer func() {
		if recover() != nil { // a method of the type that did not expect this
			raw = nil
		}
	}()
	v := reflect.New(reflect.TypeOf(example).Elem())
	fill(v.Elem(), nil)
	m, ok := v.Interface().(metav1.Object)
	if !ok {
		return nil
	}
	m.SetName("tattler-filled")
	m.SetResourceVersion("1")
	if namespace != "" {
		m.SetNamespace(namespace)
	}
	if o, ok := m.(runtime.Object); ok {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	raw, err := json.Marshal(m)
	if err != nil || utiljson.Unmarshal(raw, reflect.New(v.Elem().Type()).Interface()) != nil {
		return nil
	}
	return raw
}

// typed is an object that says its kind.
func (s *sample) typed(raw []byte) []byte {
	return append(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, s.kind.GroupVersion(), s.kind.Kind), raw[1:]...)
}

// list is a list with the version and the continue token of the server's; of the bare object, only the list
// says the kind, as API servers do it with kinds of their own.
func (s *sample) list(m wire.ListMeta, empty bool) []byte {
	raw := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, s.kind.GroupVersion(), s.kind.Kind+"List")
	raw = fmt.Appendf(raw, `"metadata":{"resourceVersion":%s,"continue":%s},"items":[`, quoted(m.ResourceVersion), quoted(m.Continue))
	if !empty {
		raw = append(append(append(raw, s.typed(s.filled)...), ','), s.bare...)
	}
	return append(raw, ']', '}')
}

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return b
}

// sampleEvents is what a watch is answered with.
var sampleEvents = [...]struct {
	typ  watch.EventType
	bare bool
}{{watch.Added, false}, {watch.Modified, true}, {watch.Deleted, true}}

func (s *sample) events() []byte {
	var raw []byte
	for _, ev := range sampleEvents {
		raw = fmt.Appendf(raw, "{\"type\":%q,\"object\":%s}\n", ev.typ, s.typed(s.of(ev.bare)))
	}
	return raw
}

func (s *sample) of(bare bool) []byte {
	if bare {
		return s.bare
	}
	return s.filled
}

// kinds is what a client makes of the kind that an object says: it keeps it, clears it, or sets another one.
type kinds struct {
	clear bool
	given schema.GroupVersionKind
}

var errAltered = errors.New("it hands on something else than it is answered")

// checkList tells what a ListerWatcher made of a list.
func (s *sample) checkList(l runtime.Object) (kinds, error) {
	items, err := meta.ExtractList(l)
	if err != nil || len(items) != 2 {
		return kinds{}, errAltered
	}
	k, err := s.check(items[0], false)
	if err != nil {
		return k, err
	}
	if _, err := s.check(items[1], true); err != nil {
		return k, err
	}
	return k, nil
}

// sampleTimeout bounds the wait for the end of a watch that has ended. Not everybody passes it on.
const sampleTimeout = 10 * time.Second

// checkWatch tells what a ListerWatcher made of a watch.
func (s *sample) checkWatch(ctx context.Context, w watch.Interface) (k kinds, err error) {
	if w == nil {
		return k, errAltered
	}
	defer w.Stop()
	late := time.NewTimer(sampleTimeout)
	defer late.Stop()
	for n := 0; ; n++ {
		select {
		case ev, ok := <-w.ResultChan():
			switch {
			case !ok && n == len(sampleEvents):
				return k, nil
			case !ok, n == len(sampleEvents), ev.Type != sampleEvents[n].typ:
				return k, errAltered
			}
			of, err := s.check(ev.Object, sampleEvents[n].bare)
			if err != nil || n > 0 && of != k {
				return k, errAltered
			}
			k = of
		case <-late.C:
			return k, errAltered
		case <-ctx.Done():
			return k, errAltered
		}
	}
}

// check compares an object with what was sent, but for the kind.
func (s *sample) check(got runtime.Object, bare bool) (kinds, error) {
	if reflect.TypeOf(got) != reflect.TypeOf(s.example) {
		return kinds{}, errAltered
	}
	want, ok := reflect.New(reflect.TypeOf(got).Elem()).Interface().(runtime.Object)
	if !ok {
		return kinds{}, errAltered
	}
	into := any(want)
	if u, ok := want.(*unstructured.Unstructured); ok {
		into = &u.Object
	}
	if err := utiljson.Unmarshal(s.of(bare), into); err != nil {
		return kinds{}, fmt.Errorf("decode what was made up: %w", err)
	}
	var k kinds
	switch kind := got.GetObjectKind().GroupVersionKind(); kind {
	case s.kind:
	case schema.GroupVersionKind{}:
		k.clear = true
	default:
		k.given = kind
	}
	for _, o := range []runtime.Object{got, want} {
		o.GetObjectKind().SetGroupVersionKind(s.kind)
	}
	if !equality.Semantic.DeepEqual(got, want) {
		return kinds{}, errAltered
	}
	return k, nil
}
