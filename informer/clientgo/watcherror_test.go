package clientgo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// situation is a failure between an informer and its server.
type situation struct {
	why string
	// before happens before the informer starts, after once it has synced.
	before, after func(*troubled)
	silent        bool // no watch error handler is called
}

// troubled is a server and the connection to it.
type troubled struct {
	*informertest.Server
	mu    sync.Mutex
	fails int // how many requests the connection loses
	with  error
}

// RoundTrip loses the first requests.
func (s *troubled) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	lost := s.fails > 0
	if lost {
		s.fails--
	}
	err := s.with
	s.mu.Unlock()
	if lost {
		return nil, err
	}
	return s.Config().Transport.RoundTrip(req)
}

func (s *troubled) lose(n int, with error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.with = n, with
}

var refused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// fault returns a function that adds a fault to the server.
func fault(f informertest.Fault) func(*troubled) { return func(s *troubled) { s.Misbehave(f) } }

// refuses answers lists of either form with a status.
func refuses(code, times int) func(*troubled) {
	return fault(informertest.Fault{Code: code, Times: times})
}

// resumes ends the watches, and adds a fault for the requests that follow.
func resumes(f informertest.Fault) func(*troubled) {
	return func(s *troubled) {
		s.Misbehave(f)
		s.CloseWatches()
	}
}

// unstreamed adds a fault for paged lists, without streaming lists.
func unstreamed(f informertest.Fault) func(*troubled) {
	return func(s *troubled) {
		s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusUnprocessableEntity})
		s.Misbehave(f)
	}
}

// answers makes a proxy answer the next requests.
func answers(code, times int, contentType, body string) func(*troubled) {
	return func(s *troubled) {
		left := times
		s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			if left == 0 {
				return false
			}
			left--
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		})
	}
}

var situations = []situation{
	{why: "nothing", silent: true},
	{why: "no streaming lists", before: fault(informertest.Fault{On: informertest.StreamingLists, Code: 422}), silent: true},
	{why: "unauthorized", before: refuses(401, 6)},
	{why: "forbidden", before: refuses(403, 6)},
	{why: "not served", before: refuses(404, 6)},
	{why: "overloaded", before: refuses(429, 6), silent: true},
	{why: "overloaded, says when", before: fault(informertest.Fault{Code: 429, RetryAfter: time.Second, Times: 30}), silent: true},
	{why: "lists overloaded", before: unstreamed(informertest.Fault{On: informertest.Lists, Code: 429, Times: 3})},
	{why: "lists overloaded, says when", before: unstreamed(informertest.Fault{On: informertest.Lists, Code: 429, RetryAfter: time.Second, Times: 30})},
	{why: "broken", before: refuses(500, 6)},
	{why: "unavailable, says when", before: fault(informertest.Fault{Code: 503, RetryAfter: time.Second, Times: 30})},
	{why: "expired list", before: unstreamed(informertest.Fault{On: informertest.Lists, Code: 410, Times: 5})},
	{why: "a timeout of the server", before: unstreamed(informertest.Fault{On: informertest.Lists, Code: 504, Times: 3})},
	{why: "a proxy's page", before: answers(502, 4, "text/html", "<html>bad gateway</html>")},
	{why: "a page with status 200", before: answers(200, 4, "text/html", "<html>welcome</html>")},
	{why: "connection refused", before: func(s *troubled) { s.lose(7, refused) }, silent: true},
	{why: "connections that end", before: func(s *troubled) { s.lose(7, io.EOF) }, silent: true},
	{why: "connection refused for a list", before: func(s *troubled) {
		s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: 422})
		s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("watch") != "" { // later requests are lost
				s.lose(3, refused)
				s.Intercept(nil)
			}
			return false
		})
	}},
	{why: "an unknown host", before: func(s *troubled) { s.lose(4, &net.DNSError{Err: "no such host", Name: "api", IsNotFound: true}) }},
	{why: "a list that is cut", before: unstreamed(informertest.Fault{On: informertest.Lists, Effect: informertest.CutFrame, Times: 2})},
	{why: "a streaming list that is cut", before: fault(informertest.Fault{On: informertest.StreamingLists, Effect: informertest.CutFrame, Times: 2}), silent: true},
	{why: "a watch that ends", after: func(s *troubled) { s.CloseWatches() }, silent: true},
	{why: "a watch that is cut", after: func(s *troubled) { s.Cut() }, silent: true},
	{why: "a frame that is cut", after: fault(informertest.Fault{On: informertest.Watches | informertest.StreamingLists, Effect: informertest.CutFrame, Times: 1}), silent: true},
	{why: "a frame of noise", after: fault(informertest.Fault{On: informertest.Watches | informertest.StreamingLists, Effect: informertest.GarbleFrame, Times: 1}), silent: true},
	{why: "an expired watch", after: fault(informertest.Fault{Effect: informertest.ErrorEvent, Times: 1}), silent: true},
	{why: "a watch that failed", after: fault(informertest.Fault{Effect: informertest.ErrorEvent, Code: 500, Times: 1}), silent: true},
	{why: "a watch of too many", after: fault(informertest.Fault{Effect: informertest.ErrorEvent, Code: 429, Times: 1}), silent: true},
	{why: "too late to resume", after: resumes(informertest.Fault{On: informertest.Watches, Code: 410, Times: 1})},
	{why: "a watch forbidden", after: resumes(informertest.Fault{On: informertest.Watches, Code: 403, Times: 3})},
	{why: "a watch overloaded", after: resumes(informertest.Fault{On: informertest.Watches, Code: 429, Times: 3}), silent: true},
	{why: "a watch broken", after: resumes(informertest.Fault{On: informertest.Watches, Code: 500, Times: 3})},
	{why: "connection refused later", after: func(s *troubled) { s.lose(8, refused); s.Cut() }, silent: true},
	{why: "connection refused, then all forbidden", after: func(s *troubled) {
		s.lose(8, refused)
		s.Misbehave(informertest.Fault{Code: 403, Times: 4})
		s.Cut()
	}},
}

// TestWatchErrors: in every situation, our watch error handler gets the same kinds of errors as client-go's, each as
// often, until the informer has recovered.
func TestWatchErrors(t *testing.T) {
	for _, sit := range situations {
		t.Run(sit.why, func(t *testing.T) {
			quiet(t)
			theirs := hear(t, sit, func(lw cache.ListerWatcher, _ *Engine) cache.SharedIndexInformer {
				return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
			})
			ours := hear(t, sit, func(lw cache.ListerWatcher, e *Engine) cache.SharedIndexInformer {
				return e.NewInformer(lw, &corev1.Pod{}, 0, nil)
			})
			expect(t, "errors", ours, theirs...)
			if (len(theirs) == 0) != sit.silent {
				t.Errorf("unexpected situation: client-go reports %q", theirs)
			}
		})
	}
}

// hear runs an informer through a situation and returns the errors of its watch error handler.
func hear(t *testing.T, sit situation, m func(cache.ListerWatcher, *Engine) cache.SharedIndexInformer) (heard []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &troubled{Server: informertest.NewServer()}
		s.Serve(pods, "Pod")
		s.Put(pods, "shop", "a", nil)
		cfg := s.Config()
		cfg.Transport = s
		e := must[*Engine](t)(New(cfg, Options{}))
		if sit.before != nil {
			sit.before(s)
		}
		i := m(ListWatch(podsOf(t, cfg, e)), e)
		if err := i.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			heard = append(heard, fmt.Sprintf("%s: %s", r.TypeDescription(), sort(err)))
		}); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		pass(time.Hour)
		if !i.HasSynced() {
			t.Fatalf("not synced after %q", heard)
		}
		if sit.after != nil {
			// After a watch that ends within its first second, client-go lists again: that is another situation.
			s.CloseWatches()
			pass(time.Minute)
			sit.after(s)
			s.Put(pods, "shop", "b", nil)
			pass(time.Hour)
		}
		s.Put(pods, "shop", "c", nil)
		s.Delete(pods, "shop", "a")
		pass(time.Minute)
		want := []string{"shop/c"}
		if sit.after != nil {
			want = []string{"shop/b", "shop/c"}
		}
		keys := i.GetStore().ListKeys()
		slices.Sort(keys)
		expect(t, "all is well again", keys, want...)
		if st := e.Stats().Informers; len(st) > 0 && !st[0].Raw {
			t.Errorf("ours is not raw: %s", st[0].Decoded)
		}
	})
	return heard
}

func podsOf(t *testing.T, cfg *rest.Config, e *Engine) Client[*corev1.PodList] {
	t.Helper()
	return must[*kubernetes.Clientset](t)(kubernetes.NewForConfigAndClient(cfg, e.HTTPClient())).CoreV1().Pods("shop")
}

// sort describes everything that a program can learn about an error.
func sort(err error) string {
	var is []string
	for name, f := range map[string]func(error) bool{
		"unauthorized": apierrors.IsUnauthorized, "forbidden": apierrors.IsForbidden, "not found": apierrors.IsNotFound,
		"too many": apierrors.IsTooManyRequests, "internal": apierrors.IsInternalError, "expired": apierrors.IsResourceExpired,
		"gone": apierrors.IsGone, "timeout": apierrors.IsTimeout, "server timeout": apierrors.IsServerTimeout,
		"unavailable": apierrors.IsServiceUnavailable, "unexpected": apierrors.IsUnexpectedServerError,
		"bad request": apierrors.IsBadRequest, "invalid": apierrors.IsInvalid,
		"refused": utilnet.IsConnectionRefused, "cut": utilnet.IsProbableEOF, "late": utilnet.IsTimeout,
		"ends": func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) },
	} {
		if f(err) {
			is = append(is, name)
		}
	}
	slices.Sort(is)
	status := ""
	var st apierrors.APIStatus
	if errors.As(err, &st) {
		s := st.Status()
		status = fmt.Sprintf(" %d %s", s.Code, s.Reason)
		if s.Details != nil {
			status += fmt.Sprintf(" %+v", *s.Details)
		}
	}
	return fmt.Sprintf("%T %s%s (%v)", errors.Unwrap(err), strings.Join(is, ", "), status, err)
}

// TestPace: requests that are always refused are repeated as rarely as by client-go.
func TestPace(t *testing.T) {
	quiet(t)
	var asked [2]int
	for n := range asked {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(pods, "Pod")
			s.Misbehave(informertest.Fault{Code: http.StatusForbidden})
			e := must[*Engine](t)(New(s.Config(), Options{}))
			m := e.NewInformer
			if n == 0 {
				m = cache.NewSharedIndexInformer
			}
			i := m(ListWatch(podsOf(t, s.Config(), e)), &corev1.Pod{}, 0, nil)
			if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err != nil {
				t.Fatal(err)
			}
			start(t, i)
			pass(10 * time.Hour)
			asked[n] = len(s.Requests())
		})
	}
	if theirs, ours := asked[0], asked[1]; ours > theirs*5/4 || theirs > ours*5/4 {
		t.Errorf("asked %d times in ten hours, client-go %d times", ours, theirs)
	}
}

// TestFirstList: the first list has the same options as client-go's.
func TestFirstList(t *testing.T) {
	var asked [2][]string
	for n := range asked {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(pods, "Pod")
			for p := range 1200 {
				s.Put(pods, "shop", fmt.Sprint("p", p), nil)
			}
			s.Misbehave(informertest.Fault{On: informertest.StreamingLists, Code: http.StatusBadRequest})
			e := must[*Engine](t)(New(s.Config(), Options{}))
			m := e.NewInformer
			if n == 0 {
				m = cache.NewSharedIndexInformer
			}
			tweak := func(o *metav1.ListOptions) { o.LabelSelector = "!hidden" }
			i := m(ListWatch(podsOf(t, s.Config(), e), tweak), &corev1.Pod{}, 0, nil)
			start(t, i)
			pass(time.Second)
			if len(i.GetStore().ListKeys()) != 1200 {
				t.Errorf("%d objects", len(i.GetStore().ListKeys()))
			}
			for _, r := range s.Recorded() {
				r.Query.Del("timeoutSeconds")
				r.Query.Del("timeout")
				asked[n] = append(asked[n], fmt.Sprint(r.Path, " ", r.Accept, " ", r.Query.Encode()))
			}
		})
	}
	expect(t, "requests", asked[1], asked[0]...)
	if !slices.ContainsFunc(asked[0], func(r string) bool { return strings.Contains(r, "limit=500&resourceVersion=0") }) {
		t.Errorf("asked %q", asked[0])
	}
}
