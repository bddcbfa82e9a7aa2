// Package synth is an API server with millions of pods that needs no memory for them: it generates
// each pod for each request.
//
// It speaks the real protocol: HTTP/2 over TLS; protobuf or JSON; lists (whole or in pages), streaming
// lists, watches with bookmarks, single pods; 410 for a watch from before its history. It serves
// only pods, their discovery and their OpenAPI document, without authentication.
//
// [Control] makes updates, short-lived pods and the expiry of its history happen. A real server drops
// a watcher that reads too slowly; this one waits, so that a benchmark measures how fast the watcher
// reads. It does not compress responses.
package synth

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/gen"
)

// firstVersion is the server's resource version before the first event. It and all later versions
// have ten digits. Pods without an event have older versions.
const firstVersion = 2_000_000_000

// bookmarkEvery is the interval of an API server's watch cache.
const bookmarkEvery = time.Minute

// Server is the API server, an http.Handler.
type Server struct {
	gen      *gen.Generator
	encoders map[gen.Format]*gen.Encoder
	n        int
	mux      *http.ServeMux

	mu       sync.Mutex
	storms   []storm
	count    int           // of events
	oldest   int           // a watch from before this event gets 410
	closed   int           // counts the times that all watches were ended
	changed  chan struct{} // closed when one of the above changes
	requests []string
}

// NewServer returns a server with n generated pods.
func NewServer(g *gen.Generator, n int) *Server {
	s := &Server{gen: g, n: n, changed: make(chan struct{})}
	s.encoders = map[gen.Format]*gen.Encoder{gen.Protobuf: s.gen.NewEncoder(gen.Protobuf), gen.JSON: s.gen.NewEncoder(gen.JSON)}
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("GET /api/v1/pods", s.pods)
	s.mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", s.pod)
	s.mux.HandleFunc("GET /api/v1/namespaces/kube-system", s.namespace)
	s.discovery()
	s.mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return s
}

// Prepare encodes the applications' pods, which otherwise slows down the first requests.
func (s *Server) Prepare() { s.encoders[gen.Protobuf].Prepare() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	s.mu.Unlock()
	s.mux.ServeHTTP(w, r)
}

// storm is a number of consecutive events.
type storm struct {
	first   int // number of the first event
	count   int
	objects int // updates go round this many pods; 0: pods are created and deleted
}

// event is a change of a pod.
type event struct {
	kind    string
	pod     int
	step    int
	version uint64
}

// state is an immutable snapshot of the server.
type state struct {
	storms []storm
	count  int
	pods   int // permanent pods; the numbers of short-lived pods follow
}

func (s *Server) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state{s.storms, s.count, s.n}
}

// version is the resource version after count events.
func version(count int) uint64 { return firstVersion + uint64(count) }

// event returns the i-th event.
func (st state) event(i int) event {
	at := len(st.storms) - 1
	for st.storms[at].first > i {
		at--
	}
	t, j := st.storms[at], i-st.storms[at].first
	e := event{version: version(i + 1)}
	switch {
	case t.objects > 0:
		e.kind, e.pod = "MODIFIED", j%t.objects
		e.step = state{st.storms[:at], t.first, st.pods}.steps(e.pod) + j/t.objects + 1
	case j%2 == 0:
		e.kind, e.pod = "ADDED", st.pods+j/2
	default:
		e.kind, e.pod = "DELETED", st.pods+j/2
	}
	return e
}

// steps is the number of updates of a pod.
func (st state) steps(pod int) int {
	n := 0
	for _, t := range st.storms {
		if count := min(t.count, st.count-t.first); t.objects > pod && count > 0 {
			n += count / t.objects
			if pod < count%t.objects {
				n++
			}
		}
	}
	return n
}

// podVersion is the resource version of a pod.
func (st state) podVersion(pod int) uint64 {
	for i := len(st.storms) - 1; i >= 0; i-- {
		t := st.storms[i]
		count := min(t.count, st.count-t.first)
		if t.objects <= pod || pod >= count {
			continue
		}
		last := (count-1)/t.objects*t.objects + pod
		if last >= count {
			last -= t.objects
		}
		return version(t.first + last + 1)
	}
	return gen.FirstVersion + uint64(pod)
}

// happen adds events: updates that go round a number of pods, or, without that number, creations and
// deletions, an even number of events. It returns the resource version of the last event.
func (s *Server) happen(count, objects int) uint64 {
	s.change(func() { s.add(count, objects) })
	return version(s.state().count)
}

// add adds events; s.mu is held.
func (s *Server) add(count, objects int) {
	// Later storms reuse the names of deleted pods, because the number of names is limited.
	t := storm{first: s.count, count: count, objects: min(objects, s.n)}
	if objects == 0 {
		t.count = count / 2 * 2
	}
	s.storms = append(s.storms[:len(s.storms):len(s.storms)], t)
	s.count += t.count
}

// expire ends every watch, creates and deletes a pod that no watch sees, and drops these events from the
// history, so that clients cannot resume from before and must list.
func (s *Server) expire() {
	s.change(func() {
		s.add(2, 0)
		s.oldest, s.closed = s.count, s.closed+1
	})
}

// change changes the state and wakes the watches.
func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// since converts a request's resource version to a number of events; "" and "0" mean no version.
func since(r *http.Request) (int, bool) {
	v, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("resourceVersion"), "0"))
	return v - firstVersion, err == nil
}
