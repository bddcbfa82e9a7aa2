package decode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// address returns the address of a map or slice.
func address(v any, path ...string) uintptr {
	for _, p := range path {
		if list, ok := v.([]any); ok {
			v = list[p[0]-'0']
		} else {
			v = v.(map[string]any)[p]
		}
	}
	return reflect.ValueOf(v).Pointer()
}

// TestJSONShares: after a few pods, pods of one template share their common parts; without a table nothing.
func TestJSONShares(t *testing.T) {
	raws := jsonPods(16, 1, 1)
	table := NewTable(1 << 20)
	decode := func(table *Table, raw []byte) map[string]any {
		m, _, err := JSON(table, raw)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var all []map[string]any
	for _, raw := range raws {
		all = append(all, decode(table, raw))
	}
	a, b, first, own, other := all[14], all[15], all[0], decode(nil, raws[15]), decode(nil, raws[15])
	containers, labels := []string{"spec", "containers", "0", "env"}, []string{"metadata", "labels"}
	text := func(key string) bool { return unsafe.StringData(a[key].(string)) == unsafe.StringData(b[key].(string)) }
	for what, same := range map[string]bool{
		"env":                                  address(a, containers...) == address(b, containers...),
		"labels":                               address(a, labels...) == address(b, labels...),
		"a short string":                       text("kind") || text("apiVersion"), // one may share its slot with another string
		"a part seen once is not in the table": address(a, containers...) != address(first, containers...),
		"objects":                              address(a) != address(b),
		"own env":                              address(a, containers...) != address(own, containers...),
		"own env again":                        address(other, containers...) != address(own, containers...),
		"own, empty":                           address(other, "status", "empty") != address(own, "status", "empty"),
	} {
		if !same {
			t.Errorf("%s: %v", what, same)
		}
	}
	if st := table.Stats(); st.Parts < 10 || st.Bytes < 1000 {
		t.Errorf("%+v", st)
	}
}

// TestJSONSize: the estimated size of an object is close to the measured one, without shared parts.
func TestJSONSize(t *testing.T) {
	raws := jsonPods(400, 4, 1)
	for name, table := range map[string]*Table{"own": nil, "shared": NewTable(1 << 20)} {
		for _, raw := range raws { // fills the table
			if _, _, err := JSON(table, raw); err != nil {
				t.Fatal(err)
			}
		}
		all, sum := make([]map[string]any, len(raws)), int64(0)
		before := heap()
		for i, raw := range raws {
			m, r, err := JSON(table, raw)
			if err != nil {
				t.Fatal(err)
			}
			all[i], sum = m, sum+r.Size
		}
		after := heap()
		runtime.KeepAlive(all)
		if is := after - before; sum < is*8/10 || sum > is*12/10 {
			t.Errorf("%s: %d bytes, estimated %d", name, is/int64(len(raws)), sum/int64(len(raws)))
		}
	}
}

// heap returns the bytes of the heap in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestJSONFailureLeavesNothing: the parts of an undecodable object do not enter the table.
func TestJSONFailureLeavesNothing(t *testing.T) {
	raw := jsonPods(1, 1, 1)[0]
	table := NewTable(1 << 20)
	twice := append([]byte(`{"kind":1,`), raw[1:]...)
	for range 5 {
		for _, raw := range [][]byte{append(raw[:len(raw):len(raw)], 'x'), twice} {
			if _, _, ok := quickJSON(table, raw); ok {
				t.Fatal("it was decoded")
			}
		}
	}
	if n := table.Stats().Parts; n > 0 {
		t.Errorf("there are %d parts", n)
	}
}

// corrupt changes some bytes, or cuts some off.
func corrupt(rnd *rand.Rand, raw []byte) []byte {
	raw = bytes.Clone(raw)
	for range 1 + rnd.IntN(3) {
		i := rnd.IntN(len(raw))
		switch rnd.IntN(4) {
		case 0:
			raw[i] = byte(rnd.Uint32())
		case 1:
			raw[i] = `{}[]",:\0e`[rnd.IntN(10)]
		case 2:
			j := i + rnd.IntN(min(40, len(raw)-i))
			raw = append(raw[:i:i], raw[j:]...)
		default:
			raw = raw[:i+1]
		}
	}
	return raw
}

// TestJSONPoison: corrupt objects leave nothing in a table that affects valid ones.
func TestJSONPoison(t *testing.T) {
	raws := jsonPods(20, 3, 4)
	want := make([]map[string]any, len(raws))
	for i, raw := range raws {
		if err := utiljson.Unmarshal(raw, &want[i]); err != nil {
			t.Fatal(err)
		}
	}
	table, rnd := NewTable(1<<16), rand.New(rand.NewPCG(1, 1))
	for range 300 {
		bad := corrupt(rnd, raws[rnd.IntN(len(raws))])
		sameJSON(t, table, bad)
		n := rnd.IntN(len(raws))
		if got, _, err := JSON(table, raws[n]); err != nil || !reflect.DeepEqual(got, want[n]) {
			t.Fatalf("after %s: %v, %v", bad, got, err)
		}
	}
}

// TestJSONConcurrent: several goroutines fill, use and sweep a table, and every object is right.
func TestJSONConcurrent(t *testing.T) {
	raws := jsonPods(100, 5, 3)
	want := make([]map[string]any, len(raws))
	for i, raw := range raws {
		if err := utiljson.Unmarshal(raw, &want[i]); err != nil {
			t.Fatal(err)
		}
	}
	table := NewTable(1 << 16) // small, so that it fills up
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 150 {
				n := (i*7 + w*31) % len(raws)
				of := table
				if i%4 == 0 {
					of = nil
				}
				if got, _, err := JSON(of, raws[n]); err != nil || !reflect.DeepEqual(got, want[n]) {
					t.Errorf("%v, %v", got, err)
				}
				if i%50 == 0 {
					table.Sweep()
				}
			}
		})
	}
	all.Wait()
}

// TestJSONChurn: with changing templates the table stays within its limit, and Sweep drops unused parts.
func TestJSONChurn(t *testing.T) {
	const limit = 1 << 18
	table := NewTable(limit)
	full := false
	for round := range uint64(60) {
		for _, raw := range jsonPods(12, 2, round) {
			if _, _, err := JSON(table, raw); err != nil {
				t.Fatal(err)
			}
		}
		parts := int64(0)
		for i := range table.shards {
			parts += table.shards[i].size + table.shards[i].oldSize
		}
		if parts > limit*3/2 {
			t.Fatalf("round %d: %d bytes of parts", round, parts)
		}
		full = full || parts > limit/2
	}
	if !full {
		t.Error("it was never full")
	}
	table.Sweep()
	table.Sweep()
	if st := table.Stats(); st.Parts != 0 {
		t.Errorf("%+v", st)
	}
}

// TestJSONStringsOfParts: a part that outlives its object does not keep the object's strings.
func TestJSONStringsOfParts(t *testing.T) {
	table := NewTable(1 << 20)
	decode := func() (any, weak.Pointer[byte]) {
		own, shared := strings.Repeat("of the object ", 100), strings.Repeat("of the part ", 100)
		m, _, err := JSON(table, fmt.Appendf(nil, `{"own":%q,"part":{"a":%q,"b":["c"]},"more":"text"}`, own, shared))
		if err != nil {
			t.Fatal(err)
		}
		return m["part"], weak.Make(unsafe.StringData(m["own"].(string)))
	}
	decode()
	part, text := decode() // the second time it becomes a part
	for range 3 {
		runtime.GC()
	}
	if text.Value() != nil {
		t.Error("the object's strings are kept")
	}
	if want := (map[string]any{"a": strings.Repeat("of the part ", 100), "b": []any{"c"}}); !reflect.DeepEqual(part, want) {
		t.Error(part)
	}
	if table.Stats().Parts == 0 {
		t.Error("there is no part")
	}
}
