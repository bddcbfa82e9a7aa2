package store

import (
	"fmt"
	"maps"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// toyIndex has one value for each object, "?" if unknown.
type toyIndex struct {
	*source
	slot   int // -1: not added
	values map[Key]string
	want   map[Key]string
	todo   []Item
}

func (x *toyIndex) Set(k Key, values any) {
	if x.slot < 0 {
		x.Errorf("a removed index is called for %v", k)
	}
	x.values[k] = "?"
	if v, ok := values.(string); ok {
		x.values[k] = v
	}
}

func (x *toyIndex) Delete(k Key) { delete(x.values, k) }

func (x *toyIndex) Clear() { clear(x.values) }

func (x *toyIndex) add() {
	if x.slot >= 0 {
		return
	}
	x.values, x.want = map[Key]string{}, map[Key]string{}
	x.slot = x.store.AddIndex(x)
	x.todo = x.store.Snapshot("")
}

func (x *toyIndex) drop() {
	if x.slot >= 0 {
		slot := x.slot
		x.slot = -1
		x.store.RemoveIndex(slot)
		if x.store.SetIndex(slot, Key{}, nil, nil) {
			x.Error("set in an index that was removed")
		}
	}
}

// fill sets one object that existed before the index.
func (x *toyIndex) fill() {
	if x.slot < 0 || len(x.todo) == 0 {
		return
	}
	item := x.todo[0]
	x.todo = x.todo[1:]
	h := x.ref.has[item.Key]
	want := h != nil && h.v == item.V
	if x.store.SetIndex(x.slot, item.Key, item.V, "filled") != want {
		x.Fatalf("set index of %v: want %t", item.Key, want)
	}
	if want {
		x.want[item.Key] = "filled"
	}
}

// hear records the changes that a commit must make to the index.
func (x *toyIndex) hear(m meaning, changes []Change) {
	if x.slot < 0 {
		return
	}
	if m.Op == Deleted {
		delete(x.want, m.Key)
		return
	}
	x.want[m.Key] = "?"
	for _, c := range changes {
		if c.V == m.New && x.slot < len(c.Index) {
			x.want[m.Key] = fmt.Sprint(c.Index[x.slot])
		}
	}
}

func (x *toyIndex) check() {
	x.Helper()
	if x.slot < 0 {
		return
	}
	x.store.View(func(get func(Key) *compact.Version) {
		if !maps.Equal(x.values, x.want) {
			x.Errorf("the index has %v, want %v", x.values, x.want)
		}
		for k := range x.values {
			if get(k) == nil {
				x.Errorf("the index has %v, which was deleted", k)
			}
		}
	})
}
