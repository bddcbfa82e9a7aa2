package daemon

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestChangesSize compares the estimate with the heap.
func TestChangesSize(t *testing.T) {
	const count = 10_000 // so many that leftovers of other tests do not show
	for _, value := range []string{`"text of some length"`, `{"name":"a","list":[1,"two",{"x":"y"}],"labels":{"app":"web","tier":"front"}}`, `[1,2,3,4,5]`} {
		var start, end runtime.MemStats
		var kept [][]change.FieldChange
		var events [][]event.Change
		var bodies [][]byte
		for last := uint64(math.MaxUint64); ; last = start.HeapAlloc { // until nothing of other tests is left to free
			runtime.GC()
			if runtime.ReadMemStats(&start); start.HeapAlloc >= last-last/100 {
				break
			}
		}
		for i := range count {
			var from, to any
			for _, at := range []*any{&from, &to} {
				if err := json.Unmarshal([]byte(value), at); err != nil {
					t.Fatal(err)
				}
			}
			path, err := diff.ParsePath(fmt.Sprint("status.some.field", i))
			if err != nil {
				t.Fatal(err)
			}
			c := []change.FieldChange{{Change: diff.Change{Path: path, Op: diff.Replace, From: from, To: to}, Manager: "m"}}
			e := []event.Change{c[0].Event()}
			body, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			kept, events, bodies = append(kept, c), append(events, e), append(bodies, body)
		}
		runtime.GC()
		runtime.ReadMemStats(&end)
		size := 0
		for _, c := range kept {
			size += changesSize(c)
		}
		used := int(end.HeapAlloc) - int(start.HeapAlloc)
		if size < used/3 || size > 3*used {
			t.Errorf("%s: estimated %d bytes, used %d", value, size/count, used/count)
		}
		runtime.KeepAlive(bodies)
		runtime.KeepAlive(events)
	}
}
