package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// source is a server's collection, its writer, which follows it into a store, and the store's reference.
type source struct {
	*world
	id    int
	store *Store
	bare  bool // objects without UID and version, like those of client-go's fakes

	truth map[Key]*compact.Version
	rv    int
	log   []event // the server's history
	pos   int     // how much of it the writer has processed
	back  snapshot
	uids  int

	ref   reference
	index *toyIndex
	// states are the server's states by epoch and version.
	states map[string][]map[Key]*compact.Version
}

type event struct {
	key    Key
	v      *compact.Version
	delete bool
}

type snapshot struct {
	truth map[Key]*compact.Version
	rv    int
}

func newSource(w *world, id int) *source {
	s := &source{world: w, id: id, store: New(id), bare: w.one(6), truth: map[Key]*compact.Version{},
		rv: 9, states: map[string][]map[Key]*compact.Version{}}
	s.store.piece = 3
	s.ref = newReference(s)
	s.index = &toyIndex{source: s, slot: -1}
	for range w.rand.IntN(20) {
		s.write()
	}
	s.back = s.save()
	return s
}

// open loads a state or lists; the stream is live afterwards.
func (s *source) open() {
	if !s.one(3) {
		s.pos = len(s.log)
		s.relist(s.one(4), s.one(4), s.one(3))
		return
	}
	trusted := s.one(2)
	s.load(trusted)
	for range s.rand.IntN(4) {
		s.write()
	}
	if !trusted || s.one(3) {
		s.relist(s.one(4), s.one(4), s.one(3))
		return
	}
	s.deliver(s.rand.IntN(10))
	s.commit(Commit{Version: strconv.Itoa(s.rv), Changes: s.seen(len(s.log)), Live: true})
}

// load loads the current state, as left by an earlier run.
func (s *source) load(trusted bool) {
	var items []Item
	for k, v := range s.truth {
		if !trusted && s.one(3) {
			v = s.version(v.UID(), v.RV())
		}
		items = append(items, Item{k, v})
		s.ref.has[k] = &held{v: v, life: &life{}}
	}
	h := Head{Epoch: 1 + int64(s.rand.IntN(3)), Phase: Live, Version: strconv.Itoa(s.rv), At: s.now()}
	s.ref.loaded, s.ref.epoch, s.ref.compareContents, s.ref.version = true, h.Epoch, !trusted, h.Version
	s.pos = len(s.log)
	for _, c := range s.consumers {
		c.refs[s.id].start(s, h.At)
	}
	s.store.Load(items, h, trusted)
	s.check()
}

func (s *source) anyKey() Key {
	return Key{fmt.Sprintf("n%d", s.rand.IntN(4)), fmt.Sprintf("o%d", s.rand.IntN(5))}
}

func (s *source) version(uid, rv string) *compact.Version {
	return pack(wire.JSON, uid, rv, fmt.Appendf(nil, `{"c":%d}`, s.rand.IntN(3)))
}

// write changes something on the server.
func (s *source) write() {
	if k := s.anyKey(); s.one(4) {
		s.drop(k)
	} else {
		s.put(k)
	}
}

func (s *source) put(k Key) {
	s.rv++
	uid, rv := "", ""
	if !s.bare {
		rv = strconv.Itoa(s.rv)
		if old := s.truth[k]; old != nil && !s.one(8) {
			uid = old.UID()
		} else {
			s.uids++
			uid = fmt.Sprintf("u%d", s.uids)
		}
	}
	s.truth[k] = s.version(uid, rv)
	s.log = append(s.log, event{k, s.truth[k], false})
}

func (s *source) drop(k Key) {
	old := s.truth[k]
	if old == nil {
		return
	}
	s.rv++
	delete(s.truth, k)
	rv := ""
	if !s.bare {
		rv = strconv.Itoa(s.rv)
	}
	s.log = append(s.log, event{k, s.version(old.UID(), rv), true})
}

// changeForm makes the server serve an object differently at the same version, like a new default of its kind. There
// is no event, but the next list shows it.
func (s *source) changeForm() {
	k := s.anyKey()
	old := s.truth[k]
	if old == nil {
		return
	}
	s.truth[k] = s.version(old.UID(), old.RV())
	for i, e := range s.log {
		if e.v == old {
			s.log[i].v = s.truth[k]
		}
	}
}

// change appends an event with its own version.
func (e event) change() Change {
	raw, err := e.v.Append(nil)
	if err != nil {
		panic(err)
	}
	v := pack(wire.JSON, e.v.UID(), e.v.RV(), raw)
	c := Change{Key: e.key, V: v, Delete: e.delete, Index: []any{nil, nil, nil}}
	for i := range c.Index {
		c.Index[i] = e.v.RV()
	}
	return c
}

// seen returns up to n events that the writer has not processed.
func (s *source) seen(n int) []Change {
	var changes []Change
	for range n {
		if s.pos == len(s.log) {
			break
		}
		changes = append(changes, s.log[s.pos].change())
		s.pos++
	}
	return changes
}

// deliver delivers up to n events, one by one or together.
func (s *source) deliver(n int) {
	if s.one(4) {
		if changes := s.seen(n); len(changes) > 0 {
			s.commit(Commit{Changes: changes, Version: s.at()})
		}
		return
	}
	for range n {
		if changes := s.seen(1); len(changes) > 0 {
			s.commit(Commit{Changes: changes, Version: s.at()})
		}
	}
}

// at returns the watch's version.
func (s *source) at() string { return strconv.Itoa(s.rv - len(s.log) + s.pos) }

// repeat delivers an earlier event of an existing object again.
func (s *source) repeat() {
	if s.pos == 0 {
		return
	}
	e := s.log[s.rand.IntN(s.pos)]
	if h := s.ref.has[e.key]; h != nil && !s.bare && !wire.Older(h.v.RV(), e.v.RV()) {
		s.commit(Commit{Changes: []Change{e.change()}})
	}
}

func (s *source) bookmark() { s.commit(Commit{Version: s.at()}) }

func (s *source) gap() {
	s.commit(Commit{Gap: &Gap{Reason: "test"}})
}

func (s *source) save() snapshot { return snapshot{maps.Clone(s.truth), s.rv} }

// restore replaces the server's history by an older one, which continues from there.
func (s *source) restore() {
	s.truth, s.rv = maps.Clone(s.back.truth), s.back.rv
	for range s.rand.IntN(8) {
		s.write()
	}
	s.gap()
	s.relist(false, true, s.one(3))
}

// reform makes the server serve everything in another form, without a write. A list or an audit finds it.
func (s *source) reform() {
	var changes []Change
	for _, k := range slices.SortedFunc(maps.Keys(s.truth), compareKeys) {
		s.truth[k] = s.version(s.truth[k].UID(), s.truth[k].RV())
		for i := range s.log {
			if s.log[i].key == k && s.log[i].v.RV() == s.truth[k].RV() && !s.log[i].delete {
				s.log[i].v = s.truth[k]
			}
		}
		c := event{k, s.truth[k], false}.change()
		c.Reread = true
		changes = append(changes, c)
	}
	if s.bare || s.one(2) {
		s.relist(false, false, s.one(3))
		return
	}
	if s.one(2) { // while the audit reads
		s.write()
	}
	s.deliver(len(s.log))
	s.rv++ // something else was written: no other state has this version
	s.commit(Commit{Changes: changes, Version: s.at()})
}

// relist lists everything, possibly after an incomplete attempt.
func (s *source) relist(compare, replaced, broken bool) {
	if broken {
		s.list(compare, replaced, false)
		compare, replaced = false, false
		for range s.rand.IntN(4) {
			s.write()
		}
	}
	s.list(compare, replaced, true)
}

// list delivers the existing objects in any order, then the changes meanwhile, as a streaming list does.
func (s *source) list(compare, replaced, whole bool) {
	epoch := s.store.Epoch()
	if replaced {
		epoch++
	}
	s.store.Begin(compare, epoch)
	s.ref.begin(compare, replaced)
	var staged []Change
	stage := func(c Change) {
		if staged = append(staged, c); s.one(3) {
			s.commit(Commit{Changes: staged})
			staged = nil
		}
	}
	keys := slices.Collect(maps.Keys(s.truth))
	slices.SortFunc(keys, compareKeys)
	s.rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, k := range keys {
		v := s.truth[k]
		switch {
		case !whole && s.one(len(keys)):
			s.commit(Commit{Changes: staged})
			return
		case s.known(k, v):
		case (compare || replaced) && s.one(10), !whole && s.one(10):
			c := Change{Key: k, Keep: true}
			if s.one(2) {
				c.UID = v.UID() // the UID could be read
			}
			stage(c)
		default:
			stage(event{k, v, false}.change())
		}
	}
	s.log, s.pos = nil, 0
	s.rv++ // something else was written: no other state has this version
	for range s.rand.IntN(4) {
		s.write()
		for _, c := range s.seen(2) {
			stage(c)
		}
	}
	s.commit(Commit{Changes: staged, Version: s.at(), Sweep: whole})
}

// known calls Known and checks the answer.
func (s *source) known(k Key, v *compact.Version) bool {
	got := s.store.Known(k, *seen(v))
	h := s.ref.has[k]
	want := h != nil && !s.ref.compareContents && !h.unverified && v.UID() != "" && h.v.UID() == v.UID() && h.v.RV() == v.RV() && sameContent(h.v, v)
	if got != want {
		s.Fatalf("known %v: %t, want %t", k, got, want)
	}
	if want {
		s.ref.named[k] = true
	}
	return got
}

// compareTruth checks that the store equals the server.
func (s *source) compareTruth() {
	for _, item := range s.store.Snapshot("") {
		if !sameContent(item.V, s.truth[item.Key]) {
			s.Errorf("%v: the store has %s, the server %s", item.Key, show(item.V), show(s.truth[item.Key]))
		}
	}
	if n, _ := s.store.Stat(); n != len(s.truth) {
		s.Errorf("%d objects, want %d", n, len(s.truth))
	}
}

func show(v *compact.Version) string {
	if v == nil {
		return "nothing"
	}
	raw, err := v.Append(nil)
	return fmt.Sprintf("%s@%s %s %v", v.UID(), v.RV(), raw, err)
}
