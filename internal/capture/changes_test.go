package capture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
)

func TestSelector(t *testing.T) {
	o := Options{Scopes: []Scope{{Types: []string{"configmaps"}, Labels: "app=web"}}}
	before := func(s *informertest.Server) {
		for _, name := range []string{"a", "b"} {
			s.Put(cmGVR, "n", name, labelled("web"))
		}
		s.Put(cmGVR, "n", "old", labelled("other"))
	}
	scenario(t, o, before, func(r *rig) {
		r.want("the start", "ready: 1 kinds, 2 objects")
		r.server.Put(cmGVR, "n", "a", labelled("other"))
		r.want("it still exists", "left configmaps/a")
		r.server.Delete(cmGVR, "n", "b")
		r.want("it does not", "deleted configmaps/b")
		r.server.Put(cmGVR, "n", "c", labelled("web"))
		r.want("new", "created configmaps/c")
		entering := labelled("web")
		entering["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "x", "time": "2000-01-01T00:00:09Z"}}
		r.server.Put(cmGVR, "n", "old", entering)
		r.want("not new", "entered configmaps/old")
		r.server.Delete(cmGVR, "n", "c")
		r.server.Put(cmGVR, "n", "c", labelled("web"))
		r.inOrder("recreated under its name: the old one is gone", "deleted configmaps/c", "created configmaps/c")
	})
}

// TestSelectorWhenTheServerDoesNotSay: if the server cannot say whether an object was deleted, it is held back
// briefly and not reported as deleted.
func TestSelectorWhenTheServerDoesNotSay(t *testing.T) {
	one := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/configmaps/a") }
	for why, hook := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"it hangs": func(_ http.ResponseWriter, r *http.Request) bool {
			if !one(r) {
				return false
			}
			<-r.Context().Done()
			return true
		},
		"it refuses": refuse(http.StatusForbidden, metav1.StatusReasonForbidden, one),
	} {
		t.Run(why, func(t *testing.T) {
			o := Options{Scopes: []Scope{{Types: []string{"configmaps,pods"}, Labels: "app=web"}}}
			scenario(t, o, func(s *informertest.Server) { s.Put(cmGVR, "n", "a", labelled("web")) }, func(r *rig) {
				r.want("the start", "ready: 2 kinds, 1 objects")
				r.server.Intercept(hook)
				r.server.Delete(cmGVR, "n", "a")
				r.server.Put(cmGVR, "n", "b", labelled("web"))
				r.server.Put(podsGVR, "n", "p", labelled("web"))
				got := "\n" + strings.Join(r.take(), "\n")
				if !strings.Contains(got, "\ncreated pods/p") {
					r.Errorf("other kinds wait, too: %s", got)
				}
				r.pass(5 * time.Second)
				r.server.Put(cmGVR, "n", "c", labelled("web"))
				got += "\n" + strings.Join(r.take(), "\n")
				for _, want := range []string{"\nproblem: determine whether configmaps/a was deleted or left", "\nleft configmaps/a", "\ncreated configmaps/c"} {
					if !strings.Contains(got, want) {
						r.Errorf("%s is missing after five seconds:%s", want, got)
					}
				}
				if strings.Contains(got, "\ndeleted") {
					r.Errorf("a guess: %s", got)
				}
			})
		})
	}
}

// TestNamedObjects: each named object has its own source, so that rights by name suffice.
func TestNamedObjects(t *testing.T) {
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps", "a", "b", "a"}}}}, nil, func(r *rig) {
		r.want("the start", "ready: 1 kinds, 0 objects")
		for _, name := range []string{"a", "b", "c"} {
			r.server.Put(cmGVR, "n", name, nil)
		}
		r.want("each once", "created configmaps/a", "created configmaps/b")
		for _, uri := range r.server.Requests() {
			if strings.Contains(uri, "/configmaps") && !strings.Contains(uri, "metadata.name") {
				r.Errorf("asked for more than was named: %s", uri)
			}
		}
	})
}

// template returns a Deployment with a container, written by kubectl-create, and an image by another manager.
func template(image, manager string, labels map[string]any) map[string]any {
	raw := fmt.Sprintf(`{"metadata": {"creationTimestamp": "2000-01-01T00:00:00Z", "managedFields": [
		{"manager": "kubectl-create", "operation": "Update", "apiVersion": "apps/v1", "time": "2000-01-01T00:00:00Z", "fieldsType": "FieldsV1",
		 "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:name": {}}}}}}}},
		{"manager": %q, "operation": "Update", "apiVersion": "apps/v1", "time": "2000-01-01T00:00:05Z", "fieldsType": "FieldsV1",
		 "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {"f:image": {}}}}}}}}]},
		"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}, {"name": "app", "image": %q}]}}}}`, manager, image)
	var o map[string]any
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		panic(err)
	}
	o["metadata"].(map[string]any)["labels"] = labels
	return o
}

func TestAttribution(t *testing.T) {
	labels := map[string]any{"app": "web", "tier": "front"}
	before := func(s *informertest.Server) {
		s.Put(deployGVR, "n", "web", template("shop/web:1.4", "kubectl-create", labels))
		s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/openapi/v3/apis/apps/v1" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(openAPI))
			return true
		})
	}
	scenario(t, Options{Scopes: []Scope{{Types: []string{"deployments"}}}}, before, func(r *rig) {
		r.want("the start", "ready: 1 kinds, 1 objects")
		r.server.Put(deployGVR, "n", "web", template("shop/web:1.5", "kubectl-set", labels))
		r.want("the image's manager, by the merge key", "updated deployments/web spec.template.spec.containers[name=app].image by kubectl-set")
		r.server.Put(deployGVR, "n", "web", template("shop/web:1.5", "kubectl-set", map[string]any{"app": "web"}))
		r.want("the remover of a label is unknown", "updated deployments/web metadata.labels.tier by ?")
		quiet := template("shop/web:1.5", "kubectl-set", map[string]any{"app": "web"})
		quiet["metadata"].(map[string]any)["generation"] = 7
		r.server.Put(deployGVR, "n", "web", quiet)
		r.want("no news is flagged", "updated deployments/web quietly metadata.generation by ? metadata.resourceVersion by ?")
	})
}

// openAPI says that containers merge by name.
const openAPI = `{"components": {"schemas": {
	"io.k8s.api.apps.v1.Deployment": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}],
		"properties": {"spec": {"type": "object", "properties": {"template": {"type": "object", "properties": {"spec": {"type": "object",
			"properties": {"containers": {"type": "array", "items": {"type": "object"},
				"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
				"x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"}}}}}}}}}}}}`
