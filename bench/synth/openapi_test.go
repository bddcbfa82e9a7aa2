package synth

import (
	"context"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/openapi"
)

// TestOpenAPI: the document names the merge keys of a pod's lists.
func TestOpenAPI(t *testing.T) {
	schema, err := openapi.New(func(context.Context, string) ([]byte, error) { return OpenAPI(), nil }).For(t.Context(), "", "v1", "Pod")
	if err != nil {
		t.Fatal(err)
	}
	container := func(image string) map[string]any {
		return map[string]any{"name": "app", "image": image, "env": []any{map[string]any{"name": "A", "value": image}}}
	}
	spec := func(containers ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": containers}}
	}
	other := map[string]any{"name": "other"}
	var paths []string
	for _, c := range diff.Objects(spec(container("a:1")), spec(other, container("a:2")), schema) {
		paths = append(paths, c.Path.String())
	}
	want := map[string]bool{"spec.containers[name=app].image": true, "spec.containers[name=app].env[name=A].value": true, "spec.containers[name=other]": true}
	for _, p := range paths {
		delete(want, p)
	}
	if len(want) > 0 {
		t.Errorf("the changes are of %q", paths)
	}
}
