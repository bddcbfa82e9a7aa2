package capture

import (
	"cmp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer"
)

// StreamState is what a stream is doing.
type StreamState string

// The states: StreamLive is up to date; StreamListing is catching up; StreamWaiting waits before the next
// attempt; StreamForbidden lacks rights and is retried at intervals; StreamGone belongs to a kind that the
// server does not serve now.
const (
	StreamLive      StreamState = "live"
	StreamListing   StreamState = "listing"
	StreamWaiting   StreamState = "waiting"
	StreamForbidden StreamState = "forbidden"
	StreamGone      StreamState = "gone"
)

// StreamStatus is the status of a stream.
type StreamStatus struct {
	Stream
	State StreamState
	// Since is when it entered this state; zero if it was never opened.
	Since time.Time
	// Trying is the time since which it has been trying to become live, across any number of lists and waits;
	// zero unless State is StreamListing or StreamWaiting.
	Trying time.Time
	// Err is why it is not live, or last was not; nil if it never failed. ErrAt is when it failed.
	Err     error
	ErrAt   time.Time
	Objects int
	// Version is the resource version up to which the stream has been read; empty before its first list.
	Version string
	// Lists and Watches count started requests, Gaps the reported gaps.
	Lists, Watches, Gaps int64
}

// Streams returns the status of every stream, one per kind, selection and namespace, sorted by these. It is
// safe for concurrent use, also before Run and after it. Streams that only wake discovery are left out.
func (w *Watcher) Streams() []StreamStatus {
	all, open := w.lastKnown()
	for of, at := range open {
		for _, now := range of.source.Status() { // without w.mu: the engine must not wait for this
			if i, ok := at[now.Stream.Namespace]; ok {
				all[i].set(now)
				all[i].Lists += int64(now.Lists)
				all[i].Watches += int64(now.Watches)
			}
		}
	}
	slices.SortFunc(all, func(a, b StreamStatus) int {
		return cmp.Or(cmp.Compare(a.Resource.GroupResource(), b.Resource.GroupResource()),
			cmp.Compare(a.Selection, b.Selection), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// opened is a source of a kind.
type opened struct {
	kind   *kind
	source *informer.Source
}

// lastKnown returns the streams' last reported status and, for each source, the index of each namespace in it.
func (w *Watcher) lastKnown() (all []StreamStatus, open map[opened]map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open = map[opened]map[string]int{}
	for _, k := range w.kinds {
		if k.discoveryOnly {
			continue
		}
		for key, s := range k.streams {
			st := StreamStatus{Stream: k.stream(key), Trying: s.trying, Err: s.lastErr, Lists: s.lists, Watches: s.watches, Gaps: s.gaps}
			st.set(s.status)
			st.ErrAt = s.lastErrAt
			if key.source < len(k.feeds) {
				of := opened{k, k.feeds[key.source].Source()}
				if open[of] == nil {
					open[of] = map[string]int{}
				}
				open[of][key.namespace] = len(all)
			}
			all = append(all, st)
		}
	}
	return all, open
}

// set takes the engine's status of the stream.
func (s *StreamStatus) set(now informer.Status) {
	s.State, s.Since, s.Objects, s.Version = stateFor(now), now.Since, now.Objects, now.Version
	if now.Err != nil {
		s.Err, s.ErrAt = now.Err, now.Since
	}
	switch { // the engine may be a moment ahead of its reports
	case !connecting(s.State):
		s.Trying = time.Time{}
	case s.Trying.IsZero():
		s.Trying = s.Since
	}
}

// noteTrying records since when the stream has been trying to become live; the watcher's mu is held.
func (s *streamState) noteTrying(now informer.Status) {
	switch {
	case !connecting(stateFor(now)):
		s.trying = time.Time{}
	case s.trying.IsZero():
		s.trying = time.Now()
	}
}

// connecting reports whether a stream in this state should be live and is not.
func connecting(s StreamState) bool { return s == StreamListing || s == StreamWaiting }

func stateFor(st informer.Status) StreamState {
	switch {
	case st.State == informer.Parked:
		return StreamGone
	case apierrors.IsForbidden(st.Err):
		return StreamForbidden
	case st.Err != nil, st.State == informer.Waiting, st.State == informer.Stopped:
		return StreamWaiting
	case st.State == informer.Watching && st.Synced: // a resumed watch may still be catching up
		return StreamLive
	}
	return StreamListing
}

// keepCounts saves the counters of a kind's sources, which are about to be replaced; w.mu is held.
func (k *kind) keepCounts() {
	for i, f := range k.feeds {
		for _, st := range f.Source().Status() {
			if s := k.streams[streamKey{i, st.Stream.Namespace}]; s != nil {
				s.lists += int64(st.Lists)
				s.watches += int64(st.Watches)
			}
		}
	}
}

// Unselected reports that no scope selects a stream of an earlier run any longer. Either its kind is not watched, or it
// has other streams and each of them has delivered its complete state. It is not known of a kind whose API group does
// not answer, nor of one that neither the server has nor Options.Kept had. It is safe for concurrent use.
func (w *Watcher) Unselected(groupResource, namespace, selection string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.catalog == nil || !w.catalog.serves(groupResource) &&
		!slices.ContainsFunc(w.kept, func(k KeptKind) bool { return k.GroupResource() == groupResource && w.catalog.lacks(k.Resource) }) {
		return false
	}
	k := w.kinds[groupResource]
	if k == nil || k.discoveryOnly {
		return true
	}
	complete := true
	for key, s := range k.streams {
		if key.namespace == namespace && k.selectionName(k.selections[key.source]) == selection {
			return false
		}
		complete = complete && s.delivered
	}
	return complete
}

// serves reports whether the server has a kind now. The catalog lacks the kinds of groups that do not answer.
func (c *Catalog) serves(groupResource string) bool {
	return slices.ContainsFunc(c.preferred, func(r Resource) bool { return r.GroupResource() == groupResource })
}
