package auth

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/access"
)

// TestKubernetes: the requests that the API server gets, and its answers. The tests of integration/ ask a real one.
func TestKubernetes(t *testing.T) {
	var asked []string
	forbidden := false
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(text)))
		w.Header().Set("Content-Type", "application/json")
		if forbidden {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no reviews","code":403}`)
			return
		}
		if r.Method == http.MethodGet {
			if strings.HasSuffix(r.URL.Path, "/gone") {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","creationTimestamp":"2026-03-01T10:00:00Z"}}`)
			return
		}
		var review map[string]any
		if err := json.Unmarshal(text, &review); err != nil {
			t.Error(err)
		}
		review["status"] = map[string]any{"authenticated": true, "allowed": true, "user": map[string]any{"username": "bob"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer h.Close()
	k, err := Kubernetes(&rest.Config{Host: h.URL, QPS: 0.001, Burst: 1}) // such a limit would take minutes
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		token, err1 := k.ReviewToken(t.Context(), authentication.TokenReviewSpec{Token: "t", Audiences: []string{"a"}})
		access, err2 := k.ReviewAccess(t.Context(), authorization.SubjectAccessReviewSpec{User: "bob", ResourceAttributes: &authorization.ResourceAttributes{Verb: "get", Resource: "pods"}})
		if err1 != nil || err2 != nil || token.User.Username != "bob" || !access.Allowed {
			t.Fatalf("%+v, %v; %+v, %v", token, err1, access, err2)
		}
	}
	want := []string{
		`POST /apis/authentication.k8s.io/v1/tokenreviews {"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"t","audiences":["a"]},"status":{"user":{}}}`,
		`POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"resourceAttributes":{"verb":"get","resource":"pods"},"user":"bob"},"status":{"allowed":false}}`,
	}
	if len(asked) != 6 || asked[0] != want[0] || asked[1] != want[1] {
		t.Errorf("asked %q", asked[:2])
	}

	if at, err := k.NamespaceCreated(t.Context(), "shop"); err != nil || !at.Equal(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("the namespace was created at %s, %v", at, err)
	}
	if at, err := k.NamespaceCreated(t.Context(), "gone"); err != nil || !at.IsZero() {
		t.Errorf("a namespace that does not exist was created at %s, %v", at, err)
	}
	if last := asked[len(asked)-2:]; last[0] != "GET /api/v1/namespaces/shop " {
		t.Errorf("asked %q", last)
	}

	forbidden = true
	if at, err := viewer(mustNew(t, Options{Tokens: true, Reviewer: k}), "bob").Created(t.Context(), []access.Namespace{{Name: "shop"}}); err != nil || !at[0].IsZero() {
		t.Errorf("without the right to get namespaces: %v, %v", at, err)
	}
	log, text := logged()
	a := mustNew(t, Options{Tokens: true, Reviewer: k, Log: log})
	w := answered(a, request(t, "GET", "localhost", nil, "Authorization: Bearer s3cr3t"))
	if w.Code != http.StatusServiceUnavailable || strings.Contains(body(w), "no reviews") {
		t.Errorf("without the right to review: %d %s", w.Code, body(w))
	}
	if got := text.String(); !strings.Contains(got, "no reviews") || !strings.Contains(got, "tattler rbac") || strings.Contains(got, "s3cr3t") {
		t.Errorf("logged %s", got)
	}
	h.CloseClientConnections()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
