package capture

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestSecretsStayHidden: no message contains the canary, however it got into the cluster.
func TestSecretsStayHidden(t *testing.T) {
	const canary = "canary-4711"
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	secret := func(more string) map[string]any {
		o := data("password", base64.StdEncoding.EncodeToString([]byte(canary+more)))
		o["metadata"] = map[string]any{"annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + encoded + `"}}`,
		}}
		return o
	}
	pod := func(value string) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "app", "env": []any{map[string]any{"name": "DB_PASSWORD", "value": value}},
		}}}}
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{Scopes: []Scope{{Types: []string{"secrets,pods"}}}, Initial: true}, func(s *informertest.Server) {
			s.Put(secretGVR, "n", "s", secret(""))
			s.Put(podsGVR, "n", "p", pod(canary))
		})
		r.pass(time.Second)
		r.server.Put(secretGVR, "n", "s", secret("2"))
		r.server.Put(podsGVR, "n", "p", pod(canary+"2"))
		r.pass(time.Second)
		r.server.Delete(secretGVR, "n", "s")
		r.want("everything is reported",
			"snapshot secrets/s", "snapshot pods/p", "ready: 2 kinds, 2 objects", "updated secrets/s data.password by ?",
			"updated pods/p spec.containers[name=app].env[name=DB_PASSWORD].value by ?", "deleted secrets/s")
		r.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		reported := r.dump.String()
		for _, text := range []string{canary, encoded, strings.TrimRight(encoded, "=")} {
			if strings.Contains(reported, text) {
				t.Errorf("reported: %s", text)
			}
		}
		if !strings.Contains(reported, "hidden #") {
			t.Errorf("no marker in %s", reported)
		}
	})
}

// oneUnreadable lists ConfigMaps, one of which is invalid; it does not support streaming lists.
func oneUnreadable(w http.ResponseWriter, r *http.Request) bool {
	if collection("configmaps")(r) && r.URL.Query().Has("sendInitialEvents") {
		informertest.Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "no streaming lists")
		return true
	}
	if !collection("configmaps")(r) || r.URL.Query().Has("watch") || r.URL.Query().Get("limit") == "1" {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1005"},"items":[
		{"metadata":17},{"metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"999"}}]}`))
	return true
}

// TestUnreadable: an unreadable object gives a problem and a gap, and ends nothing.
func TestUnreadable(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Skip(5)
		s.Intercept(oneUnreadable)
	}
	scenario(t, Options{Scopes: []Scope{{Types: []string{"configmaps"}}}, Initial: true}, before, func(r *rig) {
		got := r.take()
		if len(got) != 4 || !strings.HasPrefix(got[0], "problem: configmaps: lost 1 versions so far: ") ||
			strings.Join(got[1:], "; ") != "gap configmaps unreadable; snapshot configmaps/b; ready: 1 kinds, 1 objects" {
			r.Errorf("the start: %q", got)
		}
		r.server.Put(cmGVR, "n", "a", nil)
		r.want("it goes on", "created configmaps/a")
	})
}
