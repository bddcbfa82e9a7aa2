// Package synth is an API server that has millions of pods and needs no memory for them: it makes
// each one, whenever it is asked for it, from the generator.
//
// It speaks the real wire: HTTP/2 over TLS; protobuf or JSON; lists (whole or in pages), streaming
// lists, watches with bookmarks, single pods; 410 for a watch from before its history. It serves
// pods and little else, discovery included, to whoever asks.
//
// What happens in it is told by [Control]: so many updates, so many short-lived pods, an expiry of
// its history. Where a real server drops a watcher that does not read fast enough, this one waits
// for it, so that what is measured is how fast it reads. It compresses nothing.
package synth

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/bench/gen"
)

// firstVersion is the server's resource version before anything happened; it and all that follow
// have ten digits. Pods that nothing happened to have older ones.
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
	count    int           // of events that happened
	oldest   int           // a watch from before this event is 410
	closed   int           // counts what ends every watch
	changed  chan struct{} // closed with every change of the above
	requests []string
}

// NewServer returns a server with n pods that the generator makes.
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

// Prepare makes what the server needs to be quick, which otherwise the first requests pay for.
func (s *Server) Prepare() { s.encoders[gen.Protobuf].Prepare() }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	s.mu.Unlock()
	s.mux.ServeHTTP(w, r)
}

// storm is a number of events that happened one after another.
type storm struct {
	first   int // event
	count   int
	objects int // updates go round this many pods; 0: pods come and go
}

// event is what happened to a pod.
type event struct {
	kind    string
	pod     int
	step    int
	version uint64
}

// state is a look at the server: it does not change.
type state struct {
	storms []storm
	count  int
	pods   int // those that stay: the others come after them
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

// steps is how often a pod was updated.
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

// happen adds events: updates that go round a number of pods, or, without that, pods that come and
// go, which are even in number. It returns the resource version of the last one.
func (s *Server) happen(count, objects int) uint64 {
	s.change(func() { s.add(count, objects) })
	return version(s.state().count)
}

// add adds events; s.mu is held.
func (s *Server) add(count, objects int) {
	// Pods come again by the names of those that went in an earlier storm: there are only so many.
	t := storm{first: s.count, count: count, objects: min(objects, s.n)}
	if objects == 0 {
		t.count = count / 2 * 2
	}
	s.storms = append(s.storms[:len(s.storms):len(s.storms)], t)
	s.count += t.count
}

// expire ends every watch, lets a pod come and go that none of them is told of, and forgets that:
// whoever wants to go on from before must list.
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

// since reads a request's resource version as a number of events; "" and "0" are none.
func since(r *http.Request) (int, bool) {
	v, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("resourceVersion"), "0"))
	return v - firstVersion, err == nil
}
