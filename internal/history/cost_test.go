package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// elements returns a list of n elements with a name, and more fields.
func elements(n int, fields string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"name":"x%05d"%s}`, i, fields)
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}

// nested returns a value some levels down.
func nested(depth int, value string) string {
	return strings.Repeat(`{"a":`, depth) + value + strings.Repeat("}", depth)
}

// TestBlameCost: no object costs its reader far more memory than its size. The maps and paths that the lines need do not grow
// with the square of a list's length, or with the depth of each line.
func TestBlameCost(t *testing.T) {
	for _, tc := range []struct{ why, value string }{
		{"a long list with names", elements(3000, `,"v":1`)},
		{"a long list without", `[` + strings.Repeat(`{"a":2},`, 3000) + `1]`},
		{"many values far down", nested(2000, `[`+strings.Repeat("2,", 2000)+`2]`)},
	} {
		s := &journal.State{JSON: []byte(`{"kind":"Thing","spec":{"v":` + tc.value + `}}`)}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		lines, err := (&Builder{}).Blame(t.Context(), s)
		runtime.ReadMemStats(&end)
		if err != nil || len(lines) < 100 {
			t.Fatalf("%s: %d lines, %v", tc.why, len(lines), err)
		}
		if n, most := end.TotalAlloc-start.TotalAlloc, uint64(200<<20); n > most { // the race detector makes regular expressions allocate
			t.Errorf("%s: the lines allocated %d bytes of at most %d for an object of %d", tc.why, n, most, len(s.JSON))
		}
	}
}

// TestBlameEnds: the lines of an object are not made after the context has ended.
func TestBlameEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &journal.State{JSON: []byte(`{"kind":"Thing","spec":{"v":` + elements(10, "") + `}}`)}
	if lines, err := (&Builder{}).Blame(ctx, s); !errors.Is(err, context.Canceled) || lines != nil {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	// Nor is a long object, in the middle of its lines.
	object, err := jsonmap.Decode([]byte(`{"v":` + elements(2000, "") + `}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	b := blaming{ctx: ctx, root: &node{}}
	b.root.build(object, 0)
	seen := 0
	b.each(b.root, object, change.WritersOf(object), func(*node, change.Writers, any) {
		if seen++; seen == 100 {
			cancel()
		}
	})
	if seen == 2000 || !errors.Is(b.err, context.Canceled) {
		t.Errorf("%d leaves were visited, %v", seen, b.err)
	}
	p := printer{blaming: &b}
	if p.print(b.root, object, nil, "", "", 0); len(p.lines) != 0 {
		t.Errorf("%d lines afterwards", len(p.lines))
	}
}

// TestElements compares how the elements of a list are found with a search of the whole list.
func TestElements(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := []any{nil, "a", "b", "1", "null", int64(1), 1.0, 1.5, true, map[string]any{"name": "a"}, []any{"a"}}
	pick := func() any { return values[random.IntN(len(values))] }
	key := func() any { return values[random.IntN(len(values)-2)] } // a key is a scalar
	found := 0
	for range 300 {
		n := &node{}
		var list []any
		for range 1 + random.IntN(12) {
			item := pick()
			if random.IntN(3) > 0 {
				m := map[string]any{}
				for _, k := range []string{"name", "port", "protocol"} {
					if random.IntN(2) == 0 {
						m[k] = pick()
					}
				}
				item = m
			}
			list, n.items = append(list, item), append(n.items, &node{})
		}
		for range 20 {
			e := diff.Elem{Kind: diff.ElemKind(1 + random.IntN(3))}
			switch e.Kind {
			case diff.Index:
				e.Index = random.IntN(14)
			case diff.Value:
				e.Value = key()
			case diff.Keyed:
				for _, k := range []string{"name", "port", "protocol"}[random.IntN(3):] {
					e.Keys = append(e.Keys, diff.KeyValue{Name: k, Value: key()})
				}
			}
			want := -1
			for i, item := range list {
				if names(e, i, item) {
					want = i
					break
				}
			}
			if got := n.element(e, list); got != want {
				t.Fatalf("%s in %v: %d, want %d", diff.Path{e}, list, got, want)
			}
			if want >= 0 {
				found++
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d elements exist", found)
	}
}

// names reports whether a step of a path names an element of a list.
func names(e diff.Elem, i int, item any) bool {
	switch e.Kind {
	case diff.Index:
		return e.Index == i
	case diff.Value:
		return diff.Equal(e.Value, item)
	}
	m, ok := item.(map[string]any)
	for _, k := range e.Keys {
		ok = ok && diff.Equal(m[k.Name], k.Value)
	}
	return ok
}
