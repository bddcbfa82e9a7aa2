package field

import (
	"encoding/binary"
	"math"
	"reflect"
	"strconv"
)

// Wire types.
const (
	varint  = 0
	fixed64 = 1
	length  = 2
	fixed32 = 5
)

// message appends the values of a message to which the steps from i lead.
func (p *Path) message(i int, b []byte, to []string) (out []string, ok bool) {
	s, next := &p.steps[i], i+1
	each, mapped := next < len(p.steps) && p.steps[next].kind == toEach, next < len(p.steps) && p.steps[next].kind == toKey
	if each || mapped {
		next++
	}
	var value []byte
	var number uint64
	seen := false
	for len(b) > 0 {
		tag, n := uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return to, false
		}
		b = b[n:]
		var val []byte
		var num uint64
		switch tag & 7 {
		case varint:
			if num, n = uvarint(b); n <= 0 {
				return to, false
			}
		case length:
			size, k := uvarint(b)
			if k <= 0 || size > uint64(len(b)-k) {
				return to, false
			}
			n = k + int(size) //nolint:gosec // at most len(b)
			val = b[k:n]
		case fixed64:
			n = 8
		case fixed32:
			n = 4
		default:
			return to, false
		}
		if n > len(b) {
			return to, false
		}
		b = b[n:]
		if tag>>3 != s.tag>>3 {
			continue
		}
		switch {
		case tag != s.tag:
			return to, false
		case each:
			if to, ok = p.value(next, val, num, to); !ok {
				return to, false
			}
			continue
		case mapped:
			k, v, ok := entry(val)
			if !ok {
				return to, false
			}
			if string(k) == p.steps[i+1].name {
				seen, value = true, v // the last one counts
			}
			continue
		case seen:
			return to, false
		}
		seen, value, number = true, val, num
	}
	switch {
	case seen:
		return p.value(next, value, number, to)
	case s.zero:
		to = append(to, p.zeroValue())
	}
	return to, true
}

// value appends the values to which the steps from i lead in a value: bytes, or a number.
func (p *Path) value(i int, b []byte, n uint64, to []string) ([]string, bool) {
	if i < len(p.steps) {
		return p.message(i, b, to)
	}
	switch p.leaf.Kind() {
	case reflect.String:
		return append(to, string(b)), true
	case reflect.Bool:
		return append(to, strconv.FormatBool(n != 0)), true
	case reflect.Int32:
		return append(to, strconv.FormatInt(int64(int32(n)), 10)), true //nolint:gosec // as the generated code does
	case reflect.Int64:
		return append(to, strconv.FormatInt(int64(n), 10)), true //nolint:gosec // as the generated code does
	}
	return to, false
}

// zeroValue returns the value of an absent field.
func (p *Path) zeroValue() string {
	switch p.leaf.Kind() {
	case reflect.String:
		return ""
	case reflect.Bool:
		return "false"
	}
	return "0"
}

// entry splits a map entry, which must be a key, then a value.
func entry(b []byte) (key, value []byte, ok bool) {
	const keyTag, valueTag = 1<<3 | length, 2<<3 | length
	if len(b) == 0 || b[0] != keyTag {
		return nil, nil, false
	}
	size, n := uvarint(b[1:])
	if n <= 0 || size > uint64(len(b)-1-n) {
		return nil, nil, false
	}
	key, b = b[1+n:1+n+int(size)], b[1+n+int(size):] //nolint:gosec // at most len(b)
	if len(b) == 0 || b[0] != valueTag {
		return nil, nil, false
	}
	size, n = uvarint(b[1:])
	if n <= 0 || size != uint64(len(b)-1-n) {
		return nil, nil, false
	}
	return key, b[1+n:], true
}

// uvarint is binary.Uvarint with a fast path for one byte.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}
