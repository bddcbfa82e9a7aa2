// Package informertest is an API server for tests that speaks the real wire protocol and misbehaves on request.
//
// It serves lists in pages, streaming lists, watches with bookmarks, single objects, discovery and the index of
// OpenAPI documents, for any kind. Objects are sent whole or as PartialObjectMetadata, as JSON or, if the kind
// has a Go type with that encoding, as protobuf. The server keeps a history that can be compacted or replaced.
// Clients connect in memory (Config), which works within a testing/synctest bubble, or, since it is an
// http.Handler, over a socket, with HTTP/1.1 and HTTP/2. Its model is the API server of Kubernetes 1.36.
//
//   - Clients create, update, patch and delete objects, and write the status subresource, by JSON or protobuf,
//     under the rules of a real server: matching versions and UIDs, generations, generated names, finalizers,
//     dry runs. A test may also write by Put and Delete, which bypass the rules. Server-side apply is 415.
//   - There is no validation or defaulting of objects (except ChangeForm), no admission, garbage collection,
//     grace period or managed fields; no Table, YAML or CBOR; no subresource except status; no deletion of
//     collections. An update never creates. An OpenAPI document only names its kinds. A kind that was not
//     passed to Serve is 404 and not in discovery.
//   - Every kind has a watch cache: even Events have bookmarks and streaming lists. Bookmarks come once a
//     minute and at the end of a watch (on a real server: 2 s before it).
//   - Label selectors are complete; field selectors support metadata.name and metadata.namespace, and any other
//     is 400.
//   - Nothing waits: where a real server waits up to 3 s for a version, this one answers at once that it is too
//     large.
//   - History is kept whole (see KeepHistory), and so are the recorded requests.
package informertest

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Server is the API server. Its methods are safe for concurrent use.
type Server struct {
	mu            sync.Mutex
	changed       chan struct{} // closed at every change of the fields below
	resources     map[schema.GroupVersionResource]*resource
	rv            uint64 // the current version
	written       uint64 // the version of the last write
	oldest        uint64 // a watch from before this version is 410
	lastForgotten uint64 // the last write when the history was forgotten
	keep          int    // bounds the history of each kind; 0: unbounded
	uids          int
	names         int    // number of generated names
	cut           uint64 // counts events that break every connection
	closed        uint64 // counts events that end every watch cleanly
	down          bool
	mute          bool
	marks         uint64 // counts extra bookmarks
	raw           []rawFrame
	faults        []*Fault
	hook          func(http.ResponseWriter, *http.Request) bool
	requests      []request

	described map[schema.GroupResource]apidiscovery.APIResourceDiscovery
	stale     map[string]bool // by group

	lists    map[int]*snapshot // by continue token
	nextList int
}

// rawFrame is the data that Send inserts into the open watches.
type rawFrame struct {
	gvr  schema.GroupVersionResource
	data string
}

// NewServer returns a server without kinds, at version 1000.
func NewServer() *Server {
	return &Server{
		changed:   make(chan struct{}),
		resources: map[schema.GroupVersionResource]*resource{},
		rv:        1000,
		lists:     map[int]*snapshot{},

		described: map[schema.GroupResource]apidiscovery.APIResourceDiscovery{},
		stale:     map[string]bool{},
	}
}

// lock returns a function that unlocks the server and wakes the watches.
func (s *Server) lock() (unlock func()) {
	s.mu.Lock()
	return func() {
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
}

// kind describes a resource's objects; it does not change.
type kind struct {
	gvr  schema.GroupVersionResource
	name string
	// new makes an object of the Go type, which has a protobuf encoding; nil for a custom kind.
	new    func() runtime.Object
	status bool // it has the status subresource
}

func (k *kind) apiVersion() string { return k.gvr.GroupVersion().String() }

// message has the methods of the generated Go types of built-in kinds.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Serve adds a kind. If client-go's scheme has its Go type, it is served as protobuf, too, like a built-in
// kind; otherwise as JSON only, like a custom resource.
func (s *Server) Serve(gvr schema.GroupVersionResource, kind string) {
	gvk := gvr.GroupVersion().WithKind(kind)
	var newObject func() runtime.Object
	if scheme.Scheme.Recognizes(gvk) {
		newObject = func() runtime.Object {
			o, err := scheme.Scheme.New(gvk)
			if err != nil {
				panic(fmt.Sprintf("informertest: a recognized kind without a type: %v", err))
			}
			return o
		}
	}
	s.ServeTyped(gvr, kind, newObject)
}

// ServeTyped adds a kind with its Go type, which newObject makes; nil: it has no Go type. It is served as
// protobuf, too, if the type has that encoding.
func (s *Server) ServeTyped(gvr schema.GroupVersionResource, name string, newObject func() runtime.Object) {
	k := &kind{gvr: gvr, name: name}
	if newObject != nil {
		if _, ok := newObject().(message); ok {
			k.new = newObject
			k.status = reflect.Indirect(reflect.ValueOf(newObject())).FieldByName("Status").IsValid()
		}
	}
	defer s.lock()()
	res := s.resource(gvr)
	k.status = k.status || res.kind.status
	res.kind, res.served = k, true
}

// ServeStatus gives a custom kind the status subresource, as its CRD would. Built-in kinds have it if their Go
// type has a status.
func (s *Server) ServeStatus(gvr schema.GroupVersionResource) {
	defer s.lock()()
	res := s.resource(gvr)
	k := *res.kind
	k.status = true
	res.kind = &k
}

// is reports whether an object is of the kind's Go type.
func (k *kind) is(o runtime.Object) bool {
	return k.new != nil && reflect.TypeOf(o) == reflect.TypeOf(k.new())
}

// Unserve removes a kind: it is 404 and its watches end. Its objects are kept in case it is served again.
func (s *Server) Unserve(gvr schema.GroupVersionResource) {
	defer s.lock()()
	s.resource(gvr).served = false
	s.closed++
}

// Version returns the server's current resource version.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version()
}

func (s *Server) version() string { return strconv.FormatUint(s.rv, 10) }

// SetDown breaks every connection and refuses new ones, or accepts them again.
func (s *Server) SetDown(down bool) {
	defer s.lock()()
	s.down = down
	s.cut++
}

// Cut breaks every connection, in the middle of a transfer.
func (s *Server) Cut() {
	defer s.lock()()
	s.cut++
}

// CloseWatches ends every watch cleanly.
func (s *Server) CloseWatches() {
	defer s.lock()()
	s.closed++
}

// Mute keeps watches silent while they stay open.
func (s *Server) Mute(mute bool) {
	defer s.lock()()
	s.mute = mute
}

// Bookmark sends a bookmark to every watch.
func (s *Server) Bookmark() {
	defer s.lock()()
	s.marks++
}

// Send inserts bytes into the open watches of a kind, between two events.
func (s *Server) Send(gvr schema.GroupVersionResource, data string) {
	defer s.lock()()
	s.raw = append(s.raw, rawFrame{gvr, data})
}

// Intercept passes every request to hook first. If hook returns true, it has answered the request. A nil hook
// ends the interception.
func (s *Server) Intercept(hook func(http.ResponseWriter, *http.Request) bool) {
	defer s.lock()()
	s.hook = hook
}

// Request is a recorded request.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Accept string // the header
	Proto  string // "HTTP/1.1" or "HTTP/2.0"
}

type request struct {
	method, uri, accept, proto string
}

// Requests returns the path and query of each request so far, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := make([]string, len(s.requests))
	for i, r := range s.requests {
		uris[i] = r.uri
	}
	return uris
}

// Recorded returns the requests so far, in order.
func (s *Server) Recorded() []Request {
	s.mu.Lock()
	asked := slices.Clone(s.requests)
	s.mu.Unlock()
	all := make([]Request, len(asked))
	for i, r := range asked {
		all[i] = Request{Method: r.method, Accept: r.accept, Proto: r.proto}
		if u, err := url.ParseRequestURI(r.uri); err == nil {
			all[i].Path, all[i].Query = u.Path, u.Query()
		}
	}
	return all
}
