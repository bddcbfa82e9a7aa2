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
	kindNone       kind = iota
	kindString          // a string, or a pointer to one
	kindVarint          // a bool, an int32 or an int64, or a pointer to one
	kindFloat           // a float64, or a pointer to one
	kindBytes           //
	kindMessage         // in place; of messages, some decode themselves
	kindPtrMessage      //
	kindStrings         // this and the following are repeated
	kindVarints         //
	kindMessages        //
	kindTextMap         // map[string]string
	kindMap             // any other, of messages, strings or bytes by strings
)

// Wire types.
const (
	varint  = 0
	fixed64 = 1
	length  = 2
	fixed32 = 5
)

// wire is the wire type of a kind.
func (k kind) wire() uint8 {
	switch k {
	case kindVarint, kindVarints:
		return varint
	case kindFloat:
		return fixed64
	default:
		return length
	}
}

// message is the plan of a struct type, or of a type that decodes itself.
type message struct {
	typ    reflect.Type
	own    bool     // it decodes itself, and has no fields here
	fields []*field // by number; nil: unknown
}

// field is the plan of one field.
type field struct {
	number int
	kind   kind
	index  int      // among the struct's fields
	elem   *message // the field's message, or that of its pointer or elements, if any
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

// unmarshaler is implemented by the generated code, and by types that decode themselves.
type unmarshaler interface{ Unmarshal([]byte) error }

var (
	unmarshalerType = reflect.TypeFor[unmarshaler]()
	typeMetaType    = reflect.TypeFor[metav1.TypeMeta]()
)

var (
	plansMu sync.Mutex
	plans   = map[reflect.Type]*message{} // nil: no plan
	stats   atomic.Int64                  // number of fields with a statistic
)

// For returns the plan of a struct type, or nil. Only types of k8s.io/api and k8s.io/apimachinery
// have plans: elsewhere the same tags may have another meaning.
func For(t reflect.Type) *Plan {
	plansMu.Lock()
	defer plansMu.Unlock()
	m := planned(t)
	if m == nil || m.own {
		return nil
	}
	return &Plan{root: m}
}

// planned returns the plan of a type, or nil. The caller holds plansMu.
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

// plan makes the plan of a struct. It reports false if the tags do not suffice.
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

// newField reads a tag such as "bytes,2,opt,name=spec". It returns nil for an unknown form. Many tags were written by hand,
// with a wrong wire type or opt for a list, so the Go type decides, as in the generator.
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
	f.tag = uint64(n)<<3 | uint64(f.kind.wire())
	if f.repeated() || f.kind == kindBytes || f.kind == kindPtrMessage {
		f.stat = int(stats.Add(1))
	}
	return f
}

// scalars are the kinds of types that are not messages.
var scalars = map[reflect.Kind]kind{
	reflect.String: kindString, reflect.Bool: kindVarint, reflect.Int32: kindVarint, reflect.Int64: kindVarint, reflect.Float64: kindFloat,
}

// lists are the kinds of slices of scalars.
var lists = map[kind]kind{kindString: kindStrings, kindVarint: kindVarints}

var textMapType = reflect.TypeFor[map[string]string]()

// classify sets kind, and elem if there are messages.
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
			f.kind = scalars[t.Elem().Kind()]
		}
	case reflect.Slice:
		switch f.elem = planned(t.Elem()); {
		case f.elem != nil:
			f.kind = kindMessages
		case isBytes(t):
			f.kind = kindBytes
		default:
			f.kind = lists[scalars[t.Elem().Kind()]]
		}
	case reflect.Map:
		if f.elem = planned(t.Elem()); isText(t.Key()) && (f.elem != nil || isText(t.Elem()) || isBytes(t.Elem())) {
			f.kind = kindMap
		}
		if t == textMapType {
			f.kind = kindTextMap
		}
	default:
		f.kind = scalars[t.Kind()]
	}
}

func isText(t reflect.Type) bool { return t.Kind() == reflect.String }

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
