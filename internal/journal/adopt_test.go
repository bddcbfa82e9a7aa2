package journal

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
)

// TestResume: a stream takes over the objects that others hold of it, once, and only if they can be identified; otherwise it
// learns whether, and until when, it was watched.
func TestResume(t *testing.T) {
	all, shop, pay := Stream{GroupResource: "pods"}, Stream{GroupResource: "pods", Namespace: "shop"}, Stream{GroupResource: "pods", Namespace: "pay"}
	some, few := Stream{GroupResource: "pods", Selection: "labels"}, Stream{GroupResource: "pods", Selection: "other labels"}
	at := time.UnixMilli(1_000_000).UTC()
	head := func(live, ever bool) Head {
		return Head{Version: map[bool]string{true: "7"}[live], Epoch: 1, Live: live, EverLive: ever, Pipeline: "p", Identity: "i", At: at}
	}
	other := head(true, true)
	other.Epoch, other.At = 2, at.Add(time.Hour)
	older := head(true, true)
	older.At = at.Add(-time.Hour)
	gone := older
	gone.Pipeline = forgotten // set by Forget, below
	lost, lostSince := head(false, true), head(false, false)
	lost.At, lostSince.At = older.At, older.At
	for _, tc := range []struct {
		why   string
		have  map[Stream]Head
		to    Stream
		from  Origin
		want  Head
		names []string
	}{
		{"nothing is stored", nil, all, OriginNone, Head{}, nil},
		{"one namespace, from all namespaces", map[Stream]Head{all: head(true, true)}, shop, OriginOthers, head(true, true), []string{"all/shop"}},
		{"one namespace, from a list of all that never completed", map[Stream]Head{all: head(false, false)}, shop, OriginOthers, head(false, false), []string{"all/shop"}},
		{"all namespaces, from one", map[Stream]Head{shop: head(true, true)}, all, OriginOthers, head(false, false), []string{"shop/shop"}},
		{"all namespaces, from two: watched since the older one's time", map[Stream]Head{shop: head(true, true), pay: older}, all, OriginOthers, Head{Epoch: 1, Pipeline: "p", Identity: "i", At: older.At}, []string{"pay/pay", "shop/shop"}},
		{"all namespaces, from two epochs: the newer one's objects, the older one's time", map[Stream]Head{shop: head(true, true), pay: other}, all, OriginOthers, Head{Epoch: 2, Pipeline: "p", Identity: "i", At: at}, []string{"pay/pay"}},
		{"all objects, from a selection", map[Stream]Head{some: head(true, true)}, all, OriginOthers, head(false, false), []string{"some/pay", "some/shop"}},
		{"a selection, from all objects: those that do not match were not deleted", map[Stream]Head{all: head(true, true)}, some, OriginLost, Head{At: at}, nil},
		{"a selection, from another selection", map[Stream]Head{some: head(true, true)}, few, OriginLost, Head{At: at}, nil},
		{"a selection, from all objects and from one namespace", map[Stream]Head{all: head(true, true), pay: older}, some, OriginLost, Head{At: at}, nil},
		{"a selection, from two namespaces: watched since the older one's time", map[Stream]Head{shop: head(true, true), pay: older}, some, OriginLost, Head{At: older.At}, nil},
		{"a live stream keeps its own state", map[Stream]Head{shop: head(true, true), all: head(true, true)}, shop, OriginOwn, head(true, true), []string{"shop/shop"}},
		{"a stream whose list was interrupted keeps its own state", map[Stream]Head{some: head(false, true), all: head(true, true)}, some, OriginOwn, head(false, true), []string{"some/pay", "some/shop"}},
		{"a stream that lost objects gets them back from a namespace", map[Stream]Head{shop: head(true, true), all: head(false, true)}, all, OriginOthers, head(false, false), []string{"all/pay", "all/shop", "shop/shop"}},
		{"only another namespace is stored", map[Stream]Head{pay: head(true, true)}, shop, OriginNone, Head{}, nil},
		{"a forgotten stream", map[Stream]Head{all: gone}, all, OriginLost, Head{At: gone.At}, nil},
		{"a forgotten stream, while another kind is in another epoch", map[Stream]Head{all: gone, {GroupResource: "nodes"}: other}, all, OriginLost, Head{At: gone.At}, nil},
		{"one namespace, from a forgotten stream of all", map[Stream]Head{all: gone}, shop, OriginLost, Head{At: gone.At}, nil},
		{"all namespaces, from one and from a forgotten stream of all: the latter's time", map[Stream]Head{shop: head(true, true), all: gone}, all, OriginOthers, Head{Epoch: 1, Pipeline: "p", Identity: "i", At: gone.At}, []string{"shop/shop"}},
		{"a forgotten namespace, from all namespaces", map[Stream]Head{all: head(true, true), shop: gone}, shop, OriginOthers, head(true, true), []string{"all/shop"}},
		{"a stream that lost objects earlier: watched since that time", map[Stream]Head{shop: head(true, true), all: lost}, all, OriginOthers, lostSince, []string{"all/pay", "all/shop", "shop/shop"}},
	} {
		j := open(t, filepath.Join(t.TempDir(), "journal.db"))
		for s, h := range tc.have {
			b := Batch{Stream: s, Head: h}
			prefix := map[Stream]string{all: "all", shop: "shop", pay: "pay", some: "some"}[s]
			b.Head.Pipeline = "p"
			for _, ns := range []string{"pay", "shop"} {
				if s.Namespace == "" || s.Namespace == ns {
					r := pod(event.Snapshot, 1)
					r.Namespace, r.Name, r.UID = ns, prefix+"/"+ns, prefix+ns
					b.Rows = append(b.Rows, r)
				}
			}
			_, err := j.Append(t.Context(), []Batch{b})
			must(t, err)
			if h.Pipeline == forgotten {
				must(t, j.Forget(t.Context(), s))
			}
		}
		from, h, err := j.Resume(t.Context(), tc.to)
		if !h.At.IsZero() {
			h.At = h.At.UTC()
		}
		if err != nil || from != tc.from || h != tc.want {
			t.Errorf("%s: %d, %+v, %v; want %d, %+v", tc.why, from, h, err, tc.from, tc.want)
			continue
		}
		if kept, ok, err := j.Head(t.Context(), tc.to); err != nil || ok != (from == OriginOwn || from == OriginOthers) || ok && !kept.At.Equal(h.At) {
			t.Errorf("%s: kept %+v, %t, %v", tc.why, kept, ok, err)
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
		again, same, err := j.Resume(t.Context(), tc.to)
		if from == OriginOthers && (h.Live || again == OriginOwn) { // otherwise the same objects were taken over twice
			from = OriginOwn
		}
		if err != nil || again != from || same.Live != h.Live || !same.At.Equal(h.At) {
			t.Errorf("%s: again: %d, %+v, %v", tc.why, again, same, err)
		}
	}
}

// TestNamesakes: of two objects with one name, which two configurations saw, the newer one is live.
func TestNamesakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path)
	all, some := Stream{GroupResource: "pods"}, Stream{GroupResource: "pods", Selection: "labels"}
	at := time.UnixMilli(1_000_000)
	see := func(s Stream, name, uid string, version int) {
		t.Helper()
		r := pod(event.Snapshot, version)
		r.Name, r.UID = name, uid
		at = at.Add(time.Minute)
		_, err := j.Append(t.Context(), []Batch{{Stream: s, Head: Head{Version: r.ResourceVersion, Epoch: 1, Live: true, EverLive: true, At: at}, Rows: []Row{r}}})
		must(t, err)
	}
	see(all, "a", "first", 1)
	see(all, "b", "other", 2)
	see(some, "a", "second", 3)
	see(some, "b", "other", 2) // all has lost it, and so must be listed
	if from, _, err := j.Resume(t.Context(), all); from != OriginOthers || err != nil {
		t.Fatalf("%d, %v", from, err)
	}
	var uids []string
	for o, err := range j.Objects(t.Context(), all) {
		must(t, err)
		uids = append(uids, o.UID)
	}
	if slices.Sort(uids); !slices.Equal(uids, []string{"other", "second"}) {
		t.Errorf("live are %v", uids)
	}
	want := []string{`1 snapshot  -> {"kind":"Pod","version":1}`, `2 snapshot  -> {"kind":"Pod","version":2}`, `3 snapshot  -> {"kind":"Pod","version":3}`}
	if d := cmp.Diff(want, contents(t, path)); d != "" {
		t.Errorf("the history (-want +got):\n%s", d)
	}
}

// TestResumeForgotten: a stream does not resume a part that was forgotten.
func TestResumeForgotten(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal.db"))
	shop := Stream{GroupResource: "pods", Namespace: "shop"}
	r := pod(event.Snapshot, 1)
	r.Namespace = "shop"
	_, err := j.Append(t.Context(), []Batch{{Stream: pods, Head: Head{Version: "7", Live: true, EverLive: true, At: epoch}, Rows: []Row{r}}})
	must(t, err)
	if from, h, err := j.Resume(t.Context(), shop); from != OriginOthers || !h.Live || err != nil {
		t.Fatalf("%v, %+v, %v", from, h, err)
	}
	must(t, j.Forget(t.Context(), shop))
	if from, h, err := j.Resume(t.Context(), shop); from != OriginOthers || h.Live || h.Version != "" || err != nil {
		t.Errorf("%v, %+v, %v", from, h, err)
	}
}
