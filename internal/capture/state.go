package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer"
)

// onState takes every state transition of a stream. The engine calls it, so it must not block.
func (w *Watcher) onState(k *kind, source int, st informer.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := streamKey{source, st.Stream.Namespace}
	s := k.streams[key]
	was := s.status.State
	s.status = st
	s.noteTrying(st)
	if st.Err != nil {
		s.lastErr, s.lastErrAt = st.Err, st.Since
	}
	if !k.discoveryOnly {
		w.outage.observe(time.Now(), outageKey{k.GroupResource(), key}, st)
	}
	switch st.State {
	case informer.Watching:
		s.live = true
		s.blind = s.blind && s.blindReported // recovered before anything was reported
	case informer.Waiting:
		// 404 means that the kind is going away, which its deletions report.
		if st.Synced && st.Err != nil && !serverAway(st.Err) && !apierrors.IsNotFound(st.Err) {
			s.blind = true
		}
	case informer.Parked:
		// Otherwise discovery was asked already and says that it is served. A parked stream reports again once it was retired.
		if s.live || k.vanished || was == informer.Parked {
			s.live = false
			w.wakeSoon()
		}
	}
	w.markStarted(k)
}

// blindness returns one error for live streams that were refused, for instance because rights were withdrawn,
// and one for those that are live again; changes in between are recorded as net changes. Each stream is
// reported once per transition.
func (w *Watcher) blindness() (reported []error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var refused, seeing []string
	var cause error
	for _, gr := range slices.Sorted(maps.Keys(w.kinds)) {
		k := w.kinds[gr]
		for _, key := range slices.SortedFunc(maps.Keys(k.streams), compareStreams) {
			s := k.streams[key]
			where := gr
			if key.namespace != "" {
				where += " in namespace " + key.namespace
			}
			switch {
			case k.discoveryOnly || !s.blind:
			case !s.blindReported:
				s.blindReported = true
				refused, cause = append(refused, where), cmp.Or(cause, s.status.Err)
			case s.status.State == informer.Watching:
				s.blind, s.blindReported = false, false
				seeing = append(seeing, where)
			}
		}
	}
	if len(refused) > 0 {
		reported = append(reported, fmt.Errorf("%s can no longer be watched, %s changes are missed: %w",
			strings.Join(refused, ", "), oneOrMore(refused, "its", "their"), cause))
	}
	if len(seeing) > 0 {
		reported = append(reported, fmt.Errorf("%s %s watched again", strings.Join(seeing, ", "), oneOrMore(seeing, "is", "are")))
	}
	return reported
}

func oneOrMore(all []string, one, more string) string {
	if len(all) == 1 {
		return one
	}
	return more
}

// delivered records that a stream's state was sent completely, in an epoch.
func (w *Watcher) delivered(k *kind, key streamKey, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := k.streams[key]
	s.delivered, s.moved, s.epoch = true, "", epoch
	w.markStarted(k)
}

// fail records that a kind cannot be opened.
func (w *Watcher) fail(k *kind, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range k.streams {
		s.status.Err, s.lastErr, s.lastErrAt = err, err, time.Now()
	}
	w.markStarted(k)
}

// markStarted counts a kind as started once each of its streams is live or was refused, and announces readiness
// after the last one; w.mu is held.
func (w *Watcher) markStarted(k *kind) {
	if k.started {
		return
	}
	for _, s := range k.streams {
		if !s.delivered && (s.status.Err == nil || s.status.Synced) || w.vanishing(k, s) {
			return
		}
	}
	w.noteStarted(k)
}

// noteStarted counts a kind as started; w.mu is held.
func (w *Watcher) noteStarted(k *kind) {
	if k.started {
		return
	}
	k.started = true
	if !k.discoveryOnly && !k.late {
		w.waiting--
		w.startedIfDone()
	}
}

// startedIfDone is called after each change of w.waiting; w.mu is held. It leaves the announcement to follow:
// refusals arrive inside the engine, which must not wait for our reader.
func (w *Watcher) startedIfDone() {
	if w.waiting == 0 {
		close(w.started)
	}
}

// announce sends Ready, once.
func (w *Watcher) announce(ctx context.Context) {
	r, found := w.describe()
	for _, rs := range [][]Refusal{r.Forbidden, r.Failing} {
		slices.SortFunc(rs, func(a, b Refusal) int {
			return strings.Compare(a.Resource.GroupResource(), b.Resource.GroupResource())
		})
	}
	slices.Sort(r.Absent)
	r.Missing = w.missingNamespaces(ctx, found)
	w.send(ctx, Message{Ready: r})
}

// describe returns what is watched, and the namespaces in which objects were found.
func (w *Watcher) describe() (r *Ready, found map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, found = &Ready{Hidden: slices.Sorted(maps.Keys(w.hidden)), Unmatched: w.unmatched}, map[string]bool{}
	if w.catalog != nil {
		r.Unfilled = w.catalog.unfilled(w.ruled())
	}
	for _, k := range w.kinds {
		if k.discoveryOnly {
			continue
		}
		for _, st := range k.status() {
			r.Objects += st.Objects
			if st.Objects > 0 {
				found[st.Stream.Namespace] = true
			}
		}
		r.Absent = append(r.Absent, k.absent()...)
		live, err := k.refusal()
		if live {
			r.Kinds++
		}
		switch {
		case err == nil:
		case apierrors.IsForbidden(err):
			r.Forbidden = append(r.Forbidden, k.refused(live, err))
		default:
			r.Failing = append(r.Failing, k.refused(live, err))
		}
	}
	return r, found
}

// missingNamespaces returns the named namespaces that do not exist, as far as we have the rights to ask.
func (w *Watcher) missingNamespaces(ctx context.Context, found map[string]bool) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var missing []string
	for _, ns := range w.namespaces() {
		if found[ns] {
			continue
		}
		if _, err := w.cluster.Get(ctx, "/api/v1/namespaces/"+ns, nil); apierrors.IsNotFound(err) {
			missing = append(missing, ns)
		}
	}
	return missing
}

// Progress reports how far the start is: the number of kinds, how many have started, and how many objects they
// hold. It is safe for concurrent use.
func (w *Watcher) Progress() (kinds, started, objects int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		if k.discoveryOnly {
			continue
		}
		kinds++
		if k.started {
			started++
		}
		for _, st := range k.status() {
			objects += st.Objects
		}
	}
	return kinds, started, objects
}

// status returns the current status of each of the kind's streams.
func (k *kind) status() []informer.Status {
	var all []informer.Status
	for _, f := range k.feeds {
		all = append(all, f.Source().Status()...)
	}
	return all
}

// refusal reports whether any stream of the kind is live, and why one is not.
func (k *kind) refusal() (live bool, err error) {
	for _, key := range slices.SortedFunc(maps.Keys(k.streams), compareStreams) {
		st := k.streams[key].status
		if st.Synced || st.Err == nil {
			live = true
		} else if err == nil || apierrors.IsForbidden(st.Err) && !apierrors.IsForbidden(err) {
			err = st.Err
		}
	}
	return live, err
}

// refused describes why a kind is not watched, or in which namespaces.
func (k *kind) refused(live bool, err error) Refusal {
	r := Refusal{Resource: k.resource(), Err: err}
	for _, key := range slices.SortedFunc(maps.Keys(k.streams), compareStreams) {
		if st := k.streams[key].status; live && !st.Synced && st.Err != nil {
			r.Namespaces = append(r.Namespaces, key.namespace)
		}
	}
	return r
}

// absent returns the objects requested by name that the server does not have, as far as it answers.
func (k *kind) absent() []string {
	var names []string
	for i, f := range k.feeds {
		if len(k.feeds) != len(k.names) {
			break // one source for all names, because owned objects are watched too
		}
		there := false
		for _, st := range f.Source().Status() {
			there = there || st.Objects > 0 || !st.Synced
		}
		if !there {
			names = append(names, k.Resource.Resource+"/"+k.names[i])
		}
	}
	return names
}

// Unstarted returns the kinds that are neither live nor refused yet, sorted. It is safe for concurrent use.
func (w *Watcher) Unstarted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for gr, k := range w.kinds {
		if !k.started && !k.discoveryOnly {
			names = append(names, gr)
		}
	}
	slices.Sort(names)
	return names
}

func compareStreams(a, b streamKey) int {
	return cmp.Or(cmp.Compare(a.source, b.source), strings.Compare(a.namespace, b.namespace))
}
