package decode

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is how a field is decoded.
type kind uint8

const (
	kindNone   kind = iota
	kindString      // strings, and types made of them
	kindBytes
	kindBool
	kindInt32
	kindInt64
	kindFloat64
	kindMessage    // a struct, in place
	kindPtrString  // pointers to those
	kindPtrBool    //
	kindPtrInt32   //
	kindPtrInt64   //
	kindPtrFloat64 //
	kindPtrMessage // also of a type with an Unmarshal of its own
	kindStrings    // repeated
	kindInt32s     //
	kindInt64s     //
	kindBools      //
	kindMessages   // also of a type with an Unmarshal of its own
	kindStringMap  // map[string]string
	kindMap        // any other with strings as keys
)

// Wire types.
const (
	varint  = 0
	fixed64 = 1
	length  = 2
	fixed32 = 5
)

// message is the plan of a struct type, or of a type with an Unmarshal of its own, which has no fields.
type message struct {
	typ    reflect.Type
	own    bool
	fields []*field // by number; nil where there is none
}

// field is the plan of one field.
type field struct {
	number int
	wire   uint8
	kind   kind
	index  int      // among the struct's fields
	elem   *message // of messages: what they are; of kindMap: nil, or the value's
	typ    reflect.Type
	id     uintptr // of the type
	stat   int     // see Table.stats
	tag    uint64
}

func (f *field) repeated() bool { return f.kind >= kindStrings }

// Plan decodes one type.
type Plan struct {
	root *message
}

// unmarshaler is what the generated code, and types with a form of their own, implement.
type unmarshaler interface{ Unmarshal([]byte) error }

var (
	unmarshalerType = reflect.TypeFor[unmarshaler]()
	typeMetaType    = reflect.TypeFor[metav1.TypeMeta]()
)

var (
	plansMu sync.Mutex
	plans   = map[reflect.Type]*message{} // nil: none is possible
	stats   atomic.Int64                  // how many fields have a statistic
)

// For returns the plan of a struct type, or nil if there is none. There are plans for the types of k8s.io/api and
// k8s.io/apimachinery, whose conventions are known; others may mean something else by the same tags.
func For(t reflect.Type) *Plan {
	plansMu.Lock()
	defer plansMu.Unlock()
	m := planned(t)
	if m == nil || m.own {
		return nil
	}
	return &Plan{root: m}
}

// planned returns the plan of a type, nil if there is none. plansMu must be held.
func planned(t reflect.Type) *message {
	if m, ok := plans[t]; ok {
		return m
	}
	if !reflect.PointerTo(t).Implements(unmarshalerType) {
		plans[t] = nil
		return nil
	}
	m := &message{typ: t}
	plans[t] = m // a type may contain itself
	if !known(t) || t.Kind() != reflect.Struct || !m.plan() {
		m.own, m.fields = true, nil
	}
	return m
}

func known(t reflect.Type) bool {
	return strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery/pkg/")
}

// plan makes the plan of a struct, and reports whether its tags say all there is.
func (m *message) plan() bool {
	for i := range m.typ.NumField() {
		sf := m.typ.Field(i)
		tag, ok := sf.Tag.Lookup("protobuf")
		switch {
		case ok:
		case sf.Type == typeMetaType, sf.Type.Kind() == reflect.Interface:
			continue // protobuf does not carry them
		default:
			return false
		}
		f := newField(sf, tag)
		if f == nil {
			return false
		}
		f.index = i
		for len(m.fields) <= f.number {
			m.fields = append(m.fields, nil)
		}
		if m.fields[f.number] != nil {
			return false
		}
		m.fields[f.number] = f
	}
	return true
}

// newField reads a tag, such as "bytes,2,opt,name=spec"; it returns nil for what is not known. Many tags were written by
// hand and say a wrong wire type, or that a list is none: what counts is the Go type, which the generator goes by.
func newField(sf reflect.StructField, tag string) *field {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return nil
	}
	for _, p := range parts[2:] {
		name, _, _ := strings.Cut(p, "=")
		switch name {
		case "opt", "rep", "req", "name", "json", "casttype", "castkey", "castvalue":
		default:
			return nil
		}
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < 1 || n > 1<<10 {
		return nil
	}
	f := &field{number: n, typ: sf.Type, id: reflect.ValueOf(sf.Type).Pointer()}
	if f.classify(); f.kind == kindNone {
		return nil
	}
	f.wire = wires[f.kind]
	f.tag = uint64(n)<<3 | uint64(f.wire)
	switch f.kind {
	case kindBytes, kindPtrMessage, kindMessages, kindStrings, kindStringMap, kindMap:
		f.stat = int(stats.Add(1))
	}
	return f
}

// wires is the wire type of each kind.
var wires = map[kind]uint8{
	kindString: length, kindBytes: length, kindBool: varint, kindInt32: varint, kindInt64: varint, kindFloat64: fixed64,
	kindMessage: length, kindPtrString: length, kindPtrBool: varint, kindPtrInt32: varint, kindPtrInt64: varint,
	kindPtrFloat64: fixed64, kindPtrMessage: length, kindStrings: length, kindInt32s: varint, kindInt64s: varint, kindBools: varint,
	kindMessages: length, kindStringMap: length, kindMap: length,
}

// scalars are the kinds of types that are no messages.
var scalars = map[reflect.Kind]kind{
	reflect.String: kindString, reflect.Bool: kindBool, reflect.Int32: kindInt32, reflect.Int64: kindInt64, reflect.Float64: kindFloat64,
}

// pointers and lists are the kinds of pointers to scalars, and of slices of them.
var (
	pointers = map[kind]kind{kindString: kindPtrString, kindBool: kindPtrBool, kindInt32: kindPtrInt32, kindInt64: kindPtrInt64, kindFloat64: kindPtrFloat64}
	lists    = map[kind]kind{kindString: kindStrings, kindInt32: kindInt32s, kindInt64: kindInt64s, kindBool: kindBools}
)

// classify sets the kind, if there is one.
func (f *field) classify() {
	t := f.typ
	if m := planned(t); m != nil {
		f.elem, f.kind = m, kindMessage
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if f.elem = planned(t.Elem()); f.elem != nil {
			f.kind = kindPtrMessage
		} else {
			f.kind = pointers[scalars[t.Elem().Kind()]]
		}
	case reflect.Slice:
		switch f.elem = planned(t.Elem()); {
		case f.elem != nil:
			f.kind = kindMessages
		case t.Elem().Kind() == reflect.Uint8:
			f.kind = kindBytes
		default:
			f.kind = lists[scalars[t.Elem().Kind()]]
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return
		}
		switch f.elem = planned(t.Elem()); {
		case t.Elem().Kind() == reflect.String && f.elem == nil:
			f.kind = kindStringMap
		case f.elem != nil || t.Elem().Kind() == reflect.Slice && t.Elem().Elem().Kind() == reflect.Uint8:
			f.kind = kindMap
		}
	default:
		f.kind = scalars[t.Kind()]
	}
}
