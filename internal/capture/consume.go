package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// consume sends the batches of one source until its feed or ctx ends.
func (w *Watcher) consume(ctx context.Context, k *kind, source int, f *feed.Feed) {
	for {
		b, err := f.Next(ctx)
		if errors.Is(err, feed.ErrBehind) {
			w.reopen(k)
		}
		if err != nil {
			return
		}
		key := streamKey{source, b.Stream.Namespace}
		if k.GroupResource() == crds {
			w.crdsChanged(b.Deltas)
		}
		if k.discoveryOnly {
			continue
		}
		if !w.batch(ctx, k, key, b) {
			return
		}
	}
}

// gapChange builds the change that reports a gap. The error says why versions could not be read, if that caused
// it.
func (w *Watcher) gapChange(k *kind, key streamKey, b feed.Batch) (change.Change, error) {
	r, reason := k.resource(), b.Gap.Reason
	w.mu.Lock()
	st := k.streams[key]
	st.gaps++
	if st.moved != "" {
		reason = strings.Replace(reason, informer.ReasonGone, fmt.Sprintf("%s as %s, now as %s", informer.ReasonGone, st.moved, r.Version), 1)
		st.moved = ""
	}
	away := netChanges(b.Gap.Reason) && w.outage.gap(outageKey{k.GroupResource(), key})
	w.mu.Unlock()
	return change.Change{Names: r.Names(), Away: away, Meta: change.Meta{
		Op: event.Gap, Kind: r.ID(), Namespace: b.Stream.Namespace,
		At: b.Gap.Until, Since: b.Gap.Since, Time: b.Gap.Until, Epoch: b.Epoch,
		Gap: &event.GapInfo{From: b.Gap.From, To: b.Gap.To, Reason: reason},
	}}, w.lost(k, key, b.Gap.Reason)
}

// netChanges reports whether only intermediate versions are missing, as after any outage of the server.
func netChanges(reason string) bool {
	for _, r := range strings.Split(reason, ", ") {
		if r != informer.ReasonExpired && r != informer.ReasonHistoryChanged {
			return false
		}
	}
	return true
}

// unread reports whether versions could not be read.
func unread(reason string) bool {
	return strings.Contains(reason, informer.ReasonTransform) || strings.Contains(reason, informer.ReasonUnreadable)
}

// lost returns why versions could not be read, if that caused the gap.
func (w *Watcher) lost(k *kind, key streamKey, reason string) error {
	if !unread(reason) {
		return nil
	}
	w.mu.Lock()
	s := k.feeds[key.source].Source()
	w.mu.Unlock()
	for _, st := range s.Status() {
		if d := st.Dropped; st.Stream.Namespace == key.namespace && d.LastErr != nil {
			return fmt.Errorf("%s: lost %d versions so far: %w", k.GroupResource(), d.Unreadable+d.Transform, d.LastErr)
		}
	}
	return nil
}

// op returns the operation as the user sees it: an object that starts or stops matching a selector was not
// created or deleted. first is set while the stream's first list is still under way, even if the delta did not
// come from it. now is the object after the write with which it left, if that is known.
func (w *Watcher) op(ctx context.Context, k *kind, d *feed.Delta, old form, first bool) (op event.Op, now map[string]any, err error) {
	selects := k.scope.selects()
	switch {
	case old == converted:
		return event.Converted, nil, nil
	case d.Op == informer.Updated:
		return event.Updated, nil, nil
	case d.Op == informer.Added && (d.Initial || first) && !k.appeared.Load():
		return event.Snapshot, nil, nil
	case d.Op == informer.Added && selects && !d.Initial && !first:
		obj, err := object(d.New)
		if err == nil && existed(obj, d.After) {
			return event.Entered, nil, nil
		}
		return event.Created, nil, nil
	case d.Op == informer.Added:
		return event.Created, nil, nil
	case !selects:
		return event.Deleted, nil, nil
	}
	there, err := w.get(ctx, k, d)
	if err != nil {
		return event.Left, nil, fmt.Errorf("determine whether %s/%s was deleted or left the selection: %w",
			k.GroupResource(), d.Key.Name, err)
	}
	if there == nil {
		return event.Deleted, nil, nil
	}
	if v, _ := change.Metadata(there)["resourceVersion"].(string); v == d.Final.ResourceVersion || d.Relisted {
		now = there
	}
	return event.Left, now, nil
}

// cross completes a change with which an object entered or left the selection; now is the object after that. The server
// notes times in whole seconds: of two changes within a second, the later one is not dated before the earlier one.
func (w *Watcher) cross(k *kind, c *change.Change, now map[string]any) {
	c.CrossedBy(now, k.scope.asked())
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := k.crossed[c.UID]; c.Time.Before(last) {
		c.Time = last
	}
	if len(k.crossed) >= maxCrossed {
		clear(k.crossed)
	}
	if k.crossed == nil {
		k.crossed = map[string]time.Time{}
	}
	k.crossed[c.UID] = c.Time
}

// maxCrossed bounds the objects of a kind whose last crossing is known: only those of the last second matter.
const maxCrossed = 4096

// existed reports whether an object existed before it matched the selector. A creation is a single write, which
// leaves one managedFields entry as old as the object; several entries, or a later one, mean an earlier life.
// If last is set, a list found the object, and existed compares its creation with the previous look. All times
// are the server's, in whole seconds: an object that its creator changes within a second counts as created.
func existed(obj map[string]any, last time.Time) bool {
	made := change.Timestamp(obj, "creationTimestamp")
	if !last.IsZero() {
		return made.Before(last.Truncate(time.Second))
	}
	fields, _ := change.Metadata(obj)["managedFields"].([]any)
	if len(fields) > 1 {
		return true
	}
	for _, f := range fields {
		entry, _ := f.(map[string]any)
		s, _ := entry["time"].(string)
		if t, err := time.Parse(time.RFC3339, s); err == nil && t.After(made) {
			return true
		}
	}
	return false
}

// get requests the object with the same UID; nil if it no longer exists.
func (w *Watcher) get(ctx context.Context, k *kind, d *feed.Delta) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	body, err := w.cluster.Get(ctx, w.cluster.ResourcePath(k.resource().GVR(), d.Key.Namespace, d.Key.Name), nil)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	obj, err := jsonmap.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("decode the server's response: %w", err)
	}
	if uid, _ := change.Metadata(obj)["uid"].(string); uid != string(d.UID) {
		return nil, nil
	}
	return obj, nil
}
