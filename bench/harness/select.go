package harness

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// FewOf returns a selector by one label's value that selects about one in a hundred of the objects with these
// labels. It is deterministic.
func FewOf(all iter.Seq[map[string]string]) (labels.Selector, error) {
	type label struct{ key, value string }
	n, counts := 0, map[label]int{}
	for set := range all {
		n++
		for k, v := range set {
			counts[label{k, v}]++
		}
	}
	if len(counts) == 0 {
		return nil, errors.New("choose a selector: no labels")
	}
	off := func(l label) int { return max(counts[l]*100-n, n-counts[l]*100) }
	best := slices.MinFunc(slices.Collect(maps.Keys(counts)), func(a, b label) int {
		return cmp.Or(cmp.Compare(off(a), off(b)), cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value))
	})
	s, err := labels.Parse(best.key + "=" + best.value)
	if err != nil {
		return nil, fmt.Errorf("choose a selector: %w", err)
	}
	return s, nil
}
