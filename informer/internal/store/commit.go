package store

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Change is what a list or watch says of one object.
type Change struct {
	Key Key
	// V is the version, with its UID and resource version. With Delete it is the server's last word,
	// or nil.
	V *compact.Version
	// UID and RV are the object's where V is nil.
	UID, RV string
	// Delete says that the object is gone.
	Delete bool
	// Keep says that the object exists in a version that cannot be stored: what is stored stays,
	// unless UID says that it was another object.
	Keep bool
	// Reread says that V was read again, beside the watch: it is the stored version, in another form
	// perhaps, or one that the watch could not read. It is ignored if a newer version is stored, or known
	// to exist, by now, and in a list, which reads everything again anyway.
	Reread bool
	// Unread says of Keep that the version, RV, could not be read: nobody may resume from the state until
	// the object was read, or is gone. Without a Key, that is until the next list. Since is when the
	// stored version was last known to be current.
	Unread bool
	Since  time.Time
	// Index has the values for the indexes, by slot.
	Index []any
	// Labels are V's, for a store with IndexLabels.
	Labels LabelSet

	against *compact.Version // the stored version that V was compared with, before the lock
	alike   bool             // and found to have the content of
}

func (c *Change) uid() string {
	if c.V != nil {
		return c.V.UID()
	}
	return c.UID
}

func (c *Change) rv() string {
	if c.V != nil {
		return c.V.RV()
	}
	return c.RV
}

// Commit is one step of the writer.
type Commit struct {
	Changes []Change
	// Version is the stream's resource version behind the changes; empty where it is not known yet.
	Version string
	Gap     *Gap
	// Served, unless it is 0, is the form in which the server serves the kind: every content was compared
	// with that. A Sweep says so, too; there, 0 is not known.
	Served uint64
	// At is now. After is, for a list, when the stored state was last known to be current.
	At, After time.Time
	// Late, unless it is zero, says that the changes happened before the watch that delivered them was opened, and
	// after Late.
	Late time.Time
	// Sweep ends a list: what it did not name is deleted.
	Sweep bool
	// Live says that a loaded state has caught up without a list; it means nothing while one is
	// under way.
	Live bool
}

// Drops counts what a commit did not apply.
type Drops struct {
	Past uint64 // versions older than the stored one
	Same uint64 // versions that are stored already
}

// step is a commit under way.
type step struct {
	*Store
	in      *Commit
	gap     *Gap
	deltas  []Delta
	drops   Drops
	adopted []*compact.Version // replaced without a delta: only their sums were others
	done    int                // objects since readers were let in
	forming bool               // the first list is under way: there is nothing that it can be compared with
}

// Commit applies c and tells every queue. While listing, it does so in pieces.
func (s *Store) Commit(c Commit) Drops {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.isClosed() {
		return Drops{}
	}
	t := step{Store: s, in: &c, gap: c.Gap, forming: s.head.listing && !s.head.based()}
	t.compare()
	s.mu.Lock()
	for i := range c.Changes {
		t.breathe()
		t.apply(&c.Changes[i])
	}
	if c.Sweep {
		t.sweep()
	}
	tell := t.settle() || len(t.deltas) > 0 || t.gap != nil
	s.mu.Unlock()
	if tell {
		t.push()
	}
	if t.Replaced != nil {
		for _, v := range t.adopted {
			t.Replaced(v)
		}
	}
	if t.head.synced {
		t.admit(c.At)
	}
	return t.drops
}

// compare compares contents where versions prove nothing, before the readers have to wait.
func (t *step) compare() {
	for i := range t.in.Changes {
		c := &t.in.Changes[i]
		if c.V == nil || c.Delete {
			continue
		}
		if o, _ := t.table.find(c.Key); o != nil && t.unproven(o, c.V) {
			c.against, c.alike = o.v, sameContent(o.v, c.V)
		}
	}
}

// unproven reports that UID, resource version and sum leave open whether the contents are the same.
func (t *step) unproven(o *object, v *compact.Version) bool {
	return o.v.UID() == v.UID() && o.v.RV() == v.RV() && !(t.trusts(o) && seen(v).is(o.v))
}

// same tells whether c says nothing new of an object with the same UID.
func (t *step) same(o *object, c *Change) bool {
	switch {
	case o.v.RV() != c.V.RV():
		return false
	case !t.unproven(o, c.V):
		return true
	case c.against == o.v:
		return c.alike
	}
	return sameContent(o.v, c.V) // an earlier change of this commit was in between
}

// breathe lets readers in after each piece. A list's piece is told at once, so that a large one is
// never held whole; what is live is told in one batch, since only its end is a state of the server.
func (t *step) breathe() {
	t.done++
	if t.done <= t.piece {
		return
	}
	t.done = 1
	t.mu.Unlock()
	if t.head.listing && len(t.deltas) > 0 {
		t.push()
	}
	t.mu.Lock()
}

// push tells the queues. The caller holds the turn and not mu.
func (t *step) push() {
	b := Batch{Stream: t.id, Epoch: t.head.epoch, Phase: t.head.phase, Version: t.resumable(), Served: t.head.served,
		Gap: t.gap, Deltas: t.deltas, forming: t.forming}
	for _, q := range t.queues {
		q.push(&b, t.in.At)
	}
	if t.Replaced != nil {
		for i := range t.deltas {
			if old := t.deltas[i].Old; old != nil {
				t.Replaced(old)
			}
		}
	}
	t.gap, t.deltas = nil, nil
}

// apply changes one object and notes what that means.
func (t *step) apply(c *Change) {
	listed := t.head.listing
	o, sp := t.table.find(c.Key)
	switch {
	case c.Reread && !t.wants(o, c):
	case c.Keep:
		t.keep(o, sp, c)
	case o == nil:
		if !c.Delete {
			t.add(c, c.Reread || listed && !t.forming)
		}
		delete(t.unread, c.Key)
	case !listed && t.trusts(o) && wire.Older(c.rv(), o.v.RV()):
		t.drops.Past++
	case c.Delete:
		t.remove(o, sp, c)
	case o.v.UID() != c.V.UID():
		missed := t.missed(o)
		t.remove(o, sp, c)
		t.add(c, missed)
	case !t.same(o, c):
		d := Delta{Op: Updated, Old: o.v, New: c.V, Relisted: c.Reread || t.missed(o)}
		o.v, o.mark = c.V, t.mark
		delete(t.doubtful, o)
		t.stored(d, o, sp, c)
	default:
		o.mark = t.mark
		delete(t.doubtful, o)
		if c.V.Sum() != 0 && c.V.Sum() != o.v.Sum() && c.V.Format() == o.v.Format() {
			t.adopted = append(t.adopted, o.v)
			o.v = c.V // the next list has its sum
		}
		delete(t.unread, c.Key)
		if !listed && !c.Reread {
			t.drops.Same++
		}
	}
}

// wants tells whether something that was read again is still of use.
func (t *step) wants(o *object, c *Change) bool {
	if t.head.listing {
		return false
	}
	if u, ok := t.unread[c.Key]; ok {
		return u.rv == c.V.RV() || wire.Older(u.rv, c.V.RV())
	}
	return o != nil && o.v.UID() == c.V.UID() && o.v.RV() == c.V.RV()
}

// keep notes that the server has an object in a version that is not stored.
func (t *step) keep(o *object, sp *space, c *Change) {
	if c.Unread {
		defer func() { t.unread[c.Key] = unread{c.RV, c.Since} }()
	}
	switch {
	case o == nil:
		return
	case c.UID != "" && c.UID != o.v.UID(): // what is stored was deleted, whatever is there now
		t.remove(o, sp, nil)
		return
	}
	o.mark = t.mark
	if t.fresh {
		t.doubtful[o] = struct{}{}
	}
}

// missed tells that what happened to o was not seen: a list compares it with what it was before, or
// could not read it. What this list has named itself is seen to change.
func (t *step) missed(o *object) bool {
	_, doubtful := t.doubtful[o]
	return doubtful || t.head.listing && o.mark != t.mark
}

func (t *step) add(c *Change, relisted bool) {
	o, sp := t.table.add(c.Key, c.V, t.mark)
	t.stored(Delta{Op: Added, New: c.V, Relisted: relisted, Initial: t.forming}, o, sp, c)
}

func (t *step) stored(d Delta, o *object, sp *space, c *Change) {
	t.note(d, o, sp)
	t.indexes.set(Key{sp.name, o.name}, c.Index)
	if t.labels != nil {
		t.labels.set(o, sp.name, c.Labels)
	}
}

// remove deletes an object, because of c or, where that is nil, because a list did not name it.
func (t *step) remove(o *object, sp *space, c *Change) {
	d := Delta{Op: Deleted, Old: o.v, Relisted: t.missed(o)}
	if c != nil && c.Delete && c.uid() == o.v.UID() {
		d.Final = c.V
	}
	t.note(d, o, sp)
	t.table.remove(o, sp)
	delete(t.doubtful, o)
	t.indexes.delete(Key{sp.name, o.name})
	if t.labels != nil {
		t.labels.remove(o)
	}
}

// note completes a delta of an object.
func (t *step) note(d Delta, o *object, sp *space) {
	d.Key, d.sum = Key{sp.name, o.name}, hashKey(sp.sum, o.sum)
	d.At = t.in.At
	switch {
	case !d.Relisted:
		d.After = t.in.Late
	case t.in.After.IsZero():
		d.After = t.unread[d.Key].since
	default:
		d.After = t.in.After
	}
	delete(t.unread, d.Key)
	t.deltas = append(t.deltas, d)
}

// sweep deletes what the list did not name, in the order of the keys.
func (t *step) sweep() {
	t.mu.Unlock() // only we write, so readers need not wait for the search
	var gone []Key
	t.table.each(func(sp *space, o *object) {
		if o.mark != t.mark {
			gone = append(gone, Key{sp.name, o.name})
		}
	})
	slices.SortFunc(gone, compareKeys)
	t.mu.Lock()
	for _, k := range gone {
		t.breathe()
		o, sp := t.table.find(k)
		t.remove(o, sp, nil)
	}
}

// settle moves the head, and tells whether that is news.
func (t *step) settle() bool {
	h, c := &t.head, t.in
	switch {
	case c.Sweep:
		h.version, h.served = c.Version, c.Served
		h.phase, h.listing, h.synced, t.fresh = Live, false, true, false
		return true
	case h.listing:
		return false
	}
	news := c.Live && h.phase != Live
	if news {
		h.phase, h.synced = Live, true
	}
	if c.Version != "" && c.Version != h.version && !wire.Older(c.Version, h.version) {
		h.version = c.Version
		news = h.phase != Listing
	}
	if c.Served != 0 && c.Served != h.served {
		h.served = c.Served
		news = news || h.phase == Live
	}
	return news
}
