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

// The states. A StreamLive one is up to date, a StreamListing one on its way to be; StreamWaiting is
// between attempts, StreamForbidden refused by the server's rules and tried now and then, StreamGone of a
// kind that the server does not serve (now).
const (
	StreamLive      StreamState = "live"
	StreamListing   StreamState = "listing"
	StreamWaiting   StreamState = "waiting"
	StreamForbidden StreamState = "forbidden"
	StreamGone      StreamState = "gone"
)

// StreamStatus is where a stream stands.
type StreamStatus struct {
	Stream
	State StreamState
	// Since is when it came to be in this state; zero where it never was opened.
	Since time.Time
	// Trying is since when it tries to be live and is not, through any number of lists and waits; zero where
	// State is neither StreamListing nor StreamWaiting.
	Trying time.Time
	// Err is why it is not live, or was not the last time; nil if nothing ever failed.
	Err     error
	Objects int
	// Version is the resource version up to which the stream was read; empty before its first list.
	Version string
	// Lists and Watches count requests that were begun; Gaps those gaps that were told.
	Lists, Watches, Gaps int64
}

// Streams tells where every stream stands: one for each kind, selection and namespace, sorted by these.
// Anybody may call it, also before Run and after its end. What only wakes discovery is not among them.
func (w *Watcher) Streams() []StreamStatus {
	all, open := w.heard()
	for of, at := range open {
		for _, now := range of.source.Status() { // asked without w.mu: the engine is not to wait for this
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

// heard is what streams have told of themselves, and for each source where its namespaces stand in that.
func (w *Watcher) heard() (all []StreamStatus, open map[opened]map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	open = map[opened]map[string]int{}
	for _, k := range w.kinds {
		if k.silent {
			continue
		}
		for key, s := range k.streams {
			st := StreamStatus{Stream: k.stream(key), Trying: s.trying, Err: s.lastErr, Lists: s.lists, Watches: s.watches, Gaps: s.gaps}
			st.set(s.status)
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

// set takes what the engine says of the stream.
func (s *StreamStatus) set(now informer.Status) {
	s.State, s.Since, s.Objects, s.Version = doing(now), now.Since, now.Objects, now.Version
	if now.Err != nil {
		s.Err = now.Err
	}
	switch { // the engine may be a moment ahead of what it has told
	case !tries(s.State):
		s.Trying = time.Time{}
	case s.Trying.IsZero():
		s.Trying = s.Since
	}
}

// try notes since when the stream tries to be live; the watcher's mu is held.
func (s *streamState) try(now informer.Status) {
	switch {
	case !tries(doing(now)):
		s.trying = time.Time{}
	case s.trying.IsZero():
		s.trying = time.Now()
	}
}

// tries is true of the states of a stream that should be live and is not.
func tries(s StreamState) bool { return s == StreamListing || s == StreamWaiting }

func doing(st informer.Status) StreamState {
	switch {
	case st.State == informer.Parked:
		return StreamGone
	case apierrors.IsForbidden(st.Err):
		return StreamForbidden
	case st.Err != nil, st.State == informer.Waiting, st.State == informer.Stopped:
		return StreamWaiting
	case st.State == informer.Watching && st.Synced: // one that resumed may still be catching up
		return StreamLive
	}
	return StreamListing
}

// remember keeps what a kind's sources counted, which are about to be replaced; w.mu is held.
func (k *kind) remember() {
	for i, f := range k.feeds {
		for _, st := range f.Source().Status() {
			if s := k.streams[streamKey{i, st.Stream.Namespace}]; s != nil {
				s.lists += int64(st.Lists)
				s.watches += int64(st.Watches)
			}
		}
	}
}

// Unselected tells that no scope selects a stream of an earlier run any more, which is known only of a kind
// that the server has now: either nothing of it is watched, or its streams are others, and each of them
// has told its whole state. A kind that the server does not have, or of which the API group does not
// answer, may come back, and then be selected. Anybody may call it.
func (w *Watcher) Unselected(groupResource, namespace, selection string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.catalog == nil || !w.catalog.serves(groupResource) {
		return false
	}
	k := w.kinds[groupResource]
	if k == nil || k.silent {
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

// serves tells that the server has a kind now. What a group that does not answer has, the catalog lacks.
func (c *Catalog) serves(groupResource string) bool {
	return slices.ContainsFunc(c.preferred, func(r Resource) bool { return r.GroupResource() == groupResource })
}
