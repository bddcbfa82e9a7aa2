package auth

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/internal/access"
)

// TestMayElsewhere: a right in the cluster that authenticates does not count in another one, whose own reviews decide only if it has
// the same users. Without its answer, its objects are hidden, and others are not.
func TestMayElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{allowed: map[string][]string{"bob": {"get pods"}}}
		same := &fake{allowed: map[string][]string{"bob": {"get pods in shop"}}}
		a := mustNew(t, Options{Tokens: true, Reviewer: f, Clusters: map[string]Reviewer{"same": same}})
		asked := []Target{
			{Resource: "pods", Namespace: "shop"}, {Resource: "pods", Namespace: "shop", Cluster: "same"},
			{Resource: "pods", Namespace: "pay", Cluster: "same"}, {Resource: "pods", Namespace: "shop", Cluster: "stranger"},
		}
		for _, tc := range []struct {
			why  string
			err  error
			want string
		}{
			{"each cluster decides", nil, "[true true false false]"},
			{"no answer", errDown, "[true false false false]"},
			{"after the pause", nil, "[true true false false]"},
		} {
			same.set(func() { same.err = tc.err })
			if may, err := viewer(a, "bob").May(t.Context(), asked); err != nil || fmt.Sprint(may) != tc.want {
				t.Errorf("%s: %v, %v, want %s", tc.why, may, err, tc.want)
			}
			<-time.After(otherPause + time.Second)
		}
	})
}

// TestMapClusters: the names of clusters in a journal are not those among rights.
func TestMapClusters(t *testing.T) {
	f := &fake{allowed: map[string][]string{"bob": {"get pods"}}}
	ctx := access.With(t.Context(), viewer(reviewing(t, f), "bob"))
	ctx = access.Map(ctx, func(cluster string) string {
		return map[string]string{"": "own", "first": ""}[cluster]
	})
	may, err := access.May(ctx, []Target{{Resource: "pods"}, {Resource: "pods", Cluster: "first"}})
	if err != nil || fmt.Sprint(may) != "[false true]" {
		t.Errorf("%v, %v", may, err)
	}
}

// TestLazy: a reviewer that cannot be made is made later.
func TestLazy(t *testing.T) {
	none := errors.New("no such context")
	err := none
	r := Lazy(func() (Reviewer, error) { return &fake{allowed: map[string][]string{"bob": {"get pods"}}}, err })
	a := mustNew(t, Options{Tokens: true, Reviewer: r})
	if _, got := viewer(a, "bob").May(t.Context(), targets("pods")); !errors.Is(got, none) {
		t.Errorf("%v", got)
	}
	err = nil
	if may, got := viewer(a, "bob").May(t.Context(), targets("pods")); got != nil || !may[0] {
		t.Errorf("%v, %v", may, got)
	}
}
