package change

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/jsonmap"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// shape describes an object that is costly to process.
type shape struct {
	depth, leaves, steps int // levels above the leaves, and how many of them have leaves themselves
	list                 bool
	name, managers       int // the length of names; entries of managed fields
}

// maxObject bounds the objects of a test; an API server accepts about 3 MiB.
const maxObject = 1 << 20

// object returns an object whose leaves all have values; nil if it exceeds the possible size.
func (s shape) object(t *testing.T, value string) []byte {
	t.Helper()
	leaf := strings.Repeat("n", s.name)
	if size := (s.leaves*(1+s.steps) + s.depth) * (s.name + 20); size+s.managers*150 > maxObject {
		return nil
	}
	leaves := func() map[string]any {
		m := map[string]any{}
		for i := range s.leaves {
			m[fmt.Sprint(leaf, i)] = value
		}
		return m
	}
	at := any(leaves())
	for i := range s.depth {
		if s.list && i%2 == 0 {
			at = []any{at}
			continue
		}
		m := map[string]any{}
		if i < s.steps {
			m = leaves()
		}
		m[leaf] = at
		at = m
	}
	var entries []any
	for i := range s.managers {
		entries = append(entries, map[string]any{
			"manager": fmt.Sprint("m", i), "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{}},
		})
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Hostile", "metadata": map[string]any{"name": "a", "managedFields": entries}, "spec": at,
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// checkCost builds a change between two versions of an object, its event and its text, and compares the cost
// with the object's size.
func checkCost(t *testing.T, s shape) {
	t.Helper()
	rules, err := quiet.New()
	if err != nil {
		t.Fatal(err)
	}
	raw, now := s.object(t, "before"), s.object(t, "after!")
	if raw == nil || len(raw) > maxObject {
		return
	}
	before, after, err := jsonmap.DecodePair(raw, now)
	if err != nil {
		t.Fatal(err)
	}
	took := func(what string, times int, do func()) {
		t.Helper()
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		do()
		runtime.ReadMemStats(&end)
		if n, most := end.TotalAlloc-start.TotalAlloc, uint64(32<<20+times*len(raw)); n > most {
			t.Errorf("%+v: %s allocated %d bytes of at most %d for an object of %d", s, what, n, most, len(raw))
		}
	}
	c := Change{Meta: Meta{Op: event.Updated, At: time.Now()}}
	took("the change", 60, func() { (&Builder{Quiet: rules}).Build(&c, before, after, nil) })
	var body []byte
	took("the event", 60, func() {
		if body, err = json.Marshal(Event("c", &c)); err != nil {
			t.Fatal(err)
		}
	})
	if len(body) > 1<<20+4*len(raw) {
		t.Errorf("%+v: an event of %d bytes for an object of %d", s, len(body), len(raw))
	}
	fields := make([]diff.Change, len(c.Fields))
	for i, f := range c.Fields {
		fields[i] = f.Change
	}
	length := 0
	for _, l := range diff.Text(fields, diff.TextOptions{MaxLines: -1}) {
		length += len(l.Text)
	}
	if most := 4<<20 + 80*len(raw); length > most {
		t.Errorf("%+v: a text of %d bytes of at most %d for an object of %d", s, length, most, len(raw))
	}
}

// TestCost: no object costs its recorder far more than its size.
func TestCost(t *testing.T) {
	for _, s := range []shape{
		{leaves: 6000, name: 30},
		{depth: 3000, leaves: 10000, name: 1},
		{depth: 9000, leaves: 10, steps: 1000, name: 1},
		{depth: 60, leaves: 200, steps: 60, name: 1},
		{depth: 20, leaves: 100, steps: 20, name: 100},
		{depth: 2000, leaves: 2000, list: true, name: 1},
		{leaves: 400, name: 2000},
		{depth: 3, leaves: 2, name: 100_000},
		{leaves: 5, name: 1, managers: 3000},
		{depth: 30, leaves: 500, name: 10, managers: 1000},
	} {
		checkCost(t, s)
	}
}

func FuzzCost(f *testing.F) {
	f.Add(uint16(1000), uint16(10000), uint16(0), false, uint16(1), uint16(0))
	f.Add(uint16(30), uint16(200), uint16(30), true, uint16(10), uint16(100))
	f.Fuzz(func(t *testing.T, depth, leaves, steps uint16, list bool, name, managers uint16) {
		checkCost(t, shape{
			depth: int(depth % 9900), leaves: int(leaves), steps: int(steps), list: list, name: 1 + int(name), managers: int(managers),
		})
	})
}
