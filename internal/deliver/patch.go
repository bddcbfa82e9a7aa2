package deliver

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/event"
)

// patch is the difference of two objects as RFC 6902 writes it: applied in order, the operations make
// after of before, exactly (a null is not an absent field). In a list, equal elements at both ends are
// kept; what is between is matched by position, as JSON Patch knows no other identity.
func patch(before, after map[string]any) []event.Operation {
	var p patcher
	p.objects("", before, after)
	return p.ops
}

type patcher struct{ ops []event.Operation }

func (p *patcher) add(op, path string, value any) {
	p.ops = append(p.ops, event.Operation{Op: op, Path: path, Value: value})
}

func (p *patcher) values(path string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			p.objects(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			p.lists(path, a, b)
			return
		}
	}
	if !same(a, b) {
		p.add("replace", path, b)
	}
}

func (p *patcher) objects(path string, a, b map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		at := path + "/" + pointer.Replace(name)
		if v, ok := b[name]; ok {
			p.values(at, a[name], v)
		} else {
			p.add("remove", at, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			p.add("add", path+"/"+pointer.Replace(name), b[name])
		}
	}
}

// pointer escapes a name as RFC 6901 asks for.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func (p *patcher) lists(path string, a, b []any) {
	start := 0
	for start < min(len(a), len(b)) && same(a[start], b[start]) {
		start++
	}
	enda, endb := len(a), len(b)
	for enda > start && endb > start && same(a[enda-1], b[endb-1]) {
		enda, endb = enda-1, endb-1
	}
	both := min(enda, endb)
	for i := start; i < both; i++ {
		p.values(path+"/"+strconv.Itoa(i), a[i], b[i])
	}
	for i := enda - 1; i >= both; i-- { // from the end: the indexes before stay what they are
		p.add("remove", path+"/"+strconv.Itoa(i), nil)
	}
	for i := both; i < endb; i++ {
		p.add("add", path+"/"+strconv.Itoa(i), b[i])
	}
}

// same tells whether two values are written alike in JSON. Package diff's Equal is laxer: to it an
// absent field is null.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case int64:
		return sameScalar(a, b)
	case float64:
		return sameScalar(a, b)
	case string:
		return sameScalar(a, b)
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return a == nil && b == nil
}

func sameScalar[T cmp.Ordered](a T, b any) bool {
	v, ok := b.(T)
	return ok && a == v
}
