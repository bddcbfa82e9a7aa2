package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"

	"github.com/tattler-dev/tattler/internal/access"
)

// viewer returns a viewer of an Auth, as a request has it.
func viewer(a *Auth, user string) *Viewer {
	id := &identity{User: user, Groups: []string{authenticated}}
	return &Viewer{User: user, Groups: id.Groups, key: id.key(), rights: a.rights}
}

func reviewing(t *testing.T, f *fake) *Auth {
	t.Helper()
	return mustNew(t, Options{Tokens: true, Reviewer: f})
}

func targets(text string) (out []Target) {
	for _, f := range strings.Fields(text) {
		name, ns, _ := strings.Cut(f, "@")
		resource, group, _ := strings.Cut(name, ".")
		out = append(out, Target{Group: group, Resource: resource, Namespace: ns})
	}
	return out
}

// TestMay: which targets a viewer may see, and which reviews that costs.
func TestMay(t *testing.T) {
	for _, tc := range []struct {
		why, allowed, targets string
		want                  string // y or n for each target
		reviews               int
	}{
		{"nothing is asked", "", "", "", 0},
		{"everywhere is one review, however many namespaces", "get pods", "pods@a pods@b pods@c pods", "yyyy", 1},
		{"a namespace", "get pods in a", "pods@a pods@b", "yn", 3},
		{"targets that repeat are reviewed once", "get pods in a", "pods@a pods@a pods@b pods@a", "yyny", 3},
		{"a cluster-scoped kind", "get nodes", "nodes namespaces", "yn", 2},
		{"a right in a namespace is not one in the cluster", "get pods in a", "pods", "n", 1},
		{"a group is another kind", "get deployments.apps in a", "deployments.apps@a deployments@a", "yn", 4},
		{"Secrets are a kind of their own", "get pods in a", "pods@a secrets@a", "yn", 4},
		{"nothing is allowed", "", "pods@a nodes", "nn", 3},
	} {
		f := &fake{allowed: map[string][]string{"bob": strings.Split(tc.allowed, ";"), "eve": {"get pods", "get secrets", "get nodes"}}}
		may, err := viewer(reviewing(t, f), "bob").May(t.Context(), targets(tc.targets))
		got := ""
		for _, m := range may {
			got += map[bool]string{true: "y", false: "n"}[m]
		}
		if asked := f.took(); err != nil || got != tc.want || len(asked) != tc.reviews {
			t.Errorf("%s: %q, %v, want %q; %d reviews, want %d: %q", tc.why, got, err, tc.want, len(asked), tc.reviews, asked)
		}
	}
}

// TestMayDo: actions are rights of their own.
func TestMayDo(t *testing.T) {
	f := &fake{allowed: map[string][]string{"bob": {"get /tattler/status"}}}
	v := viewer(reviewing(t, f), "bob")
	see, err1 := v.MayDo(t.Context(), SeeStatus)
	manage, err2 := v.MayDo(t.Context(), ManageSinks)
	if err := errors.Join(err1, err2); !see || manage || err != nil {
		t.Errorf("see %t, manage %t, %v", see, manage, err)
	}
	if asked := f.took(); !slices.Equal(asked, []string{"bob get /tattler/status", "bob post /tattler/sinks"}) {
		t.Errorf("%q", asked)
	}
}

// TestMayFailsClosed: without an answer, nothing may be seen.
func TestMayFailsClosed(t *testing.T) {
	var nobody *Viewer
	f := &fake{err: errDown, allowed: map[string][]string{"bob": {"get pods", "get /tattler/status"}}}
	a := reviewing(t, f)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		why    string
		viewer *Viewer
		ctx    context.Context
		want   error
	}{
		{"no viewer", nobody, t.Context(), errNoViewer},
		{"no viewer in the context", From(t.Context()), t.Context(), errNoViewer},
		{"a viewer that Auth did not make", &Viewer{User: "bob"}, t.Context(), errNoViewer},
		{"the API server is away", viewer(a, "bob"), t.Context(), errDown},
		{"the request is over", viewer(a, "bob"), over, context.Canceled},
	} {
		may, err := tc.viewer.May(tc.ctx, targets("pods@a"))
		if may != nil || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, %v", tc.why, may, err)
		}
		if may, err := tc.viewer.MayDo(tc.ctx, SeeStatus); may || !errors.Is(err, tc.want) {
			t.Errorf("%s: may do it: %v, %v", tc.why, may, err)
		}
	}
	f.set(func() { f.err = nil })
	if may, err := viewer(a, "bob").May(t.Context(), targets("pods@a")); err != nil || !may[0] {
		t.Errorf("an error is remembered: %v, %v", may, err)
	}
	f.set(func() { f.denies = true })
	if may, err := viewer(reviewing(t, f), "bob").May(t.Context(), targets("pods@a")); err != nil || may[0] {
		t.Errorf("an answer that allows and denies: %v, %v", may, err)
	}
}

// TestMayIsRemembered: rights that are taken away or granted count within their times, and viewers do not share them.
func TestMayIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{allowed: map[string][]string{"bob": {"get pods in a"}}}
		a := reviewing(t, f)
		expect := func(why, user string, want bool, reviews int) {
			t.Helper()
			may, err := viewer(a, user).May(t.Context(), targets("pods@a"))
			if err != nil || may[0] != want {
				t.Errorf("%s: %v, %v, want %t", why, may, err, want)
			}
			if asked := f.took(); len(asked) != reviews {
				t.Errorf("%s: %q, want %d reviews", why, asked, reviews)
			}
		}
		expect("the first time", "bob", true, 2)
		expect("again", "bob", true, 0)
		expect("another viewer", "eve", false, 2)
		f.set(func() { f.allowed["bob"] = nil; f.allowed["eve"] = []string{"get pods in a"} })
		time.Sleep(keepDenied - 1)
		expect("granted, within the time", "eve", false, 0)
		time.Sleep(time.Nanosecond)
		expect("granted, after it", "eve", true, 2)
		time.Sleep(keepAllowed - keepDenied - 1)
		expect("taken away, within the time; what was denied is asked again", "bob", true, 1)
		time.Sleep(time.Nanosecond)
		expect("taken away, after it", "bob", false, 1)
	})
}

// TestReviewsAreBounded: in number by request, and at once.
func TestReviewsAreBounded(t *testing.T) { synctest.Test(t, testReviewsAreBounded) } // so that nothing is forgotten meanwhile

func testReviewsAreBounded(t *testing.T) {
	var many []Target
	for i := range maxReviews {
		many = append(many, Target{Resource: "pods", Namespace: fmt.Sprint("n", i)})
	}
	f := &fake{}
	a := reviewing(t, f)
	v := viewer(a, "bob")
	may, err := v.May(t.Context(), many)
	var tooMany *TooManyReviews
	if may != nil || !errors.As(err, &tooMany) || tooMany.Needed != maxReviews+1 || !strings.Contains(err.Error(), "choose a namespace") {
		t.Fatalf("%d answers, %v", len(may), err)
	}
	if n := len(f.took()); n != 1 {
		t.Errorf("%d reviews before it was refused, want that for all namespaces alone", n)
	}
	if _, err := viewer(a, "bob").May(t.Context(), many[1:]); err != nil { // one is remembered
		t.Errorf("as many as the limit: %v", err)
	}
	if n := len(f.took()); n != maxReviews-1 || f.max > maxShare {
		t.Errorf("%d reviews, %d at once", n, f.max)
	}

}

// TestReviewsAtOnce: viewers share a limit of concurrent reviews, and one viewer cannot have all of it.
func TestReviewsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var many []Target
		for i := range 50 {
			many = append(many, Target{Resource: fmt.Sprint("r", i)})
		}
		f := &fake{wait: make(chan struct{})}
		a := reviewing(t, f)
		var asking sync.WaitGroup
		for i := range 10 {
			asking.Go(func() {
				if _, err := viewer(a, fmt.Sprint("u", i)).May(t.Context(), many); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			if want := min(maxShare*(i+1), maxAccessReviews); f.busy != want {
				t.Errorf("%d viewers: %d reviews at once, want %d", i+1, f.busy, want)
			}
		}
		close(f.wait)
		asking.Wait()
	})
}

// TestBudgetOfAStream: a request that lasts may ask again later.
func TestBudgetOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := viewer(reviewing(t, &fake{}), "bob")
		if err := v.spend(maxReviews); err != nil {
			t.Fatal(err)
		}
		if err := v.spend(1); err == nil {
			t.Error("more than the budget")
		}
		time.Sleep(keepAllowed)
		if err := v.spend(maxReviews); err != nil {
			t.Error(err)
		}
	})
}

// TestReviewsAreShared: concurrent requests of a viewer share a review, and the end of one does not fail the others.
func TestReviewsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{allowed: map[string][]string{"bob": {"get pods"}}, wait: make(chan struct{})}
		a := reviewing(t, f)
		first, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := viewer(a, "bob").May(first, targets("pods@a"))
			gone <- err
		}()
		synctest.Wait() // it asks
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if may, err := viewer(a, "bob").May(t.Context(), targets("pods@a")); err != nil || !may[0] {
					t.Errorf("%v, %v", may, err)
				}
			})
		}
		synctest.Wait() // they wait for the first
		if n := len(f.took()); n != 1 {
			t.Errorf("%d reviews, want 1", n)
		}
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
		synctest.Wait() // another has asked
		close(f.wait)
		asking.Wait()
		if n := len(f.took()); n != 1 {
			t.Errorf("%d reviews after the first caller left, want 1", n)
		}
	})
}

// TestSlowServer: a review ends, and its waiters with it.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{wait: make(chan struct{})}
		began := time.Now()
		_, err := viewer(reviewing(t, f), "bob").May(t.Context(), targets("pods@a"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != reviewTimeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestMemoIsBounded: the least recently used entries go first; a panic leaves nothing behind.
func TestMemoIsBounded(t *testing.T) {
	m := memo[int, int]{limit: 3}
	ask := func(k int) {
		_, _ = m.do(t.Context(), k, func() (int, time.Duration, error) { return k, time.Hour, nil })
	}
	for _, k := range []int{1, 2, 3, 1, 4} {
		ask(k)
	}
	for k, want := range map[int]bool{1: true, 2: false, 3: true, 4: true} {
		if m.known(k) != want {
			t.Errorf("%d is remembered: %t", k, !want)
		}
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = m.do(t.Context(), 9, func() (int, time.Duration, error) { panic("ours") })
	}()
	ask(9) // would wait forever for the call that panicked
	if len(m.entries) != 3 || m.order.Len() != 3 || len(m.calls) != 0 {
		t.Errorf("%d entries, %d in order, %d calls", len(m.entries), m.order.Len(), len(m.calls))
	}
}

// TestAccessOfARequest: what an access.Source shows in a request depends on its viewer.
func TestAccessOfARequest(t *testing.T) {
	f := &fake{
		tokens:  map[string]authentication.UserInfo{"b": {Username: "bob"}, "e": {Username: "eve"}},
		allowed: map[string][]string{"bob": {"get pods in a"}, "eve": {"get pods in b"}},
	}
	a := reviewing(t, f)
	for token, want := range map[string]string{"b": "[true false]", "e": "[false true]"} {
		a.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if may, err := access.May(r.Context(), targets("pods@a pods@b")); err != nil || fmt.Sprint(may) != want {
				t.Errorf("%s: %v, %v, want %s", token, may, err, want)
			}
		})).ServeHTTP(answerless{}, request(t, "GET", "localhost", nil, "Authorization: Bearer "+token))
	}
	f.set(func() { f.err = errDown })
	var failed *access.CheckError
	if may, err := access.May(access.With(t.Context(), viewer(a, "carol")), targets("pods@a")); may != nil || !errors.As(err, &failed) || !errors.Is(err, errDown) {
		t.Errorf("without an answer: %v, %v", may, err)
	}
}

// TestCreated: when a namespace was created is remembered for the viewer who asked. One that is created anew has its new time for
// a viewer whose right is new.
func TestCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, anew := time.Unix(1000, 0), time.Unix(2000, 0)
		f := &fake{created: map[string]time.Time{"shop": first, "gone": {}}}
		same := &fake{created: map[string]time.Time{"shop": anew}}
		a := mustNew(t, Options{Tokens: true, Reviewer: f, Clusters: map[string]Reviewer{"same": same}})
		expect := func(why, user string, want time.Time, reviews int) {
			t.Helper()
			at, err := viewer(a, user).Created(t.Context(), []access.Namespace{{Name: "shop"}, {Name: "gone"}, {Name: "shop"}, {Cluster: "same", Name: "shop"}, {Cluster: "stranger", Name: "shop"}})
			if err != nil || !at[0].Equal(want) || !at[1].IsZero() || !at[2].Equal(want) || !at[3].Equal(anew) || !at[4].IsZero() {
				t.Errorf("%s: %v, %v", why, at, err)
			}
			if n := len(f.took()); n != reviews {
				t.Errorf("%s: %d reviews, want %d", why, n, reviews)
			}
		}
		expect("the first time", "bob", first, 2)
		expect("again", "bob", first, 0)
		f.set(func() { f.created["shop"] = anew })
		expect("another viewer", "eve", anew, 2)
		time.Sleep(keepDenied)
		expect("a namespace that did not exist is asked for again", "bob", first, 1)
		time.Sleep(keepAllowed - keepDenied)
		expect("after its time", "bob", anew, 2)
		f.set(func() { f.err = errDown })
		if at, err := viewer(a, "new").Created(t.Context(), []access.Namespace{{Name: "shop"}}); at != nil || !errors.Is(err, errDown) {
			t.Errorf("the API server is away: %v, %v", at, err)
		}
		var nobody *Viewer
		if at, err := nobody.Created(t.Context(), []access.Namespace{{Name: "shop"}}); at != nil || !errors.Is(err, errNoViewer) {
			t.Errorf("no viewer: %v, %v", at, err)
		}
	})
}
