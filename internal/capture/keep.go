package capture

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/openapi"
	"github.com/tattler-dev/tattler/internal/story"
)

// The API server can serve other bytes of the same version: because of a CRD's new default, a conversion, an upgrade.
// Each object has a sum of what the server sent. Lists compare sums, and so does an audit when the OpenAPI hash of
// the kind's group and version changes. The state on disk keeps the hash, and the sums, keyed. A difference is
// "converted": quiet, with its fields, and attributed to no manager.
//
// A list that was interrupted is a gap: its objects are known, but versions in between may have been served and not
// recorded.

// Stream identifies a list-and-watch across runs.
type Stream struct {
	// Resource is in the version being watched, which is not part of the identity.
	Resource Resource
	// Namespace is empty for the whole cluster. Selection describes the other filters of the stream.
	Namespace, Selection string
}

// Batch holds changes that a stream delivered together. A stream is resumed from its batches: the objects that
// result from all changes so far are its state at Version.
type Batch struct {
	Stream Stream
	// Epoch is as in feed.Batch.
	Epoch int64
	// Live is set if the state is complete at Version. Otherwise a list is under way and Version is empty.
	// Version is also empty while an object is out of date because one of its versions could not be read: the
	// stream cannot be resumed then. EverLive is set once the state was complete.
	Live, EverLive bool
	Version        string
	// Pipeline identifies how the objects' bytes were made; it ends with the fingerprint of the redaction
	// rules. It is empty while a list is compared with objects made differently, and after a list that could
	// not read every object. Identity is the cluster's, if known.
	Pipeline, Identity string
	// Served is the form in which the server served the kind, as in feed.Batch.
	Served uint64
	// At is when the state was last known to be the server's, as feed.Batch.Current.
	At      time.Time
	Changes []Version
	// Ended is set if the server no longer serves the kind, and all deletions were sent: the stream need not be kept. Only
	// Stream and At are set besides.
	Ended bool
	// Names are the objects of the kind that Types name; none means all of it, unless Owned is set: then objects that
	// named ones own are among the changes, and perhaps others.
	Names []string
	Owned bool
	// Schema describes how the kind's lists are compared; see openapi.Unmarshal. It is nil unless the batch is
	// the first to need it or it has changed.
	Schema []byte
}

// Version is a change with its objects' JSON, redacted and with managed fields; nil where the change has no
// such object. Before and After are nil unless Options.Objects is set.
type Version struct {
	change.Change
	BeforeJSON, AfterJSON []byte
	// ManagedFields are those of After, which lacks them, as jsonmap.DecodeObject decodes them; nil without After.
	ManagedFields any
	// Exact reports that the change is the one that the journal will build from the same texts, with the kind's stored
	// schema.
	Exact bool
	// Sum is the new object's feed.Version sum; 0 if unknown.
	Sum uint64
	// Rewritten means the same version, redacted by other rules or served in another form with no visible
	// difference. It is not a change and has no operation.
	Rewritten bool
	// Story is what stories need of the change; nil: nothing.
	Story *story.Input

	schema diff.Schema // with which it was built
}

// Kept gives access to the state that a consumer of batches has kept.
type Kept interface {
	// State returns the kept state of a stream, or nil. It is called each time the stream is opened, and again
	// after an error. It omits sums that were made with another key (redact.Redactor.SumKeyID).
	State(ctx context.Context, s Stream) (*State, error)
	// Kinds are the kinds of all kept batches, each once.
	Kinds() []KeptKind
	// Since is the time of the last kept batch, or zero. A first list reports objects created
	// after it as created.
	Since() time.Time
	// Epochs are the highest epochs of the kept batches, by resource, those of streams without a state included.
	Epochs() map[schema.GroupResource]int64
}

// KeptKind is a kind of kept batches, as the server last served it.
type KeptKind struct {
	Resource
	// Held is set if a stream of the kind has not ended.
	Held bool
}

// State is the kept state of a stream. Without a version, a gap follows it. Its epoch is that of the objects; 0 without
// objects.
type State struct {
	feed.Restored
	// WasLive reports that the stream's first list was once completed.
	WasLive bool
	// Pipeline is the batches' pipeline.
	Pipeline string
	// Reason is why there is no version to resume from, unless a list was interrupted.
	Reason string
}

// stream returns the identity of a stream of k.
func (k *kind) stream(key streamKey) Stream {
	sel := k.selections[key.source]
	return Stream{
		Resource: k.resource(), Namespace: key.namespace,
		Selection: k.selectionName(sel),
	}
}

// selectionName describes what a source of the kind selects, including filters applied here.
func (k *kind) selectionName(sel informer.Selection) string {
	var parts []string
	if sel.Labels != "" || sel.Fields != "" {
		parts = append(parts, fmt.Sprintf("labels=%q fields=%q", sel.Labels, sel.Fields))
	}
	if sel.Keep != nil {
		n := k.scope.Namespaces
		parts = append(parts, fmt.Sprintf("namespaces=%q without=%q", sorted(n.Include), sorted(n.Exclude)))
	}
	return strings.Join(parts, " ")
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// pipeline identifies how the bytes of a kind's objects are made; see PipelineVersion.
func (w *Watcher) pipeline(k *kind) string {
	return "1 " + k.resource().Version + " " + w.o.Redactor.Fingerprint()
}

// PipelineVersion returns the API version in a batch's Pipeline; empty if it names none.
func PipelineVersion(pipeline string) string {
	if parts := strings.Split(pipeline, " "); len(parts) > 2 {
		return parts[1]
	}
	return ""
}

// restores returns the function that loads the state of a source's streams; nil if they are not kept.
func (w *Watcher) restores(k *kind, source int) func(context.Context, informer.Stream) (*feed.Restored, error) {
	if w.o.Kept == nil || k.discoveryOnly {
		return nil
	}
	return func(ctx context.Context, is informer.Stream) (*feed.Restored, error) {
		key := streamKey{source, is.Namespace}
		st, err := w.o.Kept.State(ctx, k.stream(key))
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		s := k.streams[key]
		s.first, s.interrupted, s.epoch = st == nil || !st.WasLive, nil, 0
		if st == nil {
			return nil, nil
		}
		if st.Version == "" && (st.WasLive || !st.At.IsZero()) {
			s.interrupted = &informer.Gap{Since: st.At, Reason: cmp.Or(st.Reason, "a list was interrupted")}
			st.Objects = newest(st.Objects, &s.interrupted.From)
		}
		s.foreign, s.epoch = nil, st.Epoch
		if st.Trusted = st.Objects == nil || st.Pipeline == w.pipeline(k); !st.Trusted {
			s.foreign = &foreign{version: st.Version, at: st.At, reason: "redaction rules changed"}
			if strings.HasSuffix(st.Pipeline, w.o.Redactor.Fingerprint()) {
				s.foreign.reason = "API version changed"
			}
		}
		return &st.Restored, nil
	}
}

// foreign describes the state that a stream started with, if its objects were made differently: with other
// redaction rules or in another API version.
type foreign struct {
	version string
	at      time.Time
	reason  string // why the gap exists
	gapSent bool   // the gap was sent
	unread  bool   // the list could not read all objects; the unread ones stay as they were made
}

// batch sends a feed's batch as one Batch. It returns false once ctx has ended.
func (w *Watcher) batch(ctx context.Context, k *kind, key streamKey, b feed.Batch) bool {
	if b.Phase == feed.Listing && b.Gap == nil && len(b.Deltas) == 0 {
		return true // nothing was read yet: the kept state is unchanged
	}
	out := Batch{
		Stream: k.stream(key), Epoch: b.Epoch, Live: b.Phase != feed.Listing, Version: b.Version,
		Pipeline: w.pipeline(k), Served: b.Served, At: b.Current, Names: k.names, Owned: k.owned,
	}
	now := time.Now()
	if w.o.Kept != nil {
		out.Identity, _ = w.cluster.Identity(ctx) // without it a restart cannot resume, and lists
	}
	first, o, was := w.listState(k, key)
	if o != nil && b.Gap != nil && unread(b.Gap.Reason) {
		o.unread = true
	}
	if g := w.takeInterrupted(k, key); g != nil {
		b.Gap = joinGap(g, &b, now)
	}
	out.EverLive = out.Live || !first
	if o != nil && (!out.Live || o.unread) {
		out.Pipeline = ""
	}
	for i := range b.Deltas {
		v, err := w.version(ctx, k, o, &b.Deltas[i], b.Deltas[i+1:], first, formOf(o, b.Epoch == was, &b.Deltas[i]))
		if err != nil && !w.send(ctx, Message{Problem: err}) {
			return false
		}
		if v == nil {
			continue
		}
		w.learnKind(k, v)
		v.Epoch = b.Epoch
		out.Changes = append(out.Changes, *v)
		if o != nil && !o.gapSent && b.Deltas[i].Relisted && !v.Rewritten && v.Op != event.Converted && b.Gap == nil {
			b.Gap = &informer.Gap{From: o.version, To: b.Version, Since: o.at, Until: now, Reason: o.reason}
		}
	}
	if b.Gap != nil {
		c, err := w.gapChange(k, key, b)
		if err != nil && !w.send(ctx, Message{Problem: err}) {
			return false
		}
		out.Changes = slices.Insert(out.Changes, 0, Version{Change: c, Exact: true})
		if o != nil {
			o.gapSent = true
		}
	}
	out.Stream = k.stream(key) // perhaps with another kind
	out.Schema = w.newSchema(ctx, k, out.Changes)
	if !w.send(ctx, Message{Batch: &out}) {
		return false
	}
	if b.Phase == feed.Live {
		w.mu.Lock()
		s := k.streams[key]
		if s.first = false; o != nil && !o.unread {
			s.foreign = nil
		}
		w.mu.Unlock()
		w.delivered(k, key, b.Epoch)
	}
	return true
}

// form says how a delta's old object was made.
type form int

const (
	sameForm  form = iota
	otherForm      // redacted by other rules, or in another API version
	rewritten      // the same version as the server sent it, made differently here
	converted      // the same version, served in another form
)

// formOf returns how the old object of a delta was made. sameEpoch is false if the old state was complete in
// another epoch: an equal version may then be another object, which is a change.
func formOf(o *foreign, sameEpoch bool, d *feed.Delta) form {
	other := o != nil && d.Relisted && !d.Old.IsZero()
	was, is := d.Old.Sum(), d.New.Sum()
	switch same := d.Op == informer.Updated && d.Old.ResourceVersion == d.New.ResourceVersion && d.New.ResourceVersion != ""; {
	case !same || !sameEpoch:
		if other {
			return otherForm
		}
		return sameForm
	case was == is && is != 0, other && was == 0:
		return rewritten
	}
	return converted
}

// newSchema returns the kind's schema if these changes need it and no batch has carried it. Updates that were built
// without the schema of a batch are not exact.
func (w *Watcher) newSchema(ctx context.Context, k *kind, changes []Version) []byte {
	if !slices.ContainsFunc(changes, func(v Version) bool { return v.Op.Differs() }) {
		return nil
	}
	r := k.resource()
	s, err := w.builder.schemas.For(ctx, r.Group, r.Version, r.Kind)
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() {
		for i := range changes {
			if v := &changes[i]; v.Op.Differs() {
				v.Exact = v.Exact && v.schema != nil && v.schema == k.schema
			}
		}
	}()
	if err != nil || s == k.schema { // the change was built without it, too; or a batch had it
		return nil
	}
	b, err := openapi.Marshal(s)
	if err != nil {
		return nil // it cannot be stored
	}
	k.schema = s
	return b
}

// takeInterrupted returns, once, the gap after a kept state that ended in the middle of a list.
func (w *Watcher) takeInterrupted(k *kind, key streamKey) (g *informer.Gap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := k.streams[key]
	g, s.interrupted = s.interrupted, nil
	return g
}

// joinGap completes the gap after the kept state at the stream's first batch, which may have a gap itself.
func joinGap(g *informer.Gap, b *feed.Batch, now time.Time) *informer.Gap {
	if g.To, g.Until = b.Version, now; b.Gap != nil {
		g.To, g.Reason = b.Gap.To, g.Reason+", "+b.Gap.Reason
	}
	return g
}

// newest records the newest version among the objects it passes on, as the start of the gap.
func newest(objects iter.Seq2[feed.RestoredObject, error], version *string) iter.Seq2[feed.RestoredObject, error] {
	if objects == nil {
		return nil
	}
	return func(yield func(feed.RestoredObject, error) bool) {
		for o, err := range objects {
			v := o.ResourceVersion
			if len(v) > len(*version) || len(v) == len(*version) && v > *version {
				*version = v
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// listState reports whether the stream's first list is under way, the differently made state that it is compared
// with, if any, and the epoch of the last complete state. Only the stream's consumer changes these.
func (w *Watcher) listState(k *kind, key streamKey) (first bool, o *foreign, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := k.streams[key]
	return s.first, s.foreign, s.epoch
}

// version builds one version of a batch. An error beside a version means that part of it is unknown; an error
// without one means that its object cannot be read. It returns nothing for an object that existed at the start, if
// those are not wanted.
func (w *Watcher) version(ctx context.Context, k *kind, o *foreign, d *feed.Delta, rest []feed.Delta, first bool, old form) (*Version, error) {
	if old == rewritten {
		return rewrite(k.resource(), d)
	}
	var hide func(before, after map[string]any) error
	if old == otherForm || old == converted && o != nil {
		hide = func(before, after map[string]any) error {
			err := w.o.Redactor.Again(k.GroupResource(), before)
			w.o.Redactor.Reveal(k.GroupResource(), before, after)
			return err
		}
	}
	op, now, unsure := w.op(ctx, k, d, old, first)
	if op == event.Snapshot && !w.o.Initial && k.all() { // the owners of others are always sent
		return nil, unsure
	}
	v, err := w.builder.version(ctx, k.resource(), op, d, rest, hide)
	if err != nil {
		return nil, err
	}
	if op == event.Entered {
		if now, err = object(d.New); err != nil {
			return nil, err
		}
	}
	if v.Crossed() {
		w.cross(k, &v.Change, now)
	}
	if op == event.Converted && len(v.Fields) == 0 {
		return rewrite(k.resource(), d)
	}
	if op == event.Snapshot && w.o.Kept != nil {
		since := w.o.Kept.Since()
		if !since.IsZero() && change.Timestamp(v.After, "creationTimestamp").After(since) {
			v.Op = event.Created
		}
	}
	if d.Initial && v.Op == event.Created { // perhaps it was written again before the list
		v.Since = change.Existed(nil, v.After, v.At)
		v.Net = !v.Since.IsZero()
	}
	if w.o.Objects {
		return &v, unsure
	}
	v.Judge()
	in := story.Read(&v.Change)
	v.Story, v.Routine = &in, in.Routine
	v.Before, v.After, v.ManagedFields = nil, nil, nil
	return &v, unsure
}

// rewrite returns the version of an object in its current form.
func rewrite(r Resource, d *feed.Delta) (*Version, error) {
	v := &Version{Rewritten: true, Sum: d.New.Sum(), Change: change.Change{Meta: change.Meta{
		Kind: r.ID(), Namespace: d.Key.Namespace, Name: d.Key.Name, UID: string(d.UID), ResourceVersion: d.New.ResourceVersion, At: d.At,
	}}}
	var err error
	if v.AfterJSON, err = d.New.JSON(); err != nil {
		return nil, fmt.Errorf("decode %s: %w", v.Subject(), err)
	}
	return v, nil
}

// reopen schedules k to be opened again from its kept state, because its consumer fell behind.
func (w *Watcher) reopen(k *kind) {
	w.mu.Lock()
	k.behind = true
	w.mu.Unlock()
	w.wakeSoon()
}

// reopenBehind reopens the kinds that fell behind.
func (w *Watcher) reopenBehind(ctx context.Context) {
	w.mu.Lock()
	var behind []*kind
	for _, k := range w.kinds {
		if k.behind {
			behind = append(behind, k)
		}
	}
	w.mu.Unlock()
	for _, k := range behind {
		k.stop()
		if !w.flush(ctx) {
			return
		}
		w.mu.Lock()
		k.keepCounts()
		k.behind, k.feeds = false, nil
		for _, s := range k.streams {
			s.status = informer.Status{}
		}
		w.mu.Unlock()
		err := w.open(ctx, k)
		if err != nil && ctx.Err() == nil {
			w.send(ctx, Message{Problem: fmt.Errorf("watch %s: %w", k.GroupResource(), err)})
			w.fail(k, err)
		}
	}
}

// flush waits until every batch sent so far is kept.
func (w *Watcher) flush(ctx context.Context) bool {
	kept := make(chan struct{})
	if !w.send(ctx, Message{Flush: kept}) {
		return false
	}
	select {
	case <-kept:
		return true
	case <-ctx.Done():
		return false
	}
}
