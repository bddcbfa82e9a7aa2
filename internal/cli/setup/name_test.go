package setup

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/config"
)

// TestClusterName: events of two clusters must not have the same source. In a pod, only the cluster itself shows which it is.
func TestClusterName(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	server := informertest.NewServer()
	server.Serve(namespaces, "Namespace")
	server.Put(namespaces, "", "kube-system", nil)
	var uid string
	for _, o := range server.Objects(namespaces) {
		uid = string((&unstructured.Unstructured{Object: o}).GetUID())
	}
	for _, tc := range []struct {
		why     string
		set     string
		inPod   bool
		refused bool
		want    string
	}{
		{"what the configuration says", "prod", true, true, "prod"},
		{"the context's", "", false, true, "in-cluster"},
		{"in a pod, the cluster's own", "", true, false, "cluster-" + uid[:min(8, len(uid))]},
		{"a pod that may not know needs one", "", true, true, "error"},
	} {
		server.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			if tc.refused {
				informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "not for you")
			}
			return tc.refused
		})
		s := &Setup{Config: &config.Config{Cluster: config.Cluster{Name: tc.set}}}
		got, derived, err := s.ClusterName(t.Context(), &kube.Cluster{Config: server.Config(), Name: "in-cluster", InPod: tc.inPod})
		if err != nil {
			got = "error"
			if !strings.Contains(err.Error(), "set cluster.name") {
				t.Errorf("%s: %v", tc.why, err)
			}
		}
		if got != tc.want || derived != (tc.inPod && tc.set == "" && !tc.refused) {
			t.Errorf("%s: %q, derived %t, want %q", tc.why, got, derived, tc.want)
		}
	}
}
