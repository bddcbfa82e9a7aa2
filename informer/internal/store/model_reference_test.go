package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// reference is the expected state of a store, and yields the expected deltas of each commit.
type reference struct {
	*source
	has             map[Key]*held
	named           map[Key]bool // by the list in progress
	compareContents bool
	listing         bool
	synced          bool
	loaded          bool
	epoch           int64
	version         string
	most            int // largest number of objects so far
}

// held is an object of the store.
type held struct {
	v          *compact.Version
	life       *life
	unverified bool // it was kept where versions prove nothing
}

// life is an object from its addition to its deletion.
type life struct{ formed bool } // added by the first list

// meaning is an expected delta.
type meaning struct {
	Delta
	life *life
}

func newReference(s *source) reference {
	return reference{source: s, has: map[Key]*held{}, epoch: 1}
}

func (r *reference) based() bool { return r.synced || r.loaded }

func (r *reference) live() bool { return r.synced && !r.listing }

func (r *reference) begin(compare, replaced bool) {
	r.listing, r.named = true, map[Key]bool{}
	r.compareContents = r.compareContents || compare || replaced
	if replaced {
		r.epoch, r.version = r.epoch+1, ""
	}
}

// commit commits to the store, checks the result, and passes the expected deltas to all expectations.
func (s *source) commit(c Commit) {
	c.At = s.now()
	c.After = s.now()
	firstList := s.ref.listing && !s.ref.based()
	means, drops := s.ref.commit(&c)
	for _, m := range means {
		s.index.hear(m, c.Changes)
	}
	for _, con := range s.consumers {
		if !con.ending {
			con.refs[s.id].push(means, c.Gap != nil, firstList, c.At)
		}
	}
	if got := s.store.Commit(c); got != drops {
		s.Fatalf("dropped %+v, want %+v", got, drops)
	}
	if s.ref.live() {
		at := fmt.Sprint(s.ref.epoch, s.ref.version)
		s.states[at] = append(s.states[at], s.ref.versions())
	}
}

func (r *reference) commit(c *Commit) (means []meaning, drops Drops) {
	firstList := r.listing && !r.based()
	notify := func(op Op, k Key, old, now *held, final *compact.Version, relisted bool) {
		m := meaning{Delta: Delta{Op: op, Key: k, Final: final, Relisted: relisted, At: c.At}}
		if old != nil {
			m.Old, m.life = old.v, old.life
		}
		if now != nil {
			m.New, m.life = now.v, now.life
		}
		m.Initial = op == Added && firstList
		if relisted {
			m.After = c.After
		}
		means = append(means, m)
	}
	for _, ch := range c.Changes {
		h := r.has[ch.Key]
		missed := r.listing && !r.named[ch.Key] || h != nil && h.unverified
		if ch.Reread {
			if r.listing || h == nil || h.v.UID() != ch.V.UID() || h.v.RV() != ch.V.RV() {
				continue
			}
			missed = true
		}
		if ch.Keep {
			r.name(ch.Key)
			if h != nil && ch.UID != "" && ch.UID != h.v.UID() {
				delete(r.has, ch.Key)
				notify(Deleted, ch.Key, h, nil, nil, missed)
			} else if h != nil {
				h.unverified = h.unverified || r.compareContents
			}
			continue
		}
		if h != nil && !r.listing && !r.compareContents && !h.unverified && wire.Older(ch.V.RV(), h.v.RV()) {
			drops.Past++
			continue
		}
		if h != nil && ch.Delete {
			var final *compact.Version
			if ch.V.UID() == h.v.UID() {
				final = ch.V
			}
			delete(r.has, ch.Key)
			notify(Deleted, ch.Key, h, nil, final, missed)
		}
		if ch.Delete {
			continue
		}
		if h != nil && h.v.UID() == ch.V.UID() && r.same(h, ch.V) {
			h.unverified = false
			if !r.listing && !ch.Reread {
				drops.Same++
			}
			r.name(ch.Key)
			continue
		}
		now := &held{v: ch.V, life: &life{formed: firstList}}
		switch {
		case h == nil:
			notify(Added, ch.Key, nil, now, nil, r.listing && r.based())
		case h.v.UID() != ch.V.UID():
			notify(Deleted, ch.Key, h, nil, nil, missed)
			notify(Added, ch.Key, nil, now, nil, missed)
		default:
			now.life = h.life
			notify(Updated, ch.Key, h, now, nil, missed)
		}
		r.has[ch.Key] = now
		r.most = max(r.most, len(r.has))
		r.name(ch.Key)
	}
	if c.Sweep {
		for _, k := range slices.SortedFunc(maps.Keys(r.has), compareKeys) {
			if !r.named[k] {
				h := r.has[k]
				delete(r.has, k)
				notify(Deleted, k, h, nil, nil, true)
			}
		}
		r.listing, r.synced, r.compareContents, r.version = false, true, false, c.Version
	}
	if !r.listing {
		r.synced = r.synced || c.Live
		if c.Version != "" && !wire.Older(c.Version, r.version) {
			r.version = c.Version
		}
	}
	return means, drops
}

func (r *reference) name(k Key) {
	if r.listing {
		r.named[k] = true
	}
}

func (r *reference) same(h *held, v *compact.Version) bool {
	return h.v.RV() == v.RV() && sameContent(h.v, v)
}

func (r *reference) versions() map[Key]*compact.Version {
	all := map[Key]*compact.Version{}
	for k, h := range r.has {
		all[k] = h.v
	}
	return all
}

// check compares the store with the reference.
func (s *source) check() {
	s.Helper()
	items := s.store.Snapshot("")
	for _, item := range items {
		if h := s.ref.has[item.Key]; h == nil || h.v != item.V || s.store.Get(item.Key) != item.V {
			s.Fatalf("%v: the store has %s", item.Key, show(item.V))
		}
	}
	objects, version := s.store.Stat()
	if len(items) != len(s.ref.has) || objects != len(items) {
		s.Fatalf("%d objects, Stat returns %d, want %d", len(items), objects, len(s.ref.has))
	}
	if version != s.ref.version || s.store.Epoch() != s.ref.epoch || s.store.Synced() != s.ref.synced {
		s.Fatalf("at %q in epoch %d, want %q in %d", version, s.store.Epoch(), s.ref.version, s.ref.epoch)
	}
	s.index.check()
}
