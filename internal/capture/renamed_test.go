package capture

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/selection"
)

// TestCRDMadeAnew: a CRD is deleted and at once made anew with another kind or scope under the same plural. Changes carry
// the new names, and the deletions of the old objects the old ones.
func TestCRDMadeAnew(t *testing.T) {
	before := func(s *informertest.Server) {
		define(s)
		s.Put(widgetsGVR, "n", "old", map[string]any{"kind": "Widget"})
	}
	anew := func(s *informertest.Server, clusterScoped bool) {
		undefine(s, false)
		s.Unserve(widgetsGVR)
		s.Put(crdGVR, "", "widgets.example.com", nil)
		s.Serve(widgetsGVR, "Gizmo")
		s.Describe(widgetsGVR, clusterScoped, []string{"gz"}, nil)
	}
	for why, scope := range map[string]Scope{
		"everything":      {},
		"the kind":        {Types: []string{"widgets"}},
		"a namespace":     {Types: []string{"widgets"}, Namespaces: selection.Namespaces{Include: []string{"n"}}},
		"some namespaces": {Types: []string{"widgets"}, Namespaces: selection.Namespaces{Exclude: []string{"x*"}}},
	} {
		for _, clusterScoped := range []bool{false, true} {
			t.Run(fmt.Sprint(why, ", cluster-scoped: ", clusterScoped), func(t *testing.T) {
				keeping(t, Options{Scopes: []Scope{scope}}, before, func(r *rig, _ func(func())) {
					r.take()
					anew(r.server, clusterScoped)
					namespace := "n"
					r.pass(0) // the deletions come before the new kind
					if clusterScoped {
						namespace = ""
						r.server.Intercept(refuse(http.StatusNotFound, metav1.StatusReasonNotFound, func(r *http.Request) bool {
							return strings.HasPrefix(r.URL.Path, "/apis/example.com/v1/namespaces/")
						}))
					}
					r.server.Put(widgetsGVR, namespace, "early", map[string]any{"kind": "Gizmo"})
					r.pass(2 * time.Minute)
					r.server.Put(widgetsGVR, namespace, "late", map[string]any{"kind": "Gizmo"})
					r.pass(time.Second)
					var got []string
					for _, v := range r.changesOf() {
						if v.Kind.Resource == "widgets" && v.Op != event.Gap {
							got = append(got, fmt.Sprint(v.Op, " ", v.Kind.Kind, " ", v.Name))
						}
					}
					// Two streams may show the same version.
					want := "snapshot Widget old\ndeleted Widget old\ncreated Gizmo early\ncreated Gizmo late"
					if text := strings.Join(slices.Compact(got), "\n"); text != want {
						t.Errorf("got\n%s", text)
					}
					if s, text := r.one("widgets"); s.Resource.Kind != "Gizmo" || s.Resource.Short != "gz" || s.Resource.Namespaced == clusterScoped || text != "live, 2 objects" {
						t.Errorf("%s: %+v", text, s.Resource)
					}
				})
			})
		}
	}
}
