package informer

import (
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// A watch may deliver old changes: after a restart or an outage the server sends what it has kept, as if it happened
// now. The probe before the watch returns the server's version. A change up to that version happened after the stream
// was last current. That interval travels with the change (store.Delta.After) to the journal and the event, and
// queries by time use it. If a manager's time lies within, the change happened then.

// A list is committed in pieces of this many objects, or compressed bytes.
const (
	maxStaged      = 500
	maxStagedBytes = 1 << 20
)

// ingest turns the frames that a stream's reflector reads into store commits. It implements reflector.Sink, except for
// Report. Only the reflector's goroutine uses it, except for methods that audits share, which use no field but packer.
type ingest struct {
	*stream
	packer compact.Packer

	staged       []store.Change // changes of the list in progress
	stagedBytes  int
	gap          *store.Gap // goes with the next commit
	began        time.Time  // when the list in progress began
	after        time.Time  // when the stored state was last known to be current
	late         late
	listedForm   uint64 // the form that the list in progress records
	mixedFormats bool   // some objects of the list are stored in the other format
	joined       uint64 // histories.begun when the stream was in its storage's current epoch

	held      []store.Commit // see hold
	heldBytes int
	holding   bool
}

// Begin implements reflector.Sink.
func (i *ingest) Begin(trust reflector.Trust) {
	if unverified := i.resume.reset(); unverified {
		trust = max(trust, reflector.Uncertain) // the loaded state may belong to another history
	}
	epoch, another := i.nextEpoch(trust == reflector.Outdated)
	if objects, _ := i.store.Stat(); another && trust != reflector.Outdated && (i.Status().Loaded || objects > 0) {
		i.noteGap(ReasonHistoryChanged) // which another stream has proven
	}
	i.late = late{}
	i.unpin(i.staged)
	i.clearStaged()
	i.discardHeld()
	i.began = time.Now()
	switch st := i.Status(); {
	case st.Loaded:
		i.after = st.LastCurrent // zero after an audit has found that an earlier run missed something
	case i.after.IsZero():
		i.after = i.began // no state is older than the first list
	}
	i.listedForm, i.mixedFormats = i.auditor.listForm(), false
	i.store.Begin(trust != reflector.Trusted, epoch)
}

// Item implements reflector.Sink.
func (i *ingest) Item(o wire.Object) error {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !i.selects(k) {
		return nil
	}
	i.resume.newest.listed(objectVersion{k, o.UID, o.ResourceVersion})
	sum := i.sum(o)
	if i.store.Known(k, store.Seen{UID: o.UID, RV: o.ResourceVersion, Format: o.Format, Sum: sum}) {
		i.mixedFormats = i.mixedFormats || i.store.Get(k).Format() != o.Format
		return nil
	}
	if i.store.Ahead(k, o.UID, o.ResourceVersion) {
		return reflector.ErrReplaced
	}
	c, err := i.change(k, o, sum)
	if err != nil {
		i.dropVersion(err)
		c.Keep = true
	}
	i.stage(c)
	return nil
}

// Gone implements reflector.Sink.
func (i *ingest) Gone(o wire.Object) {
	k := store.Key{Namespace: o.Namespace, Name: o.Name}
	if !i.selects(k) {
		return
	}
	i.resume.newest.remove(k)
	i.stage(i.removal(k, o))
}

// stage adds a change to the next commit, and commits once there are enough.
func (i *ingest) stage(c store.Change) {
	i.staged = append(i.staged, c)
	i.stagedBytes += c.V.Size()
	if len(i.staged) >= maxStaged || i.stagedBytes >= maxStagedBytes {
		i.commit(store.Commit{})
	}
}

// transformed returns the bytes to store for an object.
func (i *ingest) transformed(o wire.Object) ([]byte, error) {
	raw := o.Raw
	if i.source.opts.DropManagedFields {
		raw = wire.DropManagedFields(o.Format, raw)
	}
	return i.source.opts.Transform.run(o.Format, raw)
}

// sum returns a checksum of the object's content as the server sent it.
func (i *ingest) sum(o wire.Object) uint64 {
	if key := i.source.sumKey; key != nil {
		return wire.KeyedSum(key, o.Format, o.Raw)
	}
	return wire.Sum(o.Format, o.Raw)
}

// change transforms, packs and indexes an object.
func (i *ingest) change(k store.Key, o wire.Object, sum uint64) (store.Change, error) {
	c := store.Change{Key: k, UID: o.UID}
	raw, err := i.transformed(o)
	if err != nil {
		return c, err
	}
	c.V = i.packer.PackSummed(o.Format, o.UID, o.ResourceVersion, sum, raw)
	i.derive(&c, raw)
	return c, nil
}

// removal returns the change that removes an object; the object's final state may be missing.
func (i *ingest) removal(k store.Key, o wire.Object) store.Change {
	c := store.Change{Key: k, UID: o.UID, RV: o.ResourceVersion, Delete: true}
	if o.Raw == nil {
		return c
	}
	raw, err := i.transformed(o)
	if err != nil { // the deletion needs no transform
		i.dropVersion(err)
		return c
	}
	c.V = i.packer.Pack(o.Format, o.UID, o.ResourceVersion, raw)
	return c
}

// dropVersion counts a version that cannot be stored, and notes the gap.
func (i *ingest) dropVersion(err error) {
	i.noteGap(i.countDropped(err))
}

// countDropped counts a version that cannot be stored, and returns the reason for a gap.
func (i *ingest) countDropped(err error) (reason string) {
	reason = ReasonTransform
	if wire.Unreadable(err) {
		reason = ReasonUnreadable
	}
	i.update(func(st *Status) {
		st.Dropped.LastErr = err
		if reason == ReasonTransform {
			st.Dropped.Transform++
		} else {
			st.Dropped.Unreadable++
		}
	})
	return reason
}

// noteGap adds a gap to the next commit.
func (i *ingest) noteGap(reason string) {
	since := i.Status().LastCurrent
	i.gap = i.gap.Merge(&store.Gap{From: i.Version(), Since: since, Reason: reason})
}

// Unreadable implements reflector.Sink.
func (i *ingest) Unreadable(m wire.Meta, err error) {
	i.dropVersion(err)
	if m.Name == "" || i.selects(store.Key{Namespace: m.Namespace, Name: m.Name}) {
		i.staged = append(i.staged, i.unreadable(m))
	}
}

// unreadable returns the change for an object that the server has in an unreadable version.
func (i *ingest) unreadable(m wire.Meta) store.Change {
	k := store.Key{Namespace: m.Namespace, Name: m.Name}
	return store.Change{Key: k, UID: m.UID, RV: m.ResourceVersion, Keep: true, Unread: true, Since: i.Status().LastCurrent}
}

// Page implements reflector.Sink.
func (i *ingest) Page(version string) error {
	if wire.Older(version, i.store.Version()) || i.mustJoin() {
		return reflector.ErrReplaced
	}
	if len(i.staged) > 0 {
		i.commit(store.Commit{Version: version})
	}
	return nil
}

// Live implements reflector.Sink.
func (i *ingest) Live(version string) {
	if i.mixedFormats { // not all contents were compared: if the form has changed, an audit does that
		i.listedForm = i.store.Served()
	}
	sure := i.began
	if i.store.Synced() { // the server may answer a relist from a cache, which lags as much as its watches do
		sure = sure.Add(-onTheWay)
	}
	if last := i.Status().LastCurrent; last.After(sure) {
		sure = last
	}
	i.commit(store.Commit{Version: version, Sweep: true, Served: i.listedForm, Current: sure})
	i.auditor.markCompared(sure, i.mixedFormats)
	i.update(func(st *Status) { st.LastCurrent = sure })
}

// commit commits the staged changes and the gap to the store, and so delivers them.
func (i *ingest) commit(c store.Commit) {
	c.Changes = append(c.Changes, i.staged...)
	c.At, c.After = time.Now(), i.after
	if c.Current.IsZero() {
		if c.Current = i.Status().LastCurrent; c.Current.IsZero() {
			c.Current = i.after
		}
	}
	i.clearStaged()
	if i.gap != nil {
		c.Gap = i.gap
		c.Gap.To, c.Gap.Until = c.Version, c.At
		i.gap = nil
	}
	if i.holding {
		i.hold(c)
		return
	}
	i.apply(c)
}

func (i *ingest) apply(c store.Commit) {
	if c.Gap != nil {
		i.hooks().gap(i.id, *gapOf(c.Gap))
	}
	drops := i.store.Commit(c)
	i.progress.notify()
	i.unpin(c.Changes)
	i.update(func(st *Status) {
		st.Dropped.Past += drops.Past
		st.Dropped.Repeated += drops.Same
	})
}

// unpin evicts decoded objects of versions that were not stored.
func (i *ingest) unpin(changes []store.Change) {
	if i.source.live() == nil {
		return
	}
	for n := range changes {
		if c := &changes[n]; c.V != nil && i.store.Get(c.Key) != c.V {
			i.source.hot.Drop(c.V)
		}
	}
}

func (i *ingest) clearStaged() {
	clear(i.staged)
	i.staged, i.stagedBytes = i.staged[:0], 0
}

// mustJoin is outdated for the reflector's goroutine, which asks at each event.
func (i *ingest) mustJoin() bool {
	begun := i.source.cluster.histories.begun.Load()
	if begun == i.joined {
		return false
	}
	if i.outdated() {
		return true
	}
	i.joined = begun
	return false
}

// Event implements reflector.Sink.
func (i *ingest) Event(ev wire.Event) error {
	if i.mustJoin() {
		return reflector.ErrReplaced
	}
	c := store.Commit{Version: ev.ResourceVersion, Late: i.late.since(ev.ResourceVersion)}
	k := store.Key{Namespace: ev.Namespace, Name: ev.Name}
	switch {
	case !i.selects(k):
	case ev.Type == wire.Deleted:
		if i.resume.deleted(k, ev.UID) {
			i.releaseHeld()
		}
		c.Changes = append(c.Changes, i.removal(k, ev.Object))
	default:
		i.resume.newest.add(objectVersion{k, ev.UID, ev.ResourceVersion})
		change, err := i.change(k, ev.Object, i.sum(ev.Object))
		if err != nil {
			i.dropVersion(err)
			change.Keep = true
		}
		c.Changes = append(c.Changes, change)
	}
	i.commitCurrent(c)
	return nil
}

// Bookmark implements reflector.Sink.
func (i *ingest) Bookmark(version string) error {
	if i.mustJoin() {
		return reflector.ErrReplaced
	}
	i.late.since(version)
	i.commitCurrent(store.Commit{Version: version})
	return nil
}

// Skipped implements reflector.Sink. An audit reads the object again.
func (i *ingest) Skipped(m wire.Meta) {
	if i.selects(store.Key{Namespace: m.Namespace, Name: m.Name}) {
		i.commit(store.Commit{Version: m.ResourceVersion, Changes: []store.Change{i.unreadable(m)}})
		i.auditor.want()
	}
}

// late describes changes that happened while nothing was received: the ones that a watch delivers up to a version.
type late struct {
	to      string    // the version; empty: no such changes
	current time.Time // when the stream was last current before them
	begun   bool      // frames up to it were delivered
}

// Behind implements reflector.Sink.
func (i *ingest) Behind(version string) {
	i.late = late{to: version, current: i.Status().LastCurrent}
}

// since returns when the stream was last current before a late change at a version, or zero if the change is not late.
// It ends the late phase once everything up to its version was delivered.
func (l *late) since(version string) time.Time {
	switch {
	case l.to == "":
		return time.Time{}
	case wire.Older(version, l.to) || version == l.to:
		l.begun = true
		return l.current
	}
	*l = late{}
	return time.Time{}
}

// pending reports whether late changes may be missing from a stream that has seen everything up to version.
func (l *late) pending(version string) bool {
	return l.to != "" && version != l.to && !wire.Older(l.to, version)
}

// Current implements reflector.Sink. A server that shuts down may end a watch in order before it has sent all late
// changes.
func (i *ingest) Current() {
	if !i.late.begun {
		i.late = late{} // there were none
	}
	if i.store.Synced() {
		i.markCurrent(i.Version(), time.Now())
	}
}

// onTheWay is how long a change may take from the server's storage to this process. When something arrives, what the server
// stored longer ago has arrived, too; the rest may be on its way.
const onTheWay = 2 * time.Second

// markCurrent records that the stream is current, unless it is still catching up: with late changes or during a history
// check.
func (i *ingest) markCurrent(version string, now time.Time) {
	if i.late.pending(version) || len(i.resume.missing) > 0 {
		return
	}
	if sure := now.Add(-onTheWay); sure.After(i.Status().LastCurrent) {
		i.update(func(st *Status) { st.LastCurrent = sure })
	}
}

// commitCurrent commits what the server sent as the newest. The commit says that the stream is current, if it is.
func (i *ingest) commitCurrent(c store.Commit) {
	if c.Live || i.store.Synced() { // otherwise it is catching up from a loaded state
		i.markCurrent(c.Version, time.Now())
	}
	i.commit(c)
}

// CaughtUp implements reflector.Sink.
func (i *ingest) CaughtUp(version string) error {
	if !i.resume.complete() || i.mustJoin() {
		return reflector.ErrReplaced // the list that follows drops the held commits
	}
	i.commitCurrent(store.Commit{Version: version, Live: true})
	i.auditor.want()
	return nil
}

// HistoryChecked implements reflector.Sink.
func (i *ingest) HistoryChecked() error { return i.resume.checked() }

// Retire implements reflector.Sink.
func (i *ingest) Retire() {
	if objects, _ := i.store.Stat(); objects == 0 {
		return
	}
	i.resume.reset() // nothing is left to verify
	i.Begin(reflector.Trusted)
	i.Live(i.store.Version())
	if f := i.source.opts.OnState; f != nil {
		f(i.Status())
	}
}

// Missed implements reflector.Sink.
func (i *ingest) Missed(reason string, err error, now bool) {
	if objects, _ := i.store.Stat(); reason == ReasonGone && objects == 0 {
		return // nothing was missed
	}
	if reason == ReasonMissed {
		i.distrustWatch()
	}
	i.noteGap(reason)
	if reason == reflector.ReasonGarbled {
		i.update(func(st *Status) {
			st.Dropped.Unreadable++
			st.Dropped.LastErr = err
		})
	}
	if now {
		i.commit(store.Commit{})
	}
}

// distrustWatch sets back LastCurrent, because what the watch delivered was not everything: only a comparison of all
// objects shows that the stream was current.
func (i *ingest) distrustWatch() {
	i.late = late{}
	i.update(func(st *Status) { st.LastCurrent = i.auditor.compared })
}

// Version implements reflector.Sink.
func (i *ingest) Version() string {
	for _, c := range slices.Backward(i.held) {
		if c.Version != "" {
			return c.Version
		}
	}
	return i.store.Version()
}
