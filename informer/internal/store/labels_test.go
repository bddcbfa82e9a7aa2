package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// encoded returns a label set in the form of LabelsOf.
func encoded(m map[string]string) LabelSet {
	b := []byte{labelsKnown}
	for k, v := range m {
		b = appendText(appendText(b, []byte(k)), []byte(v))
	}
	return LabelSet(sortLabels(b))
}

// selectors of every kind, for labels that some, all and no objects have.
var selectors = []string{
	"app=a", "app==b,tier=x", "app in (a,c,a),tier", "tier", "!tier", "app!=a", "app notin (a,b)", "app notin (a),tier in (x,y)", "n>1", "n<2,app",
	"none", "!none", "none=a", "app=none", "app in (a,none)", "app=a,app=b", "", "app,!app", "empty=", "empty",
}

// odd is a selector implemented outside apimachinery.
type odd struct{ labels.Selector }

var askedBefore = map[string][]labels.Selector{}

// asked returns equivalent selectors in all forms.
func asked(t testing.TB, text string) []labels.Selector {
	if all := askedBefore[text]; all != nil {
		return all
	}
	t.Helper()
	s, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	all := []labels.Selector{s, odd{s}}
	if set, err := labels.ConvertSelectorToLabelsMap(text); err == nil {
		all = append(all, labels.ValidatedSetSelector(set))
	}
	askedBefore[text] = all
	return all
}

// labelModel is the expected content of an index of labels.
type labelModel map[Key]LabelSet

func (m labelModel) keys(namespace string, is func(LabelSet) bool) []Key {
	var keys []Key
	for k, l := range m {
		if (namespace == "" || namespace == k.Namespace) && is(l) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func keysOf(items []Item) []Key {
	var keys []Key
	for _, it := range items {
		keys = append(keys, it.Key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// TestLabelIndex compares the index with a map through random commits.
func TestLabelIndex(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, model := New(0), labelModel{}
		s.Begin(false, 0)
		s.Commit(Commit{Sweep: true, Version: "1"})
		s.IndexLabels()
		for rv := range 300 {
			k := Key{fmt.Sprint("n", r.IntN(3)), fmt.Sprint("o", r.IntN(40))}
			v := pack(wire.JSON, fmt.Sprint("u", r.IntN(2)), fmt.Sprint(1000+rv), []byte(fmt.Sprint(rv)))
			c := Change{Key: k, V: v}
			switch n := r.IntN(20); {
			case n < 4:
				c.Delete = true
				delete(model, k)
			case n == 4:
				model[k] = "" // stored before the index was added
			case n == 5:
				model[k] = UnreadableLabels
			default:
				m := map[string]string{}
				for _, key := range []string{"app", "tier", "n", "empty"} {
					if r.IntN(2) == 0 {
						m[key] = map[string][]string{"app": {"a", "b", "c"}, "tier": {"x", "y"}, "n": {"1", "2", "z"}, "empty": {""}}[key][r.IntN(map[string]int{"app": 3, "tier": 2, "n": 3, "empty": 1}[key])]
					}
				}
				model[k] = encoded(m)
			}
			if c.Labels = model[k]; c.Delete {
				c.V = nil
				if old := s.Get(k); old != nil {
					c.UID, c.RV = old.UID(), fmt.Sprint(1000+rv)
				}
			}
			s.Commit(Commit{Changes: []Change{c}})
			if r.IntN(100) == 0 { // fill in unknown labels
				for _, it := range s.Select("", labels.Nothing()).Unknown {
					model[it.Key] = encoded(map[string]string{"app": "a"})
					s.SetLabels([]Labelled{{it, model[it.Key]}})
				}
			}
			if rv%30 == 0 {
				model.compare(t, s)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, rv)
			}
		}
		for k := range model { // the empty index must keep nothing
			s.Commit(Commit{Changes: []Change{{Key: k, UID: s.Get(k).UID(), RV: "9999", Delete: true}}})
		}
		if x := s.labels; len(x.places)+x.groups.used+len(x.keys)+len(x.spaces)+len(x.unreadable.groups) > 0 || len(x.free) != len(x.byID) {
			t.Errorf("left: %d places, %d groups, keys %v, namespaces %v", len(x.places), x.groups.used, x.keys, x.spaces)
		}
	}
}

func (m labelModel) compare(t *testing.T, s *Store) {
	t.Helper()
	for _, text := range selectors {
		for _, selector := range asked(t, text) {
			for _, namespace := range []string{"", "n0", "n1", "other"} {
				got := s.Select(namespace, selector)
				found := m.keys(namespace, func(l LabelSet) bool {
					set, ok := l.Map()
					return ok && selector.Matches(labels.Set(set))
				})
				if have := keysOf(got.Found); !slices.Equal(have, found) {
					t.Errorf("%T %q in %q: %v, want %v", selector, text, namespace, have, found)
				}
				if have, want := keysOf(got.Unsure), m.keys(namespace, func(l LabelSet) bool { return l == UnreadableLabels }); !slices.Equal(have, want) {
					t.Errorf("unreadable: %v, want %v", have, want)
				}
				if have, want := keysOf(got.Unknown), m.keys(namespace, func(l LabelSet) bool { return l == "" }); !slices.Equal(have, want) {
					t.Errorf("not known: %v, want %v", have, want)
				}
			}
		}
	}
}

// TestLabelsOf: unsorted or repeated labels are read as the decoders read them.
func TestLabelsOf(t *testing.T) {
	for text, want := range map[string]LabelSet{
		`{}`:                           encoded(nil),
		`{"metadata":{"labels":null}}`: encoded(nil),
		`{"metadata":{"labels":{"b":"1","a":"2"}}}`:         encoded(map[string]string{"a": "2", "b": "1"}),
		`{"metadata":{"labels":{"a":"1","b":"2","a":"3"}}}`: encoded(map[string]string{"a": "3", "b": "2"}),
		`{"metadata":{"labels":{"":"","\u0061":"x"}}}`:      encoded(map[string]string{"": "", "a": "x"}),
		`{"metadata":{"labels":{"a":1}}}`:                   UnreadableLabels,
		`{"metadata":`:                                      UnreadableLabels,
	} {
		if got, _ := LabelsOf(wire.JSON, []byte(text), nil); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestLabelIndexSize measures the index for 20,000 objects that share label sets, like the pods of Deployments, and
// for as many with unique ones, like those of StatefulSets.
func TestLabelIndexSize(t *testing.T) {
	for _, test := range []struct {
		why    string
		apart  bool
		atMost int
	}{{"shared", false, 48}, {"one each", true, 640}} {
		s := New(0)
		const n = 20_000
		for i := range n {
			s.table.add(Key{"n", fmt.Sprint("o", i)}, nil, 0)
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.IndexLabels()
		i := 0
		s.table.each(func(sp *space, o *object) {
			m := map[string]string{"app": fmt.Sprint("app-", i%200), "component": "web", "pod-template-hash": fmt.Sprint("5d7f9c8b-", i%400), "tier": "a", "team": fmt.Sprint(i % 20)}
			if test.apart {
				m["statefulset.kubernetes.io/pod-name"] = o.name
			}
			s.labels.set(o, sp.name, encoded(m))
			i++
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		per := int(after.HeapAlloc-before.HeapAlloc) / n
		t.Logf("%s: %d B of heap an object, by its own count %d", test.why, per, s.labels.bytes()/n)
		if per > test.atMost {
			t.Errorf("%s: %d B an object, want at most %d", test.why, per, test.atMost)
		}
		runtime.KeepAlive(s)
	}
}
