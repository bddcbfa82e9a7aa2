package gen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSizes: the sizes of pods, and their spread, are like those of real clusters.
func TestSizes(t *testing.T) {
	for _, seed := range []uint64{1, 2} {
		g := New(seed)
		for _, c := range []struct {
			name     string
			format   Format
			lo, hi   int // of the mean, bytes
			min, max int // of the smallest and the largest, at least and at most that far out
		}{
			{"protobuf", Protobuf, 5300, 6500, 4200, 10_000},
			{"JSON", JSON, 8000, 9500, 6000, 14_000},
		} {
			t.Run(fmt.Sprintf("seed %d, %s", seed, c.name), func(t *testing.T) {
				e, sizes := g.NewEncoder(c.format), []int(nil)
				for i := range 10_000 {
					sizes = append(sizes, e.Size(i, 0))
				}
				mean, lo, hi := 0, slices.Min(sizes), slices.Max(sizes)
				for _, n := range sizes {
					mean += n
				}
				mean /= len(sizes)
				t.Logf("mean %d, from %d to %d bytes", mean, lo, hi)
				if mean < c.lo || mean > c.hi {
					t.Errorf("the mean is %d bytes, not between %d and %d", mean, c.lo, c.hi)
				}
				if lo > c.min || hi < c.max {
					t.Errorf("sizes from %d to %d; want some below %d and above %d", lo, hi, c.min, c.max)
				}
			})
		}
	}
}

// TestWidgetSizes: a widget has some 1 to 2 KB before the API server adds metadata.
func TestWidgetSizes(t *testing.T) {
	g := New(1)
	sum, lo, hi, shapes := 0, 1<<30, 0, map[string]bool{}
	const n = 2000
	for i := range n {
		w := g.Widget(i)
		b, err := w.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		sum, lo, hi = sum+len(b), min(lo, len(b)), max(hi, len(b))
		shapes[strings.Join(paths(w.Object["spec"], ""), " ")] = true
	}
	t.Logf("mean %d, from %d to %d bytes, %d shapes", sum/n, lo, hi, len(shapes))
	if mean := sum / n; mean < 1000 || mean > 3000 {
		t.Errorf("the mean is %d bytes", mean)
	}
	if len(shapes) < Owners/2 {
		t.Errorf("%d owners have %d shapes", Owners, len(shapes))
	}
}

// TestSeed: the data depend on the seed, not on the order of the calls.
func TestSeed(t *testing.T) {
	all := func(seed uint64, order []int) map[int]string {
		g, m := New(seed), map[int]string{}
		for _, i := range order {
			b, err := json.Marshal([]any{g.Pod(i), g.Widget(i), g.Node(i % Nodes), g.Namespace(i % Namespaces)})
			if err != nil {
				t.Fatal(err)
			}
			m[i] = string(b)
		}
		return m
	}
	order := []int{0, 1, 7, 199, 4711, 999_999}
	back := slices.Clone(order)
	slices.Reverse(back)
	one, again, two := all(1, order), all(1, back), all(2, order)
	for _, i := range order {
		if one[i] != again[i] {
			t.Errorf("object %d of one seed differs:\n%s\n%s", i, one[i], again[i])
		}
		if one[i] == two[i] {
			t.Errorf("object %d of two seeds is the same: %s", i, one[i])
		}
	}
}

// TestEncoder: an Encoder appends the same bytes as Encode.
func TestEncoder(t *testing.T) {
	g := New(1)
	for _, f := range []Format{Protobuf, JSON} {
		e := g.NewEncoder(f)
		for n := range 1700 {
			i := n
			if n >= 1500 { // and the last ones
				i = MaxPods - 1 - (n - 1500)
			}
			for _, step := range []int{0, 1, 2, 3, 9} {
				pod := g.PodAfter(i, step)
				pod.ResourceVersion = "4000000001"
				if got, want := e.Append(nil, i, step, 4000000001), Encode(f, pod); !bytes.Equal(got, want) {
					t.Fatalf("format %d, pod %d, step %d:\n%q\nwant\n%q", f, i, step, got, want)
				}
			}
		}
	}
}

// TestUpdates: each update by kubelet changes the status, and nothing else.
func TestUpdates(t *testing.T) {
	g := New(1)
	for i := range 300 {
		for step := range 6 {
			before, after := g.PodAfter(i, step), g.PodAfter(i, step+1)
			a, b := encode(t, before.Status), encode(t, after.Status)
			if a == b {
				t.Fatalf("pod %d: update %d changes nothing", i, step+1)
			}
			for _, p := range []*corev1.Pod{before, after} {
				p.Status, p.ManagedFields = corev1.PodStatus{}, nil
			}
			if a, b := encode(t, before), encode(t, after); a != b {
				t.Fatalf("pod %d: update %d changes more than the status:\n%s\n%s", i, step+1, a, b)
			}
		}
	}
}

// TestNames: names of pods are unique, and Index finds a pod by its name.
func TestNames(t *testing.T) {
	g := New(1)
	seen := map[string]int{}
	for i := range 50_000 {
		ns, name := g.Name(i)
		if j, ok := seen[ns+"/"+name]; ok {
			t.Fatalf("pods %d and %d are both %s/%s", j, i, ns, name)
		}
		seen[ns+"/"+name] = i
		if j, ok := g.Index(ns, name); j != i || !ok {
			t.Fatalf("pod %d, %s/%s, is found as %d, %t", i, ns, name, j, ok)
		}
	}
	for _, name := range []string{"", "x", "checkout-api-", "checkout-api-bbbbb", "checkout-api-99999999999999999999", "checkout-db-a1-8000001"} {
		if i, ok := g.Index("checkout", name); ok {
			t.Errorf("%q is found as pod %d", name, i)
		}
	}
}

// paths are the paths of all values below v, without the indexes of lists.
func paths(v any, at string) []string {
	var all []string
	switch v := v.(type) {
	case object:
		for key, child := range v {
			all = append(all, paths(child, at+"."+key)...)
		}
	case []any:
		for _, child := range v {
			all = append(all, paths(child, at+"[]")...)
		}
	default:
		return []string{at}
	}
	slices.Sort(all)
	return all
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func BenchmarkEncoder(b *testing.B) {
	e := New(1).NewEncoder(Protobuf)
	var buf []byte
	for i := range 20_000 {
		e.Size(i, 0)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		buf = e.Append(buf[:0], i%20_000, 0, FirstVersion)
	}
	b.SetBytes(int64(len(buf)))
}
