package informertest

import (
	"maps"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Skip increases the version by n, as writes to other kinds do.
func (s *Server) Skip(n uint64) {
	defer s.lock()()
	s.rv += n
}

// SetVersion sets the server's version and keeps the objects. A version from the future is like many writes to
// other kinds. A version from the past forgets the history, like a server that is behind, or was rebuilt from
// the same objects. Connections stay open; a watch at a later version receives nothing until the server reaches
// that version.
func (s *Server) SetVersion(rv uint64) {
	defer s.lock()()
	if rv < s.rv {
		s.forget(rv)
		s.written = rv
	}
	s.rv = rv
}

// KeepHistory bounds the history of each kind: the server keeps at least the last n changes and at most twice
// as many, and answers 410 to a watch from before that. Zero, the default, keeps everything.
func (s *Server) KeepHistory(n int) {
	defer s.lock()()
	s.keep = n
}

// Compact forgets the history: a watch from an older version, and every continue token, gets 410. An open watch
// that has sent every write is not behind, unless versions were skipped (Skip) after its own: so a test can
// expire an idle watch.
func (s *Server) Compact() {
	defer s.lock()()
	s.forget(s.rv)
}

// forget drops the history before the version; s.mu is held.
func (s *Server) forget(oldest uint64) {
	s.oldest, s.lastForgotten = oldest, s.written
	for _, res := range s.resources {
		res.first += len(res.log)
		res.log, res.oldest = nil, 0
	}
	clear(s.lists)
}

// Snapshot is a state that can be restored.
type Snapshot struct {
	objects map[schema.GroupVersionResource]map[key]*object
	rv      uint64
}

// Snapshot captures the current state.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := Snapshot{map[schema.GroupVersionResource]map[key]*object{}, s.rv}
	for gvr, res := range s.resources {
		snap.objects[gvr] = maps.Clone(res.objects)
	}
	return snap
}

// Restore replaces the history as restoring a backup does: versions go back, connections break. All objects,
// including kube-system, have their old UIDs.
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
			res.objects[k] = res.formed(o) // a backup has the stored form, not the served one
		}
	}
	s.cut++
}

// Fork replaces the history as Restore does, and calls write to make another one, by Put and Delete, before any
// client can look. If the new history is then not ahead of the old one, other kinds are written to until it is,
// so that no version reveals the fork: a watch resumes in the new history.
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

// end returns the position after the last change in the history. Positions only grow, also when history is
// forgotten.
func (res *resource) end() int { return res.first + len(res.log) }

// after returns the position of the first change after a version.
func (res *resource) after(rv uint64) int {
	return res.first + sort.Search(len(res.log), func(i int) bool { return res.log[i].rv > rv })
}

// changes returns the changes from a position on, shared.
func (res *resource) changes(place int) []change {
	return res.log[max(0, place-res.first):]
}

// before returns the objects before the change at a position, sorted by key.
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
