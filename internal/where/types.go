package where

import (
	"reflect"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/tattler-dev/tattler/event"
)

// touches is the name of the function.
const touches = "touches"

// CEL names of the event's types. The dot avoids conflicts with names in expressions.
const (
	resourceType = "event.Resource"
	ownerType    = "event.Owner"
	changeType   = "event.Change"
)

var (
	ops        = []string{string(event.Snapshot), string(event.Created), string(event.Updated), string(event.Deleted), string(event.Entered), string(event.Left), string(event.Gap), string(event.Converted), string(event.Absent)}
	severities = []string{string(event.Failure), string(event.Warning), string(event.Recovery), string(event.Normal)}
	fieldOps   = []string{"add", "remove", "replace", "reorder"}

	variables = []string{"op", "severity", "cluster", "resource", "changes", "before", "after"}
)

// newEnv makes the environment, once: it holds CEL's library and is immutable.
var newEnv = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	object := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(
		cel.CustomTypeAdapter(adapter{}),
		cel.CustomTypeProvider(provider{registry}),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
		cel.Variable("op", cel.StringType),
		cel.Variable("severity", cel.StringType),
		cel.Variable("cluster", cel.StringType),
		cel.Variable("resource", cel.ObjectType(resourceType)),
		cel.Variable("changes", cel.ListType(cel.ObjectType(changeType))),
		cel.Variable("before", object),
		cel.Variable("after", object),
		cel.Function(touches, cel.Overload("touches_string", []*cel.Type{cel.StringType}, cel.BoolType)),
	)
})

// structs maps CEL names to the event's types that expressions see. Fields have their JSON names.
var structs = map[string]reflect.Type{
	resourceType: reflect.TypeFor[event.Resource](),
	ownerType:    reflect.TypeFor[event.Owner](),
	changeType:   reflect.TypeFor[event.Change](),
}

func fieldNames(typeName string) []string {
	typ, ok := structs[typeName]
	if !ok {
		return nil
	}
	names := make([]string, typ.NumField())
	for i := range names {
		names[i] = jsonName(typ.Field(i))
	}
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// provider adds structs to CEL's own types. Expressions cannot create structs.
type provider struct{ *types.Registry }

func (p provider) FindStructType(name string) (*types.Type, bool) {
	if structs[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if names := fieldNames(name); names != nil {
		return names, true
	}
	return p.Registry.FindStructFieldNames(name)
}

func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	typ, ok := structs[name]
	if !ok {
		return p.Registry.FindStructFieldType(name, field)
	}
	for i := range typ.NumField() {
		if jsonName(typ.Field(i)) == field {
			return fieldType(typ.Field(i).Type, i), true
		}
	}
	return nil, false
}

func fieldType(typ reflect.Type, i int) *types.FieldType {
	value := func(target any) reflect.Value { return reflect.Indirect(reflect.ValueOf(target)).Field(i) }
	return &types.FieldType{
		Type:    celType(typ),
		IsSet:   func(target any) bool { return !value(target).IsZero() },
		GetFrom: func(target any) (any, error) { return get(value(target)), nil },
	}
}

func celType(typ reflect.Type) *types.Type {
	switch typ.Kind() {
	case reflect.Pointer:
		return types.NewObjectType(ownerType) // the only pointer type
	case reflect.Bool:
		return types.BoolType
	case reflect.String:
		return types.StringType
	}
	return types.DynType // the value of a field
}

// get reads a field. An absent owner reads as an empty one, so that resource.owner.kind works for every object;
// has(resource.owner) distinguishes them.
func get(v reflect.Value) any {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return reflect.New(v.Type().Elem()).Interface()
	}
	return v.Interface()
}

// adapter converts pointers to the structs to records, and everything else like CEL.
type adapter struct{}

func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case *event.Resource:
		return record{resourceType, v}
	case *event.Owner:
		return record{ownerType, v}
	case *event.Change:
		return record{changeType, v}
	case map[string]any: // pass this adapter on to nested values
		return types.NewStringInterfaceMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// record is a pointer to a struct as a CEL value.
type record struct {
	name string
	ptr  any
}

var _ traits.FieldTester = record{}

func (r record) field(name ref.Val) (*types.FieldType, ref.Val) {
	text, ok := name.(types.String)
	if !ok {
		return nil, types.MaybeNoSuchOverloadErr(name)
	}
	t, ok := provider{}.FindStructFieldType(r.name, string(text))
	if !ok {
		return nil, types.NewErr("no such field: %s", text)
	}
	return t, nil
}

// Get returns a field when the checker did not know the type, as in a list of mixed types.
func (r record) Get(name ref.Val) ref.Val {
	t, wrong := r.field(name)
	if wrong != nil {
		return wrong
	}
	v, err := t.GetFrom(r.ptr)
	if err != nil {
		return types.WrapErr(err)
	}
	return adapter{}.NativeToValue(v)
}

// IsSet implements has().
func (r record) IsSet(name ref.Val) ref.Val {
	t, wrong := r.field(name)
	if wrong != nil {
		return wrong
	}
	return types.Bool(t.IsSet(r.ptr))
}

// ConvertToNative returns the pointer; other types are errors.
func (r record) ConvertToNative(typ reflect.Type) (any, error) {
	if reflect.TypeOf(r.ptr) == typ {
		return r.ptr, nil
	}
	return nil, types.NewErr("%s cannot become %v", r.name, typ).(*types.Err)
}

// ConvertToType implements type(x).
func (r record) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return types.NewObjectType(r.name)
	}
	return types.NewErr("%s cannot become %s", r.name, t.TypeName())
}

// Equal compares the fields.
func (r record) Equal(other ref.Val) ref.Val {
	o, ok := other.(record)
	return types.Bool(ok && reflect.DeepEqual(r.ptr, o.ptr))
}

// Type returns the type's name and traits.
func (r record) Type() ref.Type {
	return types.NewObjectType(r.name, traits.FieldTesterType|traits.IndexerType)
}

// Value returns the pointer.
func (r record) Value() any { return r.ptr }
