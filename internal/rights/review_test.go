package rights

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// authorizer answers reviews: rules by namespace, and single rights.
type authorizer struct {
	rules   map[string][]authorization.ResourceRule
	allowed map[string]bool // "get pods in shop"
	noRules bool

	mu    sync.Mutex
	asked []string // single rights
}

func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews") && !a.noRules {
		var review authorization.SelfSubjectRulesReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.ResourceRules = a.rules[review.Spec.Namespace]
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") || a.allowed == nil {
		http.Error(w, "not here", http.StatusNotFound)
		return
	}
	var review authorization.SelfSubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&review)
	at := review.Spec.ResourceAttributes
	right := at.Verb + " " + at.Resource + " in " + at.Namespace
	a.mu.Lock()
	a.asked = append(a.asked, right)
	a.mu.Unlock()
	review.Status.Allowed = a.allowed[right]
	_ = json.NewEncoder(w).Encode(review)
}

// TestLacking: rules grant; what they do not show is asked for, and only that.
func TestLacking(t *testing.T) {
	read := []string{"get", "list"}
	rule := func(verb, group, resource string, names ...string) authorization.ResourceRule {
		return authorization.ResourceRule{Verbs: strings.Split(verb, ","), APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
	}
	for _, tc := range []struct {
		why     string
		right   Right
		rules   []authorization.ResourceRule // of the cluster
		inShop  []authorization.ResourceRule
		allowed []string
		want    string
		asked   int
	}{
		{"the cluster's rule", Right{Resource: "pods", Verbs: read}, []authorization.ResourceRule{rule("get,list", "", "pods")}, nil, nil, "", 0},
		{"two rules together", Right{Resource: "pods", Verbs: read}, []authorization.ResourceRule{rule("get", "", "pods"), rule("list", "*", "*")}, nil, nil, "", 0},
		{"a wildcard", Right{Group: "apps", Resource: "deployments", Verbs: read}, []authorization.ResourceRule{rule("*", "*", "*")}, nil, nil, "", 0},
		{"a namespace's rule is not the cluster's", Right{Resource: "pods", Verbs: read}, nil, []authorization.ResourceRule{rule("*", "*", "*")}, nil, "pods: may not get, list", 2},
		{"but it is the namespace's", Right{Resource: "pods", Namespace: "shop", Verbs: read}, nil, []authorization.ResourceRule{rule("get,list", "", "pods")}, nil, "", 0},
		{"one verb", Right{Resource: "pods", Namespace: "shop", Verbs: read}, nil, []authorization.ResourceRule{rule("get", "", "pods")}, []string{"get pods in shop"}, "pods: may not list in shop", 2},
		{"another group", Right{Group: "apps", Resource: "deployments", Verbs: read}, []authorization.ResourceRule{rule("*", "", "*")}, nil, nil, "deployments.apps: may not get, list", 2},
		{"an authorizer without rules", Right{Resource: "pods", Verbs: read}, nil, nil, []string{"get pods in ", "list pods in "}, "", 2},
		{"a name's rule is not for all", Right{Resource: "pods", Verbs: read}, []authorization.ResourceRule{rule("get,list", "", "pods", "a")}, nil, nil, "pods: may not get, list", 2},
		{"but for the name", Right{Resource: "pods", Name: "a", Verbs: read}, []authorization.ResourceRule{rule("get,list", "", "pods", "a")}, nil, nil, "", 0},
		{"a namespace by its name is asked for in it", Right{Resource: "namespaces", Name: "shop", Verbs: []string{"get"}}, nil, nil, []string{"get namespaces in shop"}, "", 1},
	} {
		a := &authorizer{rules: map[string][]authorization.ResourceRule{nowhere: tc.rules, "shop": tc.inShop}, allowed: map[string]bool{}}
		for _, r := range tc.allowed {
			a.allowed[r] = true
		}
		lacks, err := lacking(t, a, tc.right)
		got := ""
		for _, l := range lacks {
			got += l.Subject() + ": " + l.Text()
		}
		if err != nil || got != tc.want || len(a.asked) != tc.asked {
			t.Errorf("%s: %q, %v, asked for %q; want %q after %d", tc.why, got, err, a.asked, tc.want, tc.asked)
		}
	}
}

func lacking(t *testing.T, a *authorizer, all ...Right) ([]Lack, error) {
	t.Helper()
	server := httptest.NewServer(a)
	defer server.Close()
	r, err := NewReviewer(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return r.Lacking(t.Context(), all)
}

// TestLackingUnknown: a server without reviews leaves everything unknown, which is an error; one without rules is asked
// for each right.
func TestLackingUnknown(t *testing.T) {
	pods := Right{Resource: "pods", Verbs: []string{"get"}}
	if lacks, err := lacking(t, &authorizer{noRules: true}, pods); err == nil {
		t.Errorf("%+v", lacks)
	}
	if lacks, err := lacking(t, &authorizer{noRules: true, allowed: map[string]bool{"get pods in ": true}}, pods); err != nil || len(lacks) > 0 {
		t.Errorf("%+v, %v", lacks, err)
	}
	// Only what the rules do not show is unknown.
	a := &authorizer{rules: map[string][]authorization.ResourceRule{nowhere: {{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}}
	lacks, err := lacking(t, a, pods, Right{Resource: "secrets", Verbs: []string{"get"}})
	if err != nil || len(lacks) != 1 || lacks[0].Err == nil || !strings.HasPrefix(lacks[0].Text(), "rights not known: ") {
		t.Errorf("%+v, %v", lacks, err)
	}
}

// TestSubject names kinds as kubectl does.
func TestSubject(t *testing.T) {
	var got []string
	for _, r := range []Right{{Resource: "pods"}, {Group: "apps", Resource: "deployments"}, {Resource: "namespaces", Name: "shop"}} {
		got = append(got, fmt.Sprint(r.GroupResource(), " ", r.Subject()))
	}
	if diff := cmp.Diff([]string{"pods pods", "deployments.apps deployments.apps", "namespaces namespaces/shop"}, got); diff != "" {
		t.Error(diff)
	}
}
