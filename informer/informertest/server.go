// Package informertest is an API server for tests that speaks the real wire and misbehaves on
// request.
//
// It serves lists in pages and watches with bookmarks, of any kind, as JSON, and keeps a history
// that can be compacted or replaced. It is reached in memory (Config), which works within a
// testing/synctest bubble, or, being an http.Handler, over a socket.
//
//   - There is no validation, no OpenAPI, no writing over the wire: a test writes with Put and
//     Delete. A kind that was not named to Serve is 404, and discovery does not have it.
//   - Label selectors are the real ones; field selectors know metadata.name and metadata.namespace.
//   - Bookmarks come once a minute and at the end of a watch, as from a watch cache.
package informertest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Server is the API server. Its methods may be called at any time from any goroutine.
type Server struct {
	mu       sync.Mutex
	changed  chan struct{} // closed with every change of what follows
	kinds    map[schema.GroupVersionResource]string
	objects  map[id]object
	log      []change
	rv       uint64
	oldest   uint64 // a watch from before is 410
	uids     int
	cut      uint64 // counts what ends every connection
	closed   uint64 // counts what ends every watch cleanly
	down     bool
	mute     bool
	marks    uint64 // counts extra bookmarks
	raw      []rawFrame
	hook     func(http.ResponseWriter, *http.Request) bool
	requests []string

	described map[schema.GroupResource]apidiscovery.APIResourceDiscovery
	stale     map[string]bool // by group

	pages  map[string][]object // continue token → what is still to be listed
	pageRV map[string]uint64
}

// id names an object of the server.
type id struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

type object struct {
	id
	fields map[string]any // never changed in place
}

// change is an entry of the history.
type change struct {
	rv       uint64
	id       id
	old, new map[string]any // nil: absent
}

// rawFrame is what Send puts between the events of the open watches.
type rawFrame struct {
	gvr  schema.GroupVersionResource
	data string
}

// NewServer returns a server without kinds, at version 1000.
func NewServer() *Server {
	return &Server{
		changed: make(chan struct{}),
		kinds:   map[schema.GroupVersionResource]string{},
		objects: map[id]object{},
		rv:      1000,
		pages:   map[string][]object{},
		pageRV:  map[string]uint64{},

		described: map[schema.GroupResource]apidiscovery.APIResourceDiscovery{},
		stale:     map[string]bool{},
	}
}

// lock returns what unlocks and wakes the watches.
func (s *Server) lock() (unlock func()) {
	s.mu.Lock()
	return func() {
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
	}
}

// Serve adds a kind.
func (s *Server) Serve(gvr schema.GroupVersionResource, kind string) {
	defer s.lock()()
	s.kinds[gvr] = kind
}

// Unserve removes a kind: it is 404 and its watches end.
func (s *Server) Unserve(gvr schema.GroupVersionResource) {
	defer s.lock()()
	delete(s.kinds, gvr)
	s.closed++
}

// Put creates or updates an object and returns its new version. Fields are those of the object
// beside what the server sets (apiVersion, kind, namespace, name, uid, resourceVersion); it is not
// changed.
func (s *Server) Put(gvr schema.GroupVersionResource, namespace, name string, fields map[string]any) string {
	defer s.lock()()
	s.rv++
	k := id{gvr, namespace, name}
	old := s.objects[k].fields
	uid := uidOf(old)
	if old == nil {
		s.uids++
		uid = fmt.Sprintf("uid-%d", s.uids)
	}
	o := maps.Clone(fields)
	if o == nil {
		o = map[string]any{}
	}
	o["apiVersion"], o["kind"] = gvr.GroupVersion().String(), s.kinds[gvr]
	given, _ := o["metadata"].(map[string]any)
	meta := map[string]any{}
	maps.Copy(meta, given)
	meta["name"], meta["uid"], meta["resourceVersion"] = name, uid, s.version()
	if namespace != "" {
		meta["namespace"] = namespace
	}
	o["metadata"] = meta
	s.objects[k] = object{k, o}
	s.log = append(s.log, change{s.rv, k, old, o})
	return s.version()
}

// Delete deletes an object and returns the version of that, or "" where it does not exist.
func (s *Server) Delete(gvr schema.GroupVersionResource, namespace, name string) string {
	defer s.lock()()
	k := id{gvr, namespace, name}
	old, ok := s.objects[k]
	if !ok {
		return ""
	}
	s.rv++
	delete(s.objects, k)
	s.log = append(s.log, change{s.rv, k, old.fields, nil})
	return s.version()
}

// Objects returns the objects of a kind by "namespace/name". They are shared: not to be written to.
func (s *Server) Objects(gvr schema.GroupVersionResource) map[string]map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]map[string]any{}
	for k, o := range s.objects {
		if k.gvr == gvr {
			all[k.namespace+"/"+k.name] = o.fields
		}
	}
	return all
}

// Version is the server's current resource version.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version()
}

func (s *Server) version() string { return strconv.FormatUint(s.rv, 10) }

// Skip lets the version grow by n, as writes to other kinds do.
func (s *Server) Skip(n uint64) {
	defer s.lock()()
	s.rv += n
}

// Compact forgets the history: a watch from an older version, and every continue token, is 410.
func (s *Server) Compact() {
	defer s.lock()()
	s.oldest, s.log = s.rv, nil
	clear(s.pages)
	clear(s.pageRV)
}

// Snapshot is a state to return to.
type Snapshot struct {
	objects map[id]object
	rv      uint64
}

// Snapshot notes the current state.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{maps.Clone(s.objects), s.rv}
}

// Restore replaces the history as restoring a backup does: versions go back, connections break.
func (s *Server) Restore(snap Snapshot) {
	defer s.lock()()
	s.objects, s.rv, s.oldest, s.log = maps.Clone(snap.objects), snap.rv, snap.rv, nil
	clear(s.pages)
	clear(s.pageRV)
	s.cut++
}

// SetDown breaks every connection and refuses new ones, or accepts them again.
func (s *Server) SetDown(down bool) {
	defer s.lock()()
	s.down = down
	s.cut++
}

// Cut breaks every connection, in the middle of what it carries.
func (s *Server) Cut() {
	defer s.lock()()
	s.cut++
}

// CloseWatches ends every watch cleanly.
func (s *Server) CloseWatches() {
	defer s.lock()()
	s.closed++
}

// Mute lets watches say nothing, while they stay open.
func (s *Server) Mute(mute bool) {
	defer s.lock()()
	s.mute = mute
}

// Bookmark sends a bookmark to every watch.
func (s *Server) Bookmark() {
	defer s.lock()()
	s.marks++
}

// Send puts bytes into the open watches of a kind, between two events.
func (s *Server) Send(gvr schema.GroupVersionResource, data string) {
	defer s.lock()()
	s.raw = append(s.raw, rawFrame{gvr, data})
}

// Intercept sees every request before the server does, and answers it by returning true. Nil ends
// that.
func (s *Server) Intercept(hook func(http.ResponseWriter, *http.Request) bool) {
	defer s.lock()()
	s.hook = hook
}

// Requests returns what was asked so far: path and query, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func metaOf(o map[string]any) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func uidOf(o map[string]any) string {
	uid, _ := metaOf(o)["uid"].(string)
	return uid
}
