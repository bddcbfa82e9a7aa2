package capture

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/rules"
)

// TestRuledKinds: a rule may name a kind by something other than its plural. A rule for a kind that does not
// exist yet applies from that kind's first object on; until then the kind is reported.
func TestRuledKinds(t *testing.T) {
	redactor, err := redact.New(redact.NewRandomKey(), []rules.Rule{
		{Resources: []string{"configmap", "Widget.example.com"}, Paths: []string{"data.hint", "spec.hint"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := Options{Scopes: []Scope{{Types: []string{"configmaps,*.example.com"}}}, Redactor: redactor, Initial: true}
		r := start(t, o, func(s *informertest.Server) { s.Put(cmGVR, "shop", "a", data("hint", "canary-1")) })
		r.want("the start", "snapshot configmaps/a", "ready: 1 kinds, 1 objects, unmatched *.example.com, unfilled widget.example.com")
		if got := r.watcher.UnfilledRules(); !slices.Equal(got, []string{"widget.example.com"}) {
			t.Errorf("unfilled: %v", got)
		}
		define(r.server)
		r.server.Put(widgetsGVR, "shop", "w", map[string]any{"spec": map[string]any{"hint": "canary-2"}})
		r.pass(5 * time.Second)
		r.want("the kind that was waited for", "created widgets/w")
		if got := r.watcher.UnfilledRules(); len(got) > 0 {
			t.Errorf("still unfilled: %v", got)
		}
		r.stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		if reported := r.dump.String(); strings.Contains(reported, "canary") || !strings.Contains(reported, "hidden #") {
			t.Errorf("reported: %s", reported)
		}
	})
}

// TestCheckRule lists the rules that stop the start: those that no custom resource can fill.
func TestCheckRule(t *testing.T) {
	for _, tc := range []struct {
		why, text string
		want      string // of the error; empty: none
		pending   bool
	}{
		{"a plural", "pods", "", false},
		{"a plural of several groups", "widgets", "", false},
		{"a singular", "pod", "", false},
		{"a kind", "Pod", "", false},
		{"a short name, with its group", "deploy.apps", "", false},
		{"a version", "widgets.v1beta1.a.example.com", "", false},
		{"a glob", "*.example.com", "", false},
		{"a mistake", "pdos", `no resource type "pdos"; did you mean "pods"?`, false},
		{"a mistake in a built-in group", "deploymnts.apps", `did you mean "deployments.apps"?`, false},
		{"the core group", "widgets.", `no resource type "widgets."`, false},
		{"a word without a group", "gizmos", `no resource type "gizmos"`, false},
		{"may still appear", "gizmos.example.com", `no resource type "gizmos.example.com" (yet)`, true},
		{"a mistake that may be none", "widgts.a.example.com", `(yet); did you mean "widgets.a.example.com"?`, true},
		{"a glob that waits", "*.x.io", `no resource type "*.x.io" (yet)`, true},
	} {
		var unknown *UnknownTypeError
		err := testCatalog().CheckRule(tc.text)
		switch {
		case tc.want == "":
			if err != nil {
				t.Errorf("%s: %v", tc.why, err)
			}
		case !errors.As(err, &unknown) || !strings.Contains(err.Error(), tc.want) || unknown.Pending != tc.pending:
			t.Errorf("%s: %v, want %s", tc.why, err, tc.want)
		case strings.EqualFold(unknown.Near, tc.text):
			t.Errorf("%s: it suggests the same name: %v", tc.why, err)
		}
	}
	c := testCatalog()
	c.failed["metrics.k8s.io"] = errors.New("503")
	var unknown *UnknownTypeError
	if err := c.CheckRule("nodemetrics"); !errors.As(err, &unknown) || !unknown.Pending {
		t.Errorf("while a group does not answer: %v", err)
	}
}
