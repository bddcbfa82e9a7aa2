package informer

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A watch may deliver old changes: after a restart or an outage the server sends what it has kept, as if it happened
// now. The probe before the watch returns the server's version. A change up to that version happened after the stream
// was last current. That interval travels with the change (store.Delta.After) to the journal and the event, and
// queries by time use it. If a manager's time lies within, the change happened then.

// This is how a stream takes in what its reflector reads: reflector.Sink, but for Report.

// Begin implements reflector.Sink.
func (s *stream) Begin(newEpoch bool) {
	newEpoch = newEpoch || s.expect != nil || s.unverified // what was loaded may be of another history
	s.expect, s.unverified = nil, false
	s.witnesses, s.missing, s.late = nil, nil, late{}
	s.unpin(s.staged)
	s.unstage()
	s.drophold()
	s.after = s.began
	if st := s.Status(); st.Loaded {
		s.after = st.LastCurrent
	}
	s.began = time.Now()
	s.formThen, s.mixed = s.listForm(), false
	s.store.Begin(newEpoch)
}

// Item implements reflector.Sink.
func (s *stream) Item(o wire.Object) error {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !s.keep(k) {
		return nil
	}
	s.witnesses.listed(sighting{k, o.UID, o.ResourceVersion})
	sum := s.sum(o)
	if s.store.Known(k, store.Seen{UID: o.UID, RV: o.ResourceVersion, Format: o.Format, Sum: sum}) {
		s.mixed = s.mixed || s.store.Get(k).Format() != o.Format
		return nil
	}
	if s.store.Ahead(k, o.UID, o.ResourceVersion) {
		return reflector.ErrRewritten
	}
	c, err := s.change(k, o, sum)
	if err != nil {
		s.lose(err)
		c.Keep = true
	}
	s.stage(c)
	return nil
}

func (s *stream) keep(k store.Key) bool {
	keep := s.source.opts.Selection.Keep
	return keep == nil || keep(k.Namespace, k.Name)
}

// Gone implements reflector.Sink.
func (s *stream) Gone(o wire.Object) {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !s.keep(k) {
		return
	}
	s.witnesses.lost(k)
	s.stage(s.removal(k, o))
}

// stage adds to what the next commit holds, which it makes once that is much.
func (s *stream) stage(c store.Change) {
	s.staged = append(s.staged, c)
	s.stagedBytes += c.V.Size()
	if len(s.staged) >= maxStaged || s.stagedBytes >= maxStagedBytes {
		s.commit(store.Commit{})
	}
}

// kept returns the bytes that are kept of an object.
func (s *stream) kept(o wire.Object) ([]byte, error) {
	raw := o.Raw
	if s.source.opts.DropManagedFields {
		raw = wire.DropManagedFields(o.Format, raw)
	}
	return s.source.opts.Transform.run(o.Format, raw)
}

// sum returns the sum of the object's content as the server sent it.
func (s *stream) sum(o wire.Object) uint64 {
	if key := s.source.sumKey; key != nil {
		return keyedSum(key, wire.Content(o.Format, o.Raw))
	}
	return wire.Sum(o.Format, o.Raw)
}

// change transforms, packs and indexes an object.
func (s *stream) change(k store.Key, o wire.Object, sum uint64) (store.Change, error) {
	c := store.Change{Key: k, UID: o.UID}
	raw, err := s.kept(o)
	if err != nil {
		return c, err
	}
	c.V = s.packer.PackSummed(o.Format, o.UID, o.ResourceVersion, sum, raw)
	s.derive(&c, raw)
	return c, nil
}

// removal is a change that removes an object; its last word may be missing.
func (s *stream) removal(k store.Key, o wire.Object) store.Change {
	c := store.Change{Key: k, UID: o.UID, RV: o.ResourceVersion, Delete: true}
	if o.Raw == nil {
		return c
	}
	raw, err := s.kept(o)
	if err != nil { // that it is gone needs no transform
		s.lose(err)
		return c
	}
	c.V = s.packer.Pack(o.Format, o.UID, o.ResourceVersion, raw)
	return c
}

// lose counts a version that cannot be handed on, and notes the gap that it leaves.
func (s *stream) lose(err error) {
	s.note(s.lost(err))
}

// lost counts a version that cannot be handed on, and returns why.
func (s *stream) lost(err error) (reason string) {
	reason = ReasonTransform
	if wire.Unreadable(err) {
		reason = ReasonUnreadable
	}
	s.update(func(st *Status) {
		st.Dropped.LastErr = err
		if reason == ReasonTransform {
			st.Dropped.Transform++
		} else {
			st.Dropped.Unreadable++
		}
	})
	return reason
}

// note adds to the gap that goes with the next commit.
func (s *stream) note(reason string) {
	since := s.Status().LastCurrent
	s.gap = s.gap.Merge(&store.Gap{From: s.Version(), Since: since, Reason: reason})
}

// Unreadable implements reflector.Sink.
func (s *stream) Unreadable(m wire.Meta, err error) {
	s.lose(err)
	if m.Name == "" || s.keep(store.Key{Namespace: m.Namespace, Name: m.Name}) {
		s.staged = append(s.staged, s.unread(m))
	}
}

// unread is an object that the server has in a version that cannot be read.
func (s *stream) unread(m wire.Meta) store.Change {
	k := store.Key{Namespace: m.Namespace, Name: m.Name}
	return store.Change{Key: k, UID: m.UID, RV: m.ResourceVersion, Keep: true, Unread: true, Since: s.Status().LastCurrent}
}

// Page implements reflector.Sink.
func (s *stream) Page(version string) error {
	if wire.Older(version, s.store.Version()) {
		return reflector.ErrRewritten
	}
	if len(s.staged) > 0 {
		s.commit(store.Commit{Version: version})
	}
	return nil
}

// Live implements reflector.Sink.
func (s *stream) Live(version string) {
	if s.mixed { // not all contents were compared: an audit does, if the form has changed
		s.formThen = s.store.Served()
	}
	s.commit(store.Commit{Version: version, Sweep: true, Served: s.formThen})
	s.compared()
	s.current()
}

// commit hands what is staged, and the gap, to the store and so to the feeds.
func (s *stream) commit(c store.Commit) {
	c.Changes = append(c.Changes, s.staged...)
	c.At, c.After = time.Now(), s.after
	s.unstage()
	if s.gap != nil {
		c.Gap = s.gap
		c.Gap.To, c.Gap.Until = c.Version, c.At
		s.gap = nil
	}
	if s.holding {
		s.hold(c)
		return
	}
	s.apply(c)
}

func (s *stream) apply(c store.Commit) {
	if c.Gap != nil {
		s.hooks().gap(s.id, *gapOf(c.Gap))
	}
	drops := s.store.Commit(c)
	s.progress.made()
	s.unpin(c.Changes)
	s.update(func(st *Status) {
		st.Dropped.Past += drops.Past
		st.Dropped.Repeated += drops.Same
	})
}

// unpin lets go of decoded objects that were kept for versions that were not stored.
func (s *stream) unpin(changes []store.Change) {
	if s.source.live() == nil {
		return
	}
	for i := range changes {
		if c := &changes[i]; c.V != nil && s.store.Get(c.Key) != c.V {
			s.source.hot.Drop(c.V)
		}
	}
}

func (s *stream) unstage() {
	clear(s.staged)
	s.staged, s.stagedBytes = s.staged[:0], 0
}

// Event implements reflector.Sink.
func (s *stream) Event(ev wire.Event) error {
	c := store.Commit{Version: ev.ResourceVersion, Late: s.late.since(ev.ResourceVersion)}
	k := store.Key{Namespace: ev.Namespace, Name: ev.Name}
	switch {
	case !s.keep(k):
	case ev.Type == wire.Deleted:
		if e := s.expect; e != nil && e.key == k && e.uid == ev.UID {
			s.expect = nil
			s.store.Resume()
			s.release()
		}
		s.witnesses.lost(k)
		c.Changes = append(c.Changes, s.removal(k, ev.Object))
	default:
		s.witnesses.saw(sighting{k, ev.UID, ev.ResourceVersion})
		change, err := s.change(k, ev.Object, s.sum(ev.Object))
		if err != nil {
			s.lose(err)
			change.Keep = true
		}
		c.Changes = append(c.Changes, change)
	}
	s.commit(c)
	s.current()
	return nil
}

// Bookmark implements reflector.Sink.
func (s *stream) Bookmark(version string) error {
	s.late.since(version)
	s.commit(store.Commit{Version: version})
	s.current()
	return nil
}

// Skipped implements reflector.Sink. An audit reads the object again.
func (s *stream) Skipped(m wire.Meta) {
	if s.keep(store.Key{Namespace: m.Namespace, Name: m.Name}) {
		s.commit(store.Commit{Version: m.ResourceVersion, Changes: []store.Change{s.unread(m)}})
		s.wantAudit()
	}
}

// late is what happened while nothing was received: what a watch delivers up to a version.
type late struct {
	to      string    // the version; empty: there is none
	current time.Time // when the stream was current last before it
}

// Behind implements reflector.Sink.
func (s *stream) Behind(version string) {
	if s.late.to == "" { // else what was delivered since was late, too
		s.late.current = s.Status().LastCurrent
	}
	s.late.to = version
}

// since is when the stream was current last before what happened at a version, if that is late. It forgets
// what is late once everything up to there was delivered.
func (l *late) since(version string) time.Time {
	switch {
	case l.to == "":
		return time.Time{}
	case wire.Older(version, l.to) || version == l.to:
		return l.current
	}
	*l = late{}
	return time.Time{}
}

// Current implements reflector.Sink.
func (s *stream) Current() { s.current() }

func (s *stream) current() {
	if !s.store.Synced() {
		return // still catching up with what was loaded
	}
	now := time.Now()
	s.update(func(st *Status) { st.LastCurrent = now })
}

// Missed implements reflector.Sink.
func (s *stream) Missed(reason string, err error, tell bool) {
	s.note(reason)
	if reason == reflector.ReasonGarbled {
		s.update(func(st *Status) {
			st.Dropped.Unreadable++
			st.Dropped.LastErr = err
		})
	}
	if tell {
		s.commit(store.Commit{})
	}
}

// Version implements reflector.Sink.
func (s *stream) Version() string {
	for _, c := range slices.Backward(s.held) {
		if c.Version != "" {
			return c.Version
		}
	}
	return s.store.Version()
}
