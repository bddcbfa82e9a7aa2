package clientgo

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer/internal/decode"
)

// appendUnstructured appends an object's JSON with sorted keys, so that it decodes to the same values of the same
// types. encoding/json would write 1.0 as 1, which decodes to an integer.
func appendUnstructured(dst []byte, obj any) ([]byte, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.Object == nil {
		return dst, errInexact
	}
	return appendMap(dst, u.Object)
}

func decodeUnstructured(raw []byte) (any, error) {
	m, _, err := decode.JSON(nil, raw)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: m}, nil
}

func appendMap(dst []byte, m map[string]any) ([]byte, error) {
	if m == nil {
		return dst, errInexact // null decodes to another value
	}
	keys := make([]string, 0, 32)
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, k); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = appendValue(dst, m[k]); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendValue accepts the types that decoding JSON produces. Objects made by hand may hold others.
func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return appendFloat(dst, v)
	case string:
		return appendString(dst, v)
	case map[string]any:
		return appendMap(dst, v)
	case []any:
		return appendList(dst, v)
	}
	return dst, fmt.Errorf("%w: it holds a %T", errInexact, v)
}

func appendList(dst []byte, l []any) ([]byte, error) {
	if l == nil {
		return dst, errInexact
	}
	dst = append(dst, '[')
	for i, v := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, errInexact
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	for _, c := range dst[from:] {
		if c == '.' || c == 'e' {
			return dst, nil
		}
	}
	return append(dst, ".0"...), nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendEscaped(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"'), nil
}

func appendEscaped(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, errInexact
	}
	raw, err := json.Marshal(s)
	return append(dst, raw...), err
}
