package deliver

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tattler-dev/tattler/event"
)

// patch returns the difference of two objects as an RFC 6902 patch: applied in order, its operations turn
// before into after exactly (null and an absent field differ). In a list, equal elements at both ends are kept;
// the rest is matched by position, because JSON Patch has no other identity. As in package diff, a value that
// is nested very deeply, or has very many differences, is replaced as a whole.
func patch(before, after map[string]any) []event.Operation {
	return patchWithin(before, after, patchLimits)
}

// versionTest returns an operation that fails on any other version of the object: a consumer that missed a change, such as
// one that a filter or a limit kept away, learns that instead of patching the wrong elements of a list.
func versionTest(object map[string]any) []event.Operation {
	meta, _ := object["metadata"].(map[string]any)
	version, ok := meta["resourceVersion"].(string)
	if !ok {
		return nil
	}
	return []event.Operation{{Op: "test", Path: "/metadata/resourceVersion", Value: version}}
}

// limits bound the operations of a value.
type limits struct {
	depth, ops int
	length     int // of the text of all paths
}

var patchLimits = limits{depth: 64, ops: 1000, length: 256 << 10}

func patchWithin(before, after map[string]any, m limits) []event.Operation {
	p := patcher{max: m}
	p.values(before, after)
	return p.ops
}

type patcher struct {
	max    limits
	ops    []event.Operation
	total  int      // of the text of their paths
	path   []string // each step with its slash
	length int      // of its text
}

func (p *patcher) add(op string, value any) {
	p.ops = append(p.ops, event.Operation{Op: op, Path: strings.Join(p.path, ""), Value: value})
	p.total += p.length
}

// at calls fn with the path extended by a step.
func (p *patcher) at(name string, do func()) {
	step := "/" + pointer.Replace(name)
	p.path, p.length = append(p.path, step), p.length+len(step)
	do()
	p.path, p.length = p.path[:len(p.path)-1], p.length-len(step)
}

func (p *patcher) values(a, b any) {
	ops, total := len(p.ops), p.total
	full := func() bool { return len(p.ops)-ops > p.max.ops || p.total-total > p.max.length }
	deep := len(p.path) >= p.max.depth
	mapA, isMap := a.(map[string]any)
	mapB, areMaps := b.(map[string]any)
	listA, isList := a.([]any)
	listB, areLists := b.([]any)
	switch {
	case isMap && areMaps && !deep:
		p.objects(mapA, mapB, full)
	case isList && areLists && !deep:
		p.lists(listA, listB, full)
	case !same(a, b):
		p.add("replace", b)
	}
	if own := len(p.ops) == ops+1 && len(p.ops[ops].Path) == p.length; full() && !own {
		clear(p.ops[ops:])
		p.ops, p.total = p.ops[:ops], total
		p.add("replace", b)
	}
}

func (p *patcher) objects(a, b map[string]any, full func() bool) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		p.at(name, func() {
			if v, ok := b[name]; ok {
				p.values(a[name], v)
			} else {
				p.add("remove", nil)
			}
		})
		if full() {
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; ok {
			continue
		}
		p.at(name, func() { p.add("add", b[name]) })
		if full() {
			return
		}
	}
}

// pointer escapes a name as in RFC 6901.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func (p *patcher) lists(a, b []any, full func() bool) {
	start := 0
	for start < min(len(a), len(b)) && same(a[start], b[start]) {
		start++
	}
	enda, endb := len(a), len(b)
	for enda > start && endb > start && same(a[enda-1], b[endb-1]) {
		enda, endb = enda-1, endb-1
	}
	both := min(enda, endb)
	for i := start; i < both && !full(); i++ {
		p.at(strconv.Itoa(i), func() { p.values(a[i], b[i]) })
	}
	for i := enda - 1; i >= both && !full(); i-- { // from the end, so that earlier indexes stay valid
		p.at(strconv.Itoa(i), func() { p.add("remove", nil) })
	}
	for i := both; i < endb && !full(); i++ {
		p.at(strconv.Itoa(i), func() { p.add("add", b[i]) })
	}
}

// same reports whether two values have the same JSON. Package diff's Equal is laxer: it treats an absent field
// as null.
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
