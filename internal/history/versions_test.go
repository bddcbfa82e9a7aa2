package history

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestKeepVersions: concurrent readers at different places of a history get the same changes as without a cache, whatever
// its limit.
func TestKeepVersions(t *testing.T) {
	p := newPast(t)
	object := func(i, version int) string {
		return fmt.Sprintf(`{"kind":"Thing","metadata":{"labels":{"n":"%[1]d"},"managedFields":[{"manager":"m%[3]d","operation":"Update","fieldsV1":{"f:spec":{"f:to":{}}}},`+
			`{"manager":"other","fieldsV1":{"f:spec":{"f:some":{}}}}],"resourceVersion":"%[2]d"},"spec":{"to":%[2]d,"some":[{"name":"a","x":%[4]d},{"name":"b"}]},"more":{"x":[1,{"y":"%[5]s"}]}}`,
			i, version, version/4, version/3, strings.Repeat("y", 100+version/5))
	}
	const objects, updates = 8, 20
	var rows []journal.Row
	for version := range updates {
		for i := range objects {
			r := row(event.Updated, strconv.Itoa(1+version*objects+i), object(i, version-1), object(i, version))
			if r.Name, r.UID = fmt.Sprint("a", i), fmt.Sprint("u", i); version == 0 {
				r.Op, r.Before = event.Created, nil
			}
			rows = append(rows, r)
		}
	}
	p.add("", rows...)
	want := p.changes(0)
	read := func(tell *Builder, after int64, lean bool) error {
		for e, err := range p.r.Rows(t.Context(), journal.Query{After: after, OldestFirst: true}) {
			if err != nil {
				return err
			}
			before, after, err := e.Contents(t.Context())
			if err != nil {
				return err
			}
			got, _, err := tell.Make(t.Context(), &e, before, after, lean)
			if err != nil {
				return err
			}
			w := want[e.Seq-1]
			if lean && e.Op.Differs() {
				w.Before, w.After = nil, nil
			}
			if d := cmp.Diff(change.Event("c", &w), change.Event("c", &got)); d != "" {
				return fmt.Errorf("change %d (-want +got):\n%s", e.Seq, d)
			}
			if d := cmp.Diff([]map[string]any{w.Before, w.After}, []map[string]any{got.Before, got.After}); d != "" {
				return fmt.Errorf("the objects of change %d (-want +got):\n%s", e.Seq, d)
			}
		}
		return nil
	}
	for _, limit := range []int{1, 4 << 10, 20 << 10, 1 << 20} {
		tell := New(p.r, p.tell.builder.Quiet)
		tell.KeepVersions(limit)
		var readers sync.WaitGroup
		for i := range 4 {
			readers.Go(func() {
				if err := read(tell, int64(i/2*objects*5), i%2 == 0); err != nil {
					t.Errorf("with %d bytes: %v", limit, err)
				}
			})
		}
		readers.Wait()
		size := 0
		for _, v := range tell.versions.of {
			size += v.Size()
		}
		if size != tell.versions.size || size > limit {
			t.Errorf("%d bytes are kept, %d counted, of at most %d", size, tell.versions.size, limit)
		}
		if kept := len(tell.versions.of); limit == 1<<20 && kept != objects || limit == 1 && kept > 0 {
			t.Errorf("with %d bytes: %d objects are kept", limit, kept)
		}
	}
}
