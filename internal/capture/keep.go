package capture

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/capture/openapi"
	"github.com/tattler-dev/tattler/internal/change"
)

// The API server can serve other bytes of the same version: because of a CRD's new default, a conversion, an upgrade.
// Each object has a sum of what the server sent. Lists compare sums, and so does an audit when the OpenAPI hash of
// the kind's group and version changes. The state on disk keeps the hash, and the sums, keyed. A difference is
// "converted": quiet, with its fields, and attributed to no manager.
//
// A list that was interrupted is a gap: its objects are known, but versions in between may have been served and not
// recorded.

// Stream names a list-and-watch, the same from run to run.
type Stream struct {
	// Resource is in the version that is watched now, which is no part of the name.
	Resource Resource
	// Namespace is empty for the whole cluster. Selection tells what else narrows the stream.
	Namespace, Selection string
}

// Batch is what a stream told at once. Kept whole, and in order, batches are what a stream is resumed
// from: the objects that their changes add up to are its state at Version.
type Batch struct {
	Stream Stream
	Epoch  int64
	// Live says that the state is complete, at Version; else a list is under way, and Version empty. It is also empty
	// while an object is out of date because a version of it could not be read: then there is nothing to resume from.
	// EverLive says that it was complete once.
	Live, EverLive bool
	Version        string
	// Pipeline identifies what made the bytes of the objects, at its end the redaction rules: empty while
	// a list compares with what others made, and after one that could not read every object. Identity is
	// the cluster's, where it is known.
	Pipeline, Identity string
	// Served is that of the feed.Batch: the form in which the server served the kind.
	Served  uint64
	At      time.Time
	Changes []Version
	// Schema tells how the kind's lists are compared: see openapi.Unmarshal. It is nil unless the batch
	// is the first to need it, or it has changed.
	Schema []byte
}

// Version is a change with the objects' JSON as the stream gave them, redacted and with their managed
// fields; nil where the change has no such object. Its Before and After are nil.
type Version struct {
	change.Change
	BeforeJSON, AfterJSON []byte
	// Sum is the feed.Version's of the object after; 0: not known.
	Sum uint64
	// Rewritten is no change and has no operation: it is the version that was kept, as other redaction
	// rules make it, or in another form of which nothing is shown.
	Rewritten bool
}

// Kept is what a consumer of batches has kept.
type Kept interface {
	// State returns what was kept of a stream; nil if nothing was. It is called once for each time that
	// the stream is opened, and again after an error. Sums that were made with another key
	// (redact.Redactor.SumKeyID) it leaves out.
	State(ctx context.Context, s Stream) (*State, error)
	// Since is when anything was kept last; zero if nothing was. Objects that were created after it
	// are told as such, also by a first list.
	Since() time.Time
}

// State is what was kept of a stream. Without a version there is a gap behind it, unless At is zero: then
// nothing of what the stream watches was ever watched, and there is no more than an epoch.
type State struct {
	feed.Restored
	// WasLive says that the stream's first list was completed once.
	WasLive bool
	// Pipeline is that of the batches.
	Pipeline string
	// Reason is why there is no version to go on from, unless a list was interrupted.
	Reason string
}

// stream names a stream of a kind to who keeps it.
func (k *kind) stream(key streamKey) Stream {
	sel := k.selections[key.source]
	return Stream{
		Resource: k.resource(), Namespace: key.namespace,
		Selection: k.selectionName(sel),
	}
}

// selectionName tells what a source of the kind selects, also what is filtered here.
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

// pipeline identifies what makes the bytes of a kind's objects.
func (w *Watcher) pipeline(k *kind) string {
	return "1 " + k.resource().Version + " " + w.o.Redactor.Fingerprint()
}

// restores is how a source of the kind gets the state of its streams; nil if it does not.
func (w *Watcher) restores(k *kind, source int) func(context.Context, informer.Stream) (*feed.Restored, error) {
	if w.o.Kept == nil || k.silent {
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
		if st.Version == "" && !st.At.IsZero() {
			s.interrupted = &informer.Gap{Since: st.At, Reason: cmp.Or(st.Reason, "a list was interrupted")}
			st.Objects = newest(st.Objects, &s.interrupted.From)
		}
		s.others, s.epoch = nil, st.Epoch
		if st.Trusted = st.Objects == nil || st.Pipeline == w.pipeline(k); !st.Trusted {
			s.others = &others{version: st.Version, at: st.At, reason: "redaction rules changed"}
			if strings.HasSuffix(st.Pipeline, w.o.Redactor.Fingerprint()) {
				s.others.reason = "API version changed"
			}
		}
		return &st.Restored, nil
	}
}

// others is the state that a stream began with where it was made otherwise than objects are made now:
// with other redaction rules, or in another version of the API.
type others struct {
	version string
	at      time.Time
	reason  string // of the gap
	told    bool   // the gap
	unread  bool   // the list could not read all objects: what it could not stays as others made it
}

// batch hands on what a stream told, as changes that belong together.
func (w *Watcher) batch(ctx context.Context, k *kind, key streamKey, b feed.Batch) bool {
	if b.Phase == feed.Listing && b.Gap == nil && len(b.Deltas) == 0 {
		return true // nothing was read yet: what was kept still stands where it stood
	}
	identity, _ := w.cluster.Identity(ctx) // without it a restart knows less, and lists
	out := Batch{
		Stream: k.stream(key), Epoch: b.Epoch, Live: b.Phase != feed.Listing, Version: b.Version,
		Pipeline: w.pipeline(k), Identity: identity, Served: b.Served, At: time.Now(),
	}
	first, o, was := w.began(k, key)
	if o != nil && b.Gap != nil && unread(b.Gap.Reason) {
		o.unread = true
	}
	if g := w.interrupted(k, key); g != nil {
		b.Gap = behind(g, &b, out.At)
	}
	out.EverLive = out.Live || !first
	if o != nil && (!out.Live || o.unread) {
		out.Pipeline = ""
	}
	for i := range b.Deltas {
		v, err := w.version(ctx, k, o, &b.Deltas[i], first, made(o, b.Epoch == was, &b.Deltas[i]))
		if err != nil && !w.send(ctx, Message{Problem: err}) {
			return false
		}
		if v == nil {
			continue
		}
		v.Epoch = b.Epoch
		out.Changes = append(out.Changes, *v)
		if o != nil && !o.told && b.Deltas[i].Relisted && !v.Rewritten && v.Op != event.Converted && b.Gap == nil {
			b.Gap = &informer.Gap{From: o.version, To: b.Version, Since: o.at, Until: out.At, Reason: o.reason}
		}
	}
	if b.Gap != nil {
		c, err := w.gapChange(k, key, b)
		if err != nil && !w.send(ctx, Message{Problem: err}) {
			return false
		}
		out.Changes = slices.Insert(out.Changes, 0, Version{Change: c})
		if o != nil {
			o.told = true
		}
	}
	out.Schema = w.untoldSchema(ctx, k, out.Changes)
	if !w.send(ctx, Message{Batch: &out}) {
		return false
	}
	if b.Phase == feed.Live {
		w.mu.Lock()
		s := k.streams[key]
		if s.first = false; o != nil && !o.unread {
			s.others = nil
		}
		w.mu.Unlock()
		w.delivered(k, key, b.Epoch)
	}
	return true
}

// form is how a delta's old object was made.
type form int

const (
	asNow     form = iota
	otherwise      // its hidden values are others
	rewritten      // it is the same version of what the server sent, and only that was made of it otherwise
	converted      // it is the same version, which the server served in another form
)

// made tells how the old object of a delta was made. SameEpoch is false where the old state was complete in
// another epoch: there the same version may be another object, which is a change.
func made(o *others, sameEpoch bool, d *feed.Delta) form {
	others := o != nil && d.Relisted && !d.Old.IsZero()
	was, is := d.Old.Sum(), d.New.Sum()
	switch same := d.Op == informer.Updated && d.Old.ResourceVersion == d.New.ResourceVersion && d.New.ResourceVersion != ""; {
	case !same || !sameEpoch:
		if others {
			return otherwise
		}
		return asNow
	case was == is && is != 0, others && was == 0:
		return rewritten
	}
	return converted
}

// untoldSchema is the kind's schema, if these changes need it and it was not told.
func (w *Watcher) untoldSchema(ctx context.Context, k *kind, changes []Version) []byte {
	if !slices.ContainsFunc(changes, func(v Version) bool { return v.Op.Differs() }) {
		return nil
	}
	r := k.resource()
	s, err := w.builder.schemas.For(ctx, r.Group, r.Version, r.Kind)
	if err != nil {
		return nil // the change was made without it, too
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s == k.schema {
		return nil
	}
	b, err := openapi.Marshal(s)
	if err != nil {
		return nil // there is nothing to tell of it
	}
	k.schema = s
	return b
}

// interrupted is the gap behind what was kept of a stream, if that was in the midst of a list; it tells that
// once.
func (w *Watcher) interrupted(k *kind, key streamKey) (g *informer.Gap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := k.streams[key]
	g, s.interrupted = s.interrupted, nil
	return g
}

// behind is the gap behind what was kept of a stream, at its first batch, which may have one of its own.
func behind(g *informer.Gap, b *feed.Batch, now time.Time) *informer.Gap {
	if g.To, g.Until = b.Version, now; b.Gap != nil {
		g.To, g.Reason = b.Gap.To, g.Reason+", "+b.Gap.Reason
	}
	return g
}

// newest notes the newest version of the objects that pass, behind which there is a gap.
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

// began tells whether the first list of a stream is under way, what it is compared with, where that
// was made otherwise, and the epoch of its last complete state. Only the stream's consumer changes that.
func (w *Watcher) began(k *kind, key streamKey) (first bool, o *others, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := k.streams[key]
	return s.first, s.others, s.epoch
}

// version makes one version of a batch. An error goes with it where something is not known of it, and
// without it where its object cannot be read.
func (w *Watcher) version(ctx context.Context, k *kind, o *others, d *feed.Delta, first bool, old form) (*Version, error) {
	if old == rewritten {
		return rewrite(k.resource(), d)
	}
	var hide func(before, after map[string]any) error
	if old == otherwise || old == converted && o != nil {
		hide = func(before, after map[string]any) error {
			err := w.o.Redactor.Again(k.GroupResource(), before)
			w.o.Redactor.Reveal(k.GroupResource(), before, after)
			return err
		}
	}
	op, unsure := w.op(ctx, k, d, old, first)
	v, _, err := w.builder.version(ctx, k.resource(), op, d, hide)
	if err != nil {
		return nil, err
	}
	if op == event.Converted && len(v.Fields) == 0 {
		return rewrite(k.resource(), d)
	}
	since := w.o.Kept.Since()
	if op == event.Snapshot && !since.IsZero() && change.Timestamp(v.After, "creationTimestamp").After(since) {
		v.Op = event.Created
	}
	v.Before, v.After = nil, nil
	return &v, unsure
}

// rewrite is the version of an object in the form that it has now.
func rewrite(r Resource, d *feed.Delta) (*Version, error) {
	v := &Version{Rewritten: true, Sum: d.New.Sum(), Change: change.Change{
		Resource: r, Namespace: d.Key.Namespace, Name: d.Key.Name, UID: string(d.UID), ResourceVersion: d.New.ResourceVersion, At: d.At,
	}}
	var err error
	if v.AfterJSON, err = d.New.JSON(); err != nil {
		return nil, fmt.Errorf("decode %s: %w", v.Subject(), err)
	}
	return v, nil
}

// reopen has a kind opened anew, from what was kept: its feed could not be followed.
func (w *Watcher) reopen(k *kind) {
	w.mu.Lock()
	k.behind = true
	w.mu.Unlock()
	w.wakeSoon()
}

// reopenBehind opens those kinds anew that could not be followed.
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
		k.remember()
		k.behind, k.feeds = false, nil
		w.mu.Unlock()
		err := w.open(ctx, k)
		if err != nil && ctx.Err() == nil {
			w.send(ctx, Message{Problem: fmt.Errorf("watch %s: %w", k.GroupResource(), err)})
			w.fail(k, err)
		}
	}
}

// flush waits until everything that was told is kept.
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
