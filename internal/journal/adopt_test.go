package journal

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// TestAdopt: a stream gets what others hold of it, once, and only where that can be known.
func TestAdopt(t *testing.T) {
	all, shop, pay := Stream{GroupResource: "pods"}, Stream{GroupResource: "pods", Namespace: "shop"}, Stream{GroupResource: "pods", Namespace: "pay"}
	some := Stream{GroupResource: "pods", Selection: "labels"}
	at := time.UnixMilli(1_000_000).UTC()
	head := func(live, ever bool) Head {
		return Head{Version: map[bool]string{true: "7"}[live], Epoch: 1, Live: live, EverLive: ever, Pipeline: "p", Identity: "i", At: at}
	}
	other := head(true, true)
	other.Epoch, other.At = 2, at.Add(time.Hour)
	older := head(true, true)
	older.At = at.Add(-time.Hour)
	for _, tc := range []struct {
		why   string
		have  map[Stream]Head
		to    Stream
		want  Head // zero: nothing is adopted
		names []string
	}{
		{"nothing is known", nil, all, Head{}, nil},
		{"a namespace of all", map[Stream]Head{all: head(true, true)}, shop, head(true, true), []string{"all/shop"}},
		{"of what was never listed whole", map[Stream]Head{all: head(false, false)}, shop, head(false, false), []string{"all/shop"}},
		{"all of a namespace", map[Stream]Head{shop: head(true, true)}, all, head(false, false), []string{"shop/shop"}},
		{"all of two: since the older", map[Stream]Head{shop: head(true, true), pay: older}, all, Head{Epoch: 1, Pipeline: "p", Identity: "i", At: older.At}, []string{"pay/pay", "shop/shop"}},
		{"of two histories, the newer", map[Stream]Head{shop: head(true, true), pay: other}, all, Head{Epoch: 2, Pipeline: "p", Identity: "i", At: other.At}, []string{"pay/pay"}},
		{"all of what was selected", map[Stream]Head{some: head(true, true)}, all, head(false, false), []string{"some/pay", "some/shop"}},
		{"a selection of all: what it leaves out was not deleted", map[Stream]Head{all: head(true, true)}, some, Head{}, nil},
		{"one that is live has its own", map[Stream]Head{shop: head(true, true), all: head(true, true)}, shop, Head{}, []string{"shop/shop"}},
		{"one that lost some gets them back", map[Stream]Head{shop: head(true, true), all: head(false, true)}, all, head(false, false), []string{"all/pay", "all/shop", "shop/shop"}},
		{"another namespace", map[Stream]Head{pay: head(true, true)}, shop, Head{}, nil},
	} {
		j := open(t, filepath.Join(t.TempDir(), "journal.db"))
		for s, h := range tc.have {
			b := Batch{Stream: s, Head: h}
			prefix := map[Stream]string{all: "all", shop: "shop", pay: "pay", some: "some"}[s]
			for _, ns := range []string{"pay", "shop"} {
				if s.Namespace == "" || s.Namespace == ns {
					r := pod(event.Snapshot, 1)
					r.Namespace, r.Name, r.UID = ns, prefix+"/"+ns, prefix+ns
					b.Rows = append(b.Rows, r)
				}
			}
			if _, err := j.Append(t.Context(), []Batch{b}); err != nil {
				t.Fatal(err)
			}
		}
		adopted, err := j.Adopt(t.Context(), tc.to)
		if err != nil || adopted != (tc.want != Head{}) {
			t.Errorf("%s: %t, %v", tc.why, adopted, err)
			continue
		}
		h, _, err := j.Head(t.Context(), tc.to)
		h.At = h.At.UTC()
		if err != nil || adopted && h != tc.want {
			t.Errorf("%s: head %+v, %v; want %+v", tc.why, h, err, tc.want)
		}
		var names []string
		for o, err := range j.Objects(t.Context(), tc.to) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, o.Name)
		}
		if slices.Sort(names); !slices.Equal(names, tc.names) {
			t.Errorf("%s: objects %v, want %v", tc.why, names, tc.names)
		}
		if again, err := j.Adopt(t.Context(), tc.to); err != nil || again && h.Live {
			t.Errorf("%s: again: %t, %v", tc.why, again, err)
		}
	}
}
