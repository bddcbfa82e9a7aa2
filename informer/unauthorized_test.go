package informer_test

import (
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestWaitOutlivesARotatedToken: a single 401 is retried soon, and does not fail Wait.
func TestWaitOutlivesARotatedToken(t *testing.T) {
	before := func(s *informertest.Server) {
		two(s)
		s.Misbehave(informertest.Fault{Code: http.StatusUnauthorized, Times: 1})
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		began := time.Now()
		if err := r.source.Wait(r.Context()); err != nil {
			r.Errorf("Wait: %v", err)
		}
		if d := time.Since(began); d > 2*time.Second {
			r.Errorf("one 401 cost %v", d)
		}
		r.want("the list", twoListed)
	})
}

// TestWaitFailsWithoutCredentials: several 401s in a row fail Wait.
func TestWaitFailsWithoutCredentials(t *testing.T) {
	before := func(s *informertest.Server) { s.Misbehave(informertest.Fault{Code: http.StatusUnauthorized}) }
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		began := time.Now()
		if err := r.source.Wait(r.Context()); !apierrors.IsUnauthorized(err) {
			r.Errorf("Wait: %v", err)
		}
		if d := time.Since(began); d < 5*time.Second || d > 15*time.Second {
			r.Errorf("Wait failed after %v", d)
		}
		if n := len(r.server.Requests()); n != 4 {
			r.Errorf("%d requests, want 4", n)
		}
	})
}
