package otlp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// decode converts JSON to a value and keeps integers exact.
func decode(text []byte) (*commonpb.AnyValue, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return anyValue(v), nil
}

// anyValue converts a JSON value: an object becomes a sorted list of keys, null a value without content, and an
// integer beyond 64 bits a float.
func anyValue(v any) *commonpb.AnyValue {
	switch v := v.(type) {
	case nil:
		return &commonpb.AnyValue{}
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
	case string:
		return text(v)
	case int:
		return integer(int64(v))
	case int64:
		return integer(v)
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return integer(n)
		}
		if f, err := v.Float64(); err == nil {
			return anyValue(f)
		}
		return text(v.String()) // exceeds a float
	case []any:
		list := make([]*commonpb.AnyValue, len(v))
		for i, e := range v {
			list[i] = anyValue(e)
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: list}}}
	case map[string]any:
		pairs := make([]*commonpb.KeyValue, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, &commonpb.KeyValue{Key: valid(k), Value: anyValue(v[k])})
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: pairs}}}
	}
	return text(fmt.Sprint(v)) // unreachable for JSON
}

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(s)}}
}

func integer(n int64) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}
}

// valid replaces invalid UTF-8, which protobuf rejects.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
