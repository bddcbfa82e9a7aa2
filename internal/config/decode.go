package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/spell"
)

// decoder fills structs from YAML by their yaml tags, strictly: it knows every key, and accepts text only where
// text is wanted. It records errors and continues with the next key.
type decoder struct {
	*input
	types     []SinkType
	traces    func() Options
	alone     bool // see Loader
	lookupEnv func(name string) (string, bool)
	readFile  func(path string) ([]byte, error)
	// secrets, if set, resolve ${env:…} and ${file:…}; elsewhere these are errors.
	secrets *secrets
}

// field is a struct's field as it appears in the file.
type field struct {
	name  string
	index int
	enum  []string
}

func fieldsOf(typ reflect.Type) []field {
	var out []field
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		name = cmp.Or(name, strings.ToLower(f.Name)) // as the yaml package does
		fd := field{name: name, index: i}
		if e := f.Tag.Get("enum"); e != "" {
			fd.enum = strings.Split(e, ",")
		}
		out = append(out, fd)
	}
	return out
}

// value decodes a node. A key without a value counts as absent if it takes a list or an object.
func (d *decoder) value(n *yaml.Node, v reflect.Value, key string, enum []string) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.places[key] = n
	null := n.Kind == yaml.ScalarNode && n.Tag == "!!null"
	switch kind := v.Kind(); {
	case isScalar(v):
		d.scalar(n, v, key, enum)
	case kind == reflect.Pointer:
		if !null {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(n, v.Elem(), key, enum)
		}
	case null:
	case kind == reflect.Struct:
		d.structure(n, v, key)
	case kind == reflect.Slice:
		d.list(n, v, key, enum)
	case kind == reflect.Map:
		d.mapping(n, v, key)
	default:
		panic("a configuration cannot hold a " + v.Type().String())
	}
}

func isScalar(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer:
		return v.CanAddr() && v.Addr().Type().Implements(textType)
	}
	return true
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "want keys and values, such as %s: …; this is %s", fieldsOf(v.Type())[0].name, nodeKind(n))
		return
	}
	fields := fieldsOf(v.Type())
	sink, isSink := v.Addr().Interface().(*Sink)
	config, isConfig := v.Addr().Interface().(*Config)
	for name, value := range d.pairs(n, key) {
		at := join(key, name.Value)
		switch i := slices.IndexFunc(fields, func(f field) bool { return f.name == name.Value }); {
		case i >= 0:
			d.value(value, v.Field(fields[i].index), at, fields[i].enum)
		case isSink && d.isType(name.Value):
			d.sink(name, value, sink, at)
		case isConfig && d.traces != nil && name.Value == tracesKey:
			config.Traces = d.readTraces(value, at)
		default:
			var known []string
			for _, f := range fields {
				known = append(known, f.name)
			}
			if isConfig && d.traces != nil {
				known = append(known, tracesKey)
			}
			if isSink {
				if described("sinks[]." + name.Value) { // in the reference, which has the sinks of every program
					d.strange[key] = true
					d.fail(name, at, inCloud)
					continue
				}
				known = append(known, d.typeNames()...)
			}
			d.unknown(name, key, known)
		}
	}
}

// pairs iterates over keys and values; a key that occurs twice or is not text is an error.
func (d *decoder) pairs(n *yaml.Node, key string) func(func(name, value *yaml.Node) bool) {
	return func(yield func(name, value *yaml.Node) bool) {
		first := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			line, twice := first[name.Value]
			switch {
			case name.Tag == "!!merge":
				d.fail(name, key, "<< is not supported: write the keys out")
			case name.Kind != yaml.ScalarNode:
				d.fail(name, key, "a key must be text; this is %s", nodeKind(name))
			case twice:
				d.fail(name, join(key, name.Value), "this key is already in line %d", line)
			default:
				first[name.Value] = name.Line
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// unknown suggests a key that looks like the unknown one, or says where it belongs.
func (d *decoder) unknown(name *yaml.Node, key string, known []string) {
	at := join(key, name.Value)
	d.strange[key] = true
	near, homes := spell.Nearest(name.Value, known), homes(name.Value, key)
	switch {
	case near != "":
		d.fail(name, at, "unknown key; did you mean %s?", near)
	case len(homes) == 1:
		d.fail(name, at, "unknown key here; there is a key %s", join(homes[0], name.Value))
	case len(homes) > 1:
		for i, h := range homes { // kinds of sinks, in a sink
			homes[i] = strings.TrimPrefix(h, anyElement.ReplaceAllString(key, "[]")+".")
		}
		d.fail(name, at, "unknown key here; it belongs below %s", either(homes))
	default:
		d.fail(name, at, "unknown key; the keys here are %s", strings.Join(known, ", "))
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, key string, enum []string) {
	if n.Kind != yaml.SequenceNode {
		want := "want a list, such as [a, b]"
		if v.Type().Elem().Kind() == reflect.Struct {
			want = `want a list: each element begins with "- "`
		}
		d.fail(n, key, "%s; this is %s", want, nodeKind(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, e := range n.Content {
		if v.Index(i).Kind() == reflect.Struct {
			setDefaults(v.Index(i).Addr().Interface())
		}
		at := fmt.Sprintf("%s[%d]", key, i)
		if e.Tag == "!!null" {
			d.fail(e, at, "an element without a value")
			continue
		}
		d.value(e, v.Index(i), at, enum)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, key, "want names and values; this is %s", nodeKind(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for name, value := range d.pairs(n, key) {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(value, e, join(key, name.Value), nil)
		v.SetMapIndex(reflect.ValueOf(name.Value).Convert(v.Type().Key()), e)
	}
}

func nodeKind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "a number"
	case n.Tag == "!!bool":
		return "true or false"
	case n.Tag == "!!null":
		return "empty"
	case n.Tag == "!!timestamp":
		return "a time"
	case n.Tag != "!!str":
		return "tagged " + n.Tag
	}
	return "text"
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
