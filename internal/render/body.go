package render

import (
	"fmt"
	"strings"

	"github.com/tattler-dev/tattler/diff"
)

// bodyLines is how many lines of a created object are printed.
const bodyLines = 15

// body prints what a created object wants: all but its identity and its status.
func (t *Text) body(obj map[string]any) {
	shown := map[string]any{}
	for key, v := range obj {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if v != nil {
				shown[key] = v
			}
		}
	}
	if m := bodyMetadata(obj); len(m) > 0 {
		shown["metadata"] = m
	}
	if len(shown) == 0 {
		return
	}
	lines := diff.YAML(shown)
	left := 0
	if !t.o.Full && len(lines) > bodyLines {
		left = len(lines) - bodyLines
		lines = lines[:bodyLines]
	}
	for _, l := range lines {
		t.line(t.detail(plain, l))
	}
	if left > 0 {
		t.line(t.detail(dim, fmt.Sprintf("… %d more (--full)", left)))
	}
}

// bodyMetadata is what of the metadata somebody chose: labels, annotations, finalizers.
func bodyMetadata(obj map[string]any) map[string]any {
	m := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		chosen := map[string]any{}
		for k, v := range fields(obj, "metadata", key) {
			if !repeats(k) {
				chosen[k] = v
			}
		}
		if len(chosen) > 0 {
			m[key] = chosen
		}
	}
	if f := list(obj, "metadata", "finalizers"); len(f) > 0 {
		m["finalizers"] = f
	}
	return m
}

// repeats tells labels and annotations that say what is said elsewhere.
func repeats(key string) bool {
	return key == "kubectl.kubernetes.io/last-applied-configuration" || key == "kubernetes.io/metadata.name" ||
		strings.HasPrefix(key, "deployment.kubernetes.io/")
}
