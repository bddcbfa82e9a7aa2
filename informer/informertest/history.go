package informertest

import (
	"maps"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Skip lets the version grow by n, as writes to other kinds do.
func (s *Server) Skip(n uint64) {
	defer s.lock()()
	s.rv += n
}

// SetVersion lets the server be at another version, with the objects as they are: at one from the
// future, as after many writes to other kinds, or at one from the past, which forgets the history, as
// a server does that is behind, or was made anew from the same objects. Connections stay; a watch that
// knows later versions hears nothing until the server gets there.
func (s *Server) SetVersion(rv uint64) {
	defer s.lock()()
	if rv < s.rv {
		s.forget(rv)
		s.written = rv
	}
	s.rv = rv
}

// KeepHistory bounds the history of each kind: the server remembers at least its last n changes and
// at most twice as many, and a watch from before that is 410. Zero, the default, keeps it whole.
func (s *Server) KeepHistory(n int) {
	defer s.lock()()
	s.keep = n
}

// Compact forgets the history: a watch from an older version, and every continue token, is 410. An open
// watch that has heard of every write is not behind; but one at a version behind which others were
// skipped (Skip) is, so that a test can expire a watch to which nothing happens.
func (s *Server) Compact() {
	defer s.lock()()
	s.forget(s.rv)
}

// forget drops what was before the version; s.mu is held.
func (s *Server) forget(oldest uint64) {
	s.oldest, s.heard = oldest, s.written
	for _, res := range s.resources {
		res.first += len(res.log)
		res.log, res.oldest = nil, 0
	}
	clear(s.lists)
}

// Snapshot is a state to return to.
type Snapshot struct {
	objects map[schema.GroupVersionResource]map[key]*object
	rv      uint64
}

// Snapshot notes the current state.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := Snapshot{map[schema.GroupVersionResource]map[key]*object{}, s.rv}
	for gvr, res := range s.resources {
		snap.objects[gvr] = maps.Clone(res.objects)
	}
	return snap
}

// Restore replaces the history as restoring a backup does: versions go back, connections break. The
// UIDs of all objects, kube-system's too, are as they were.
func (s *Server) Restore(snap Snapshot) {
	defer s.lock()()
	s.forget(snap.rv)
	s.rv, s.written = snap.rv, snap.rv
	for _, res := range s.resources {
		res.objects, res.sorted = map[key]*object{}, nil
	}
	for gvr, objects := range snap.objects {
		res := s.resource(gvr)
		res.objects = maps.Clone(objects)
		for k, o := range res.objects {
			res.objects[k] = res.formed(o) // a backup has what was written, not how it was served
		}
	}
	s.cut++
}

// Fork replaces the history as Restore does, and lets write make another one, by Put and Delete, before
// any client can look. If that is not ahead of the old history by then, other kinds are written to until it
// is, so that no version shows the fork: a watch goes on from where it was, in the other history.
func (s *Server) Fork(snap Snapshot, write func()) {
	s.SetDown(true)
	s.mu.Lock()
	overtaken := s.rv
	s.mu.Unlock()
	s.Restore(snap)
	write()
	defer s.lock()()
	s.rv = max(s.rv, overtaken+1)
	s.down = false
	s.cut++
}

// end is the place in the history behind its last change. Places grow, and survive forgetting.
func (res *resource) end() int { return res.first + len(res.log) }

// after is the place of the first change behind a version.
func (res *resource) after(rv uint64) int {
	return res.first + sort.Search(len(res.log), func(i int) bool { return res.log[i].rv > rv })
}

// changes returns what was changed since a place, shared.
func (res *resource) changes(place int) []change {
	return res.log[max(0, place-res.first):]
}

// before returns the objects as they were before the change at a place, in the order of their keys.
func (res *resource) before(place int) []*object {
	since := res.changes(place)
	if len(since) == 0 {
		return res.inOrder()
	}
	state := maps.Clone(res.objects)
	for _, c := range slices.Backward(since) {
		if c.old != nil {
			state[c.old.key] = c.old
		} else {
			delete(state, c.new.key)
		}
	}
	return slices.SortedFunc(maps.Values(state), func(a, b *object) int { return a.compare(b.key) })
}
