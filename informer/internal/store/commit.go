package store

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Change is an object's state as a list or watch reports it.
type Change struct {
	Key Key
	// V is the version, with its UID and resource version. With Delete it is the server's final version, or nil.
	V *compact.Version
	// UID and RV identify the object if V is nil.
	UID, RV string
	// Delete means that the object was deleted.
	Delete bool
	// Keep means that the object exists in a version that cannot be stored. The stored version stays, unless UID
	// shows that it belongs to another object.
	Keep bool
	// Reread means that V was read beside the watch: it is the stored version, perhaps in another form, or one that
	// the watch could not read. It is ignored if a newer version is stored or known to exist, and during a list,
	// which reads everything anyway.
	Reread bool
	// Unread, with Keep, means that the version RV could not be read. The state must not be resumed from until the
	// object was read or deleted; without a Key, until the next list. Since is when the stored version was last known
	// to be current.
	Unread bool
	Since  time.Time
	// Index has the index values, by slot.
	Index []any
	// Labels are V's labels, for a store with IndexLabels.
	Labels LabelSet

	against *compact.Version // the stored version that V was compared with, before the lock
	equal   bool             // V has the same content as against
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
	// Version is the stream's resource version after the changes; empty if not known yet.
	Version string
	Gap     *Gap
	// Served, unless 0, is the form in which the server serves the kind: all contents were compared with it. A Sweep
	// always sets it, to 0 if unknown.
	Served uint64
	// At is the current time. After is, for a list, when the stored state was last known to be current; Current is that
	// of the state after the commit. A commit without Current leaves it as it is.
	At, After, Current time.Time
	// Late, unless zero, means that the changes happened after Late, before the watch that delivered them was opened.
	Late time.Time
	// Sweep ends a list: objects that it did not contain are deleted.
	Sweep bool
	// Live means that a loaded state has caught up without a list. It is ignored during a list.
	Live bool
}

// Drops counts the versions that a commit ignored.
type Drops struct {
	Past uint64 // older than the stored one
	Same uint64 // stored already
}

// step is a commit in progress.
type step struct {
	*Store
	in        *Commit
	gap       *Gap
	deltas    []Delta
	drops     Drops
	adopted   []*compact.Version // replaced without a delta: only the sum differs
	done      int                // objects since the lock was last released
	firstList bool               // the first list is in progress: there is nothing to compare it with
}

// Commit applies c and queues the deltas for every queue. While listing, it does so in pieces.
func (s *Store) Commit(c Commit) Drops {
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.isClosed() {
		return Drops{}
	}
	t := step{Store: s, in: &c, gap: c.Gap, firstList: s.head.listing && !s.head.based()}
	t.compare()
	s.mu.Lock()
	for i := range c.Changes {
		t.yield()
		t.apply(&c.Changes[i])
	}
	if c.Sweep {
		t.sweep()
	}
	notify := t.moveHead() || len(t.deltas) > 0 || t.gap != nil
	s.mu.Unlock()
	if notify {
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

// compare compares contents if versions prove nothing, before readers have to wait.
func (t *step) compare() {
	for i := range t.in.Changes {
		c := &t.in.Changes[i]
		if c.V == nil || c.Delete {
			continue
		}
		if o, _ := t.table.find(c.Key); o != nil && t.unproven(o, c.V) {
			c.against, c.equal = o.v, sameContent(o.v, c.V)
		}
	}
}

// unproven reports whether UID, resource version and sum leave open whether the contents are equal.
func (t *step) unproven(o *object, v *compact.Version) bool {
	return o.v.UID() == v.UID() && o.v.RV() == v.RV() && !(t.trusts(o) && seen(v).is(o.v))
}

// same reports whether c is the stored version of an object with the same UID.
func (t *step) same(o *object, c *Change) bool {
	switch {
	case o.v.RV() != c.V.RV():
		return false
	case !t.unproven(o, c.V):
		return true
	case c.against == o.v:
		return c.equal
	}
	return sameContent(o.v, c.V) // an earlier change of this commit came in between
}

// yield releases the lock after each piece. A list's piece is pushed at once, so that a large list is never held
// whole. Live changes are pushed as one batch, since only its end is a state of the server.
func (t *step) yield() {
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

// push passes the deltas to the queues. The caller holds commitMu but not mu.
func (t *step) push() {
	b := t.batch()
	b.Gap, b.Deltas, b.firstList = t.gap, t.deltas, t.firstList
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

// apply applies one change and records its delta.
func (t *step) apply(c *Change) {
	listed := t.head.listing
	o, sp := t.table.find(c.Key)
	switch {
	case c.Reread && !t.stillUseful(o, c):
	case c.Keep:
		t.keep(o, sp, c)
	case o == nil:
		if !c.Delete {
			t.add(c, c.Reread || listed && !t.firstList)
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
		_, unread := t.unread[c.Key]
		d := Delta{Op: Updated, Old: o.v, New: c.V, Relisted: c.Reread || unread || t.missed(o)}
		o.v, o.mark = c.V, t.mark
		delete(t.unverified, o)
		t.stored(d, o, sp, c)
	default:
		o.mark = t.mark
		delete(t.unverified, o)
		if c.V.Sum() != 0 && c.V.Sum() != o.v.Sum() && c.V.Format() == o.v.Format() {
			t.adopted = append(t.adopted, o.v)
			o.v = c.V // so that the next list finds its sum
		}
		delete(t.unread, c.Key)
		if !listed && !c.Reread {
			t.drops.Same++
		}
	}
}

// stillUseful reports whether a reread version is still needed.
func (t *step) stillUseful(o *object, c *Change) bool {
	if t.head.listing {
		return false
	}
	if u, ok := t.unread[c.Key]; ok {
		return u.rv == c.V.RV() || wire.Older(u.rv, c.V.RV())
	}
	return o != nil && o.v.UID() == c.V.UID() && o.v.RV() == c.V.RV()
}

// keep records that the server has an object in a version that is not stored.
func (t *step) keep(o *object, sp *space, c *Change) {
	if c.Unread {
		defer func() { t.unread[c.Key] = unread{c.RV, c.Since} }()
	}
	switch {
	case o == nil:
		return
	case c.UID != "" && c.UID != o.v.UID(): // the stored object was deleted, whatever exists now
		t.remove(o, sp, nil)
		return
	}
	o.mark = t.mark
	if t.compareContents {
		t.unverified[o] = struct{}{}
	}
}

// missed reports whether o's change was not observed: a list compares it with an older version, or could not read it.
// A second change within the same list was observed.
func (t *step) missed(o *object) bool {
	_, unverified := t.unverified[o]
	return unverified || t.head.listing && o.mark != t.mark
}

func (t *step) add(c *Change, relisted bool) {
	o, sp := t.table.add(c.Key, c.V, t.mark)
	t.stored(Delta{Op: Added, New: c.V, Relisted: relisted, Initial: t.firstList}, o, sp, c)
}

func (t *step) stored(d Delta, o *object, sp *space, c *Change) {
	t.record(d, o, sp)
	t.indexes.set(Key{sp.name, o.name}, c.Index)
	if t.labels != nil {
		t.labels.set(o, sp.name, c.Labels)
	}
}

// remove deletes an object because of c, or, if c is nil, because a list did not contain it.
func (t *step) remove(o *object, sp *space, c *Change) {
	d := Delta{Op: Deleted, Old: o.v, Relisted: t.missed(o)}
	if c != nil && c.Delete && c.uid() == o.v.UID() {
		d.Final = c.V
	}
	t.record(d, o, sp)
	t.table.remove(o, sp)
	delete(t.unverified, o)
	t.indexes.delete(Key{sp.name, o.name})
	if t.labels != nil {
		t.labels.remove(o)
	}
}

// record completes a delta and adds it.
func (t *step) record(d Delta, o *object, sp *space) {
	d.Key, d.sum = Key{sp.name, o.name}, hashKey(sp.sum, o.sum)
	d.At = t.in.At
	switch u := t.unread[d.Key]; {
	case !d.Relisted:
		d.After = t.in.Late
	case u.since.IsZero():
		d.After = t.in.After
	default:
		d.After = u.since
	}
	delete(t.unread, d.Key)
	t.deltas = append(t.deltas, d)
}

// sweep deletes the objects that the list did not contain, in the order of their keys.
func (t *step) sweep() {
	t.mu.Unlock() // the writer is the only one to change the table, so readers need not wait
	var gone []Key
	t.table.each(func(sp *space, o *object) {
		if o.mark != t.mark {
			gone = append(gone, Key{sp.name, o.name})
		}
	})
	slices.SortFunc(gone, compareKeys)
	t.mu.Lock()
	for _, k := range gone {
		t.yield()
		o, sp := t.table.find(k)
		t.remove(o, sp, nil)
	}
}

// moveHead updates the head, and reports whether queues must be notified.
func (t *step) moveHead() bool {
	h, c := &t.head, t.in
	if !c.Current.IsZero() {
		h.current = c.Current
	}
	switch {
	case c.Sweep:
		h.version, h.served = c.Version, c.Served
		h.phase, h.listing, h.synced = Live, false, true
		t.compareContents, t.outdated = false, false
		return true
	case h.listing:
		return false
	}
	news := c.Live && h.phase != Live
	if news {
		h.phase, h.synced = Live, true
	}
	if c.Version != "" && c.Version != "0" && c.Version != h.version && !wire.Older(c.Version, h.version) { // "0" is no version
		h.version = c.Version
		news = h.phase != Listing
	}
	if c.Served != 0 && c.Served != h.served {
		h.served = c.Served
		news = news || h.phase == Live
	}
	return news
}
