package informer_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// refuse answers requests with a status while yes returns true.
func refuse(code int32, reason metav1.StatusReason, header map[string]string, yes func(*http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !yes(r) {
			return false
		}
		for k, v := range header {
			w.Header().Set(k, v)
		}
		informertest.Refuse(w, code, reason, "refused by the test")
		return true
	}
}

func always(*http.Request) bool { return true }

func isWatch(r *http.Request) bool { return r.URL.Query().Has("watch") }

func TestForbidden(t *testing.T) {
	before := func(s *informertest.Server) {
		two(s)
		s.Intercept(refuse(http.StatusForbidden, metav1.StatusReasonForbidden, nil, always))
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		err := r.source.Wait(r.Context())
		var sync *informer.SyncError
		if !errors.As(err, &sync) || !apierrors.IsForbidden(err) || sync.Stream.Resource != widgets {
			r.Fatalf("Wait: %v", err)
		}
		if st := r.source.Status()[0]; st.State != informer.Waiting || !apierrors.IsForbidden(st.Err) || st.Synced {
			r.Errorf("status: %+v", st)
		}
		r.pass(50 * time.Second)
		if n := len(r.server.Requests()); n != 1 {
			r.Errorf("%d requests within a minute, want 1", n)
		}
		r.server.Intercept(nil)
		r.pass(time.Minute)
		r.want("once it is allowed", twoListed)
		if err := r.source.Wait(r.Context()); err != nil {
			r.Errorf("Wait: %v", err)
		}
		if got, want := r.states.take(), "listing waiting/1 listing/1 watching"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}

func TestRightsTakenAwayKeepTheState(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Intercept(refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, nil, isWatch))
		r.pass(2 * time.Second)
		r.server.CloseWatches()
		r.pass(10 * time.Minute)
		if got := r.feed.take(); strings.Contains(got, "- ") {
			r.Errorf("nothing is deleted: %s", got)
		}
		st := r.source.Status()[0]
		if st.State != informer.Waiting || !apierrors.IsUnauthorized(st.Err) || st.Objects != 2 || !st.Synced {
			r.Errorf("status: %+v", st)
		}
		if states := r.states.take(); strings.Count(states, "watching") != strings.Count(states, "listing") {
			r.Errorf("a probe is not a watch: %s", states)
		}
	})
}

func TestNotServed(t *testing.T) {
	scenario(t, informer.SourceOptions{}, nil, func(r *rig) {
		gone, err := r.cluster.Source(schema.GroupVersionResource{Group: "x", Version: "v1", Resource: "ys"}, informer.SourceOptions{})
		if err != nil {
			r.Fatal(err)
		}
		if err := gone.Wait(r.Context()); !apierrors.IsNotFound(err) {
			r.Errorf("Wait: %v", err)
		}
		r.pass(10 * time.Second)
		if st := gone.Status()[0].State; st != informer.Parked {
			r.Errorf("state %d, want Parked", st)
		}
	})
}

func TestKindRemoved(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Unserve(widgets)
		r.pass(10 * time.Second)
		r.want("no deletion is made up", "")
		if st := r.source.Status()[0]; st.State != informer.Parked || !apierrors.IsNotFound(st.Err) {
			r.Errorf("status: %+v", st)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		code   int32
		reason metav1.StatusReason
	}{
		"too many requests": {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
		"unavailable":       {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			before := func(s *informertest.Server) {
				two(s)
				s.Intercept(refuse(c.code, c.reason, map[string]string{"Retry-After": "20"}, always))
			}
			scenario(t, informer.SourceOptions{}, before, func(r *rig) {
				r.pass(19 * time.Second)
				if n := len(r.server.Requests()); n != 1 {
					r.Errorf("%d requests before the time, want 1", n)
				}
				r.server.Intercept(nil)
				r.pass(6 * time.Second)
				r.want("after it", twoListed)
			})
		})
	}
}

func TestInternalErrors(t *testing.T) {
	before := func(s *informertest.Server) {
		two(s)
		var n atomic.Int32
		s.Intercept(refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, nil,
			func(*http.Request) bool { return n.Add(1) <= 3 }))
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		if err := r.source.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !apierrors.IsInternalError(err) {
			r.Errorf("Wait tells both that time is up and why: %v", err)
		}
		r.pass(3 * time.Second)
		r.want("the fourth list", twoListed)
		if got, want := r.states.take(), "listing waiting/1 waiting/2 waiting/3 listing/3 watching"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}

func TestErrorWithinTheStream(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		r.server.Send(widgets, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError"}}`+"\n")
		r.server.Put(widgets, "n", "a", spec(2))
		r.pass(time.Second)
		if got := without(r.feed.take(), "="); got != "~ a 1001>1003" {
			r.Errorf("resumed after the error:\n%s", got)
		}
		if got, want := r.states.take(), "listing watching waiting/1 watching/1 watching"; got != want && got != "listing watching waiting/1 watching/1" {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}

func TestServerThatHangs(t *testing.T) {
	before := func(s *informertest.Server) {
		two(s)
		var n atomic.Int32
		s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if n := n.Add(1); n > 2 {
				return false
			}
			if n.Load() == 2 { // the second time in the middle of the body
				_, _ = w.Write([]byte(`{"apiVersion":"example.com/v1","items":[`))
			}
			<-r.Context().Done()
			return true
		})
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.pass(3 * time.Minute)
		r.want("the third list", twoListed)
	})
}

func TestPageOfHTML(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>please log in</html>"))
			return true
		})
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.pass(time.Second)
		if err := r.source.Status()[0].Err; err == nil || !strings.Contains(err.Error(), "text/html") {
			r.Errorf("the cause is %v", err)
		}
	})
}

func TestCloseWhileEverythingIsStuck(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		})
	}
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		if got, want := r.states.take(), "listing"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
		done := make(chan error)
		go func() { done <- r.source.Wait(context.Background()) }()
		r.source.Close()
		r.source.Close() // twice is harmless
		if err := <-done; !errors.Is(err, informer.ErrClosed) {
			r.Errorf("Wait: %v", err)
		}
		r.want("the feed ends", informer.ErrClosed.Error())
		if _, err := feed.Join(r.source, "late", 0); !errors.Is(err, informer.ErrClosed) {
			r.Errorf("Feed: %v", err)
		}
		if got, want := r.states.take(), "stopped"; got != want {
			r.Errorf("states: %s, want %s", got, want)
		}
	})
}
