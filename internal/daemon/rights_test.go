package daemon

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/control"
)

// roles is the authorizer of a server in a test: each right is granted, or not.
type roles struct {
	mu     sync.Mutex
	denied map[string]bool // "list configmaps"
}

func (r *roles) deny(rights ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = map[string]bool{}
	for _, right := range rights {
		r.denied[right] = true
	}
}

func (r *roles) denies(right string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied[right]
}

// intercept answers reviews, and refuses lists and watches of configmaps. Like webhook authorizers, it has no rules.
func (r *roles) intercept(w http.ResponseWriter, q *http.Request) bool {
	switch {
	case strings.HasSuffix(q.URL.Path, "/selfsubjectrulesreviews"):
		var review authorization.SelfSubjectRulesReview
		review.Status.Incomplete = true
		answer(w, review)
		return true
	case strings.HasSuffix(q.URL.Path, "/selfsubjectaccessreviews"):
		var review authorization.SelfSubjectAccessReview
		if err := json.NewDecoder(q.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = !r.denies(a.Verb + " " + a.Resource)
		answer(w, review)
		return true
	case strings.HasSuffix(q.URL.Path, "/configmaps"):
		verb := "list"
		if q.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
		if r.denies(verb + " configmaps") {
			informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "not allowed to "+verb)
			return true
		}
	}
	return false
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// TestRightsTakenAway: a right that is taken away is named at once, although the watch stays open, and its return is
// noticed.
func TestRightsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, own := newRig(t), &roles{}
		r.server.Intercept(own.intercept)
		d := r.daemon(t.TempDir(), Options{})
		d.pass(2 * time.Second)
		missing := func() string {
			d.status() // which makes the next review come soon
			d.pass(3 * time.Second)
			s := d.status()
			if s.RightsError != "" {
				t.Error(s.RightsError)
			}
			return named(s.MissingRights)
		}
		if got := missing(); got != "" {
			t.Errorf("at first: %s", got)
		}
		for _, tc := range []struct{ deny, want string }{
			{"watch configmaps", "configmaps: may not watch"},
			{"get configmaps", "configmaps: may not get"},
			{"get namespaces", "namespaces/kube-system: may not get"},
			{"", ""},
		} {
			own.deny(tc.deny)
			if got := missing(); got != tc.want {
				t.Errorf("without %q: %q, want %q", tc.deny, got, tc.want)
			}
			if s := d.status(); s.Streams[0].State != control.Live {
				t.Errorf("without %q: %+v", tc.deny, s.Streams[0])
			}
		}
		d.stop()
		log := d.log.String()
		if strings.Count(log, "rights are missing") != 3 || strings.Count(log, "rights were granted") != 3 {
			t.Error(log)
		}
	})
}

// TestRightsGivenBack: a refused stream goes on seconds after its right was given back, instead of a minute.
func TestRightsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, own := newRig(t), &roles{}
		r.server.Intercept(own.intercept)
		own.deny("list configmaps", "watch configmaps")
		d := r.daemon(t.TempDir(), Options{})
		d.pass(2*time.Minute + time.Second)
		s := d.status()
		if s.Streams[0].State != control.Forbidden || named(s.MissingRights) != "configmaps: may not list, watch" {
			t.Errorf("%+v", s)
		}
		own.deny()
		r.put("a", "1")
		d.pass(reviewPause + time.Second)
		if s = d.status(); s.Streams[0].State != control.Live || s.Journal.Recorded != 1 || len(s.MissingRights) > 0 {
			t.Errorf("%+v", s)
		}
		d.stop()
	})
}
