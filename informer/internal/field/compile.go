package field

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Path reads the values of one field.
type Path struct {
	text     string
	steps    []step
	leaf     reflect.Type // nil: any type, in unstructured objects
	protobuf bool         // the struct tags have the protobuf numbers
}

// step leads from a value to a value in it.
type step struct {
	kind   stepKind
	name   string // the field's name in JSON, or the key
	index  int    // the field's index in its struct
	tag    uint64 // the field's number and wire type in protobuf
	inline bool   // in JSON, the field's own fields are inlined
	zero   bool   // if this value is absent, the path leads to a zero value
}

type stepKind uint8

const (
	toField stepKind = iota
	toKey            // of a map
	toEach           // element of a list
)

// Compile compiles a path for a struct type, or, if t is nil, for unstructured objects. An error names the
// place and the reason.
func Compile(t reflect.Type, path string) (*Path, error) {
	parts, err := parse(path)
	if err != nil {
		return nil, err
	}
	p := &Path{text: path}
	if t == nil {
		for _, q := range parts {
			s := step{kind: toKey, name: q.key}
			if q.each {
				s.kind = toEach
			}
			p.steps = append(p.steps, s)
		}
		return p, nil
	}
	c := compiler{Path: p, typ: t}
	p.protobuf = true
	for i, q := range parts {
		err := c.own()
		if err == nil {
			err = c.step(q)
		}
		if err != nil {
			before := 0
			if i > 0 {
				before = parts[i-1].end
			}
			return nil, fmt.Errorf("%s: %w", c.at(path[:before]), err)
		}
	}
	if err := c.end(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.at(path), err)
	}
	return p, nil
}

// String returns the path's text.
func (p *Path) String() string { return p.text }

// Read reads the values from an object's bytes. If ok is false, the caller must decode the object and call Of.
func (p *Path) Read(f wire.Format, raw []byte) (values []string, ok bool) {
	switch {
	case f == wire.JSON:
		values, ok = p.readJSON(raw)
	case p.protobuf && p.leaf != nil:
		values, ok = p.message(0, raw, nil)
	}
	return once(values), ok
}

// compiler is the state of a compilation: the current type and the steps to it.
type compiler struct {
	*Path
	typ      reflect.Type
	pointers []bool // for each step, whether its value is behind a pointer
}

// at returns the object's part at the current place, for errors.
func (c *compiler) at(path string) string {
	if path == "" {
		return "the object"
	}
	return strings.TrimPrefix(path, ".")
}

var (
	jsonType  = reflect.TypeFor[json.Unmarshaler]()
	textType  = reflect.TypeFor[encoding.TextUnmarshaler]()
	protoType = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	metaType  = reflect.TypeFor[metav1.TypeMeta]()
)

// errOwn is the advice for types that cannot be read.
var errOwn = errors.New("use AddIndex with a function")

// own refuses types with their own decoding rules.
func (c *compiler) own() error {
	p := reflect.PointerTo(c.typ)
	if p.Implements(jsonType) || p.Implements(textType) {
		return fmt.Errorf("a %v has its own form: %w", c.typ, errOwn)
	}
	if c.typ.Kind() != reflect.Struct && p.Implements(protoType) {
		c.protobuf = false
	}
	return nil
}

func (c *compiler) step(q part) error {
	switch t := c.typ; t.Kind() {
	case reflect.Struct:
		if q.each {
			return fmt.Errorf("[*] needs a list, but this is a %v", t)
		}
		return c.field(q.key)
	case reflect.Slice, reflect.Array:
		if !q.each {
			return fmt.Errorf("this is a list: append [*]")
		}
		c.push(step{kind: toEach}, t.Elem())
	case reflect.Map:
		if q.each {
			return fmt.Errorf(`[*] needs a list, but this is a map: append ["key"]`)
		}
		if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textType) {
			return fmt.Errorf("the keys of a %v are not strings: %w", t, errOwn)
		}
		c.push(step{kind: toKey, name: q.key}, t.Elem())
	default:
		return fmt.Errorf("a %v has no fields", t)
	}
	if n := len(c.steps); n < 2 || c.steps[n-2].kind != toField { // a list or map directly within another
		c.protobuf = false
	}
	return nil
}

func (c *compiler) push(s step, t reflect.Type) {
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	c.steps, c.pointers, c.typ = append(c.steps, s), append(c.pointers, pointer), t
}

// field steps to the field with a JSON name.
func (c *compiler) field(name string) error {
	t := c.typ
	chain, err := find(t, name)
	if err != nil {
		return err
	}
	for i, sf := range chain {
		s := step{kind: toField, name: name, index: sf.Index[0], inline: i < len(chain)-1}
		if sf.Type == metaType {
			return fmt.Errorf("%s is the same in all objects", name)
		}
		if s.inline && sf.Type.Kind() == reflect.Pointer {
			return fmt.Errorf("%s is in an embedded pointer: %w", name, errOwn)
		}
		if _, options, _ := strings.Cut(sf.Tag.Get("json"), ","); strings.Contains(","+options+",", ",string,") {
			return fmt.Errorf("%s is a number in a string: %w", name, errOwn)
		}
		if s.tag = protobufTag(sf); s.tag == 0 || decode.For(c.typ) == nil {
			c.protobuf = false
		}
		c.push(s, sf.Type)
	}
	return nil
}

// find returns the field with a JSON name, preceded by the fields that embed it.
func find(t reflect.Type, name string) ([]reflect.StructField, error) {
	level := [][]reflect.StructField{nil}
	like := ""
	for len(level) > 0 {
		var found, next [][]reflect.StructField
		for _, chain := range level {
			at := t
			if n := len(chain); n > 0 {
				if at = chain[n-1].Type; at.Kind() == reflect.Pointer {
					at = at.Elem()
				}
			}
			for i := range at.NumField() {
				sf := at.Field(i)
				this := append(append([]reflect.StructField{}, chain...), sf)
				tag, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
				embedded := sf.Type
				if embedded.Kind() == reflect.Pointer {
					embedded = embedded.Elem()
				}
				switch {
				case tag == "" && sf.Anonymous && embedded.Kind() == reflect.Struct && len(chain) < 8:
					next = append(next, this)
					continue
				case tag == "-" || !sf.IsExported():
					continue
				case tag == "":
					tag = sf.Name
				}
				if tag == name {
					found = append(found, this)
				} else if strings.EqualFold(tag, name) {
					like = tag
				}
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return nil, fmt.Errorf("a %v has several fields %q: %w", t, name, errOwn)
		}
		level = next
	}
	if like != "" {
		return nil, fmt.Errorf("a %v has no field %q; did you mean %q?", t, name, like)
	}
	return nil, fmt.Errorf("a %v has no field %q", t, name)
}

// protobufTag returns the number and wire type of a field, as a message encodes them; 0 if unknown. decode.For
// guarantees that the tags have this meaning and that nothing else about the type matters.
func protobufTag(sf reflect.StructField) uint64 {
	parts := strings.Split(sf.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.ParseUint(parts[1], 10, 31)
	if err != nil {
		return 0
	}
	t := sf.Type
	if t.Kind() == reflect.Map {
		if k := t.Elem().Kind(); k == reflect.String || k == reflect.Struct {
			return n<<3 | length
		}
		return 0
	}
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64:
		return n<<3 | varint
	case reflect.String, reflect.Struct:
		return n<<3 | length
	}
	return 0
}

// end checks the type of the path's value and marks the steps at which absence yields a zero value.
func (c *compiler) end() error {
	if err := c.own(); err != nil {
		return err
	}
	switch t := c.typ; t.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		c.leaf = t
	case reflect.Struct:
		return fmt.Errorf("a %v is not a string, a bool or an integer: name a field of it", t)
	case reflect.Slice, reflect.Array:
		return fmt.Errorf("this is a list: append [*]")
	case reflect.Map:
		return fmt.Errorf(`this is a map: append ["key"]`)
	default:
		return fmt.Errorf("a %v is not a string, a bool or an integer: %w", t, errOwn)
	}
	zero := true
	for i := len(c.steps) - 1; i >= 0; i-- {
		zero = zero && !c.pointers[i]
		c.steps[i].zero = zero
		zero = zero && c.steps[i].kind == toField
	}
	return nil
}
