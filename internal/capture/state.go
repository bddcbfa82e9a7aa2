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

// onState hears of every transition of a stream. The engine calls it; it does not block.
func (w *Watcher) onState(k *kind, source int, st informer.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := streamKey{source, st.Stream.Namespace}
	s := k.streams[key]
	s.status = st
	s.try(st)
	if st.Err != nil {
		s.lastErr = st.Err
	}
	if !k.silent {
		w.outage.hear(time.Now(), outageKey{k.GroupResource(), key}, st)
	}
	switch st.State {
	case informer.Watching:
		s.live = true
		s.blind = s.blind && s.blindTold // else nobody need hear of it
	case informer.Waiting:
		// 404 is a kind that goes: its deletions tell that.
		if st.Synced && st.Err != nil && !serverAway(st.Err) && !apierrors.IsNotFound(st.Err) {
			s.blind = true
		}
	case informer.Parked:
		if s.live { // else discovery was asked already, and says that it is served
			s.live = false
			w.wakeSoon()
		}
	}
	w.settle(k)
}

// blindness says, once each, that live streams were refused, such as by rights that were withdrawn, and that they are
// live again: what changed meanwhile is then recorded as net changes. Those of one moment are one message.
func (w *Watcher) blindness() (told []error) {
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
			case k.silent || !s.blind:
			case !s.blindTold:
				s.blindTold = true
				refused, cause = append(refused, where), cmp.Or(cause, s.status.Err)
			case s.status.State == informer.Watching:
				s.blind, s.blindTold = false, false
				seeing = append(seeing, where)
			}
		}
	}
	if len(refused) > 0 {
		told = append(told, fmt.Errorf("%s cannot be watched any more, %s changes are not seen: %w",
			strings.Join(refused, ", "), oneOrMore(refused, "its", "their"), cause))
	}
	if len(seeing) > 0 {
		told = append(told, fmt.Errorf("%s %s watched again", strings.Join(seeing, ", "), oneOrMore(seeing, "is", "are")))
	}
	return told
}

func oneOrMore(all []string, one, more string) string {
	if len(all) == 1 {
		return one
	}
	return more
}

// delivered notes that the state of a stream, of an epoch, was handed on whole.
func (w *Watcher) delivered(k *kind, key streamKey, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := k.streams[key]
	s.delivered, s.moved, s.epoch = true, "", epoch
	w.settle(k)
}

// fail notes that a kind cannot be opened.
func (w *Watcher) fail(k *kind, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range k.streams {
		s.status.Err, s.lastErr = err, err
	}
	w.settle(k)
}

// settle counts a kind as started once each of its streams is live or was refused, and announces
// readiness after the last one; w.mu is held.
func (w *Watcher) settle(k *kind) {
	if k.settled {
		return
	}
	for _, s := range k.streams {
		if !s.delivered && (s.status.Err == nil || s.status.Synced) {
			return
		}
	}
	k.settled = true
	if !k.silent && !k.late {
		w.waiting--
		w.startedIfDone()
	}
}

// startedIfDone is called when waiting was set, and when it was counted down; w.mu is held. It has
// follow announce it: a refusal is heard inside the engine, which must not wait for our reader.
func (w *Watcher) startedIfDone() {
	if w.waiting == 0 {
		close(w.started)
	}
}

// announce tells what is watched, once.
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

// describe says what is watched, and in which namespaces objects were found.
func (w *Watcher) describe() (r *Ready, found map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, found = &Ready{Hidden: slices.Sorted(maps.Keys(w.hidden)), Unmatched: w.unmatched}, map[string]bool{}
	if w.catalog != nil {
		r.Unfilled = w.catalog.unfilled(w.ruled())
	}
	for _, k := range w.kinds {
		if k.silent {
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

// missingNamespaces are the named namespaces that do not exist, as far as we may ask.
func (w *Watcher) missingNamespaces(ctx context.Context, found map[string]bool) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var missing []string
	for i := range w.scopes {
		for _, ns := range w.scopes[i].Namespaces.exact() {
			if found[ns] || slices.Contains(missing, ns) {
				continue
			}
			if _, err := w.cluster.Get(ctx, "/api/v1/namespaces/"+ns, nil); apierrors.IsNotFound(err) {
				missing = append(missing, ns)
			}
		}
	}
	return missing
}

// Progress tells how far the start is: how many kinds there are, how many are settled, and how many
// objects they hold. Anybody may call it.
func (w *Watcher) Progress() (kinds, settled, objects int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		if k.silent {
			continue
		}
		kinds++
		if k.settled {
			settled++
		}
		for _, st := range k.status() {
			objects += st.Objects
		}
	}
	return kinds, settled, objects
}

// status is that of every stream of the kind, as of now.
func (k *kind) status() []informer.Status {
	var all []informer.Status
	for _, f := range k.feeds {
		all = append(all, f.Source().Status()...)
	}
	return all
}

// refusal tells whether any stream of the kind is live, and why one is not.
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

// refused describes why a kind is not watched, or where it is not.
func (k *kind) refused(live bool, err error) Refusal {
	r := Refusal{Resource: k.resource(), Err: err}
	for _, key := range slices.SortedFunc(maps.Keys(k.streams), compareStreams) {
		if st := k.streams[key].status; live && !st.Synced && st.Err != nil {
			r.Namespaces = append(r.Namespaces, key.namespace)
		}
	}
	return r
}

// absent are the objects that were asked for by name and that the server, as far as it answers,
// does not have.
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

// Unsettled names the kinds that have neither come to be live nor been refused, in order. Anybody
// may call it.
func (w *Watcher) Unsettled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for gr, k := range w.kinds {
		if !k.settled && !k.silent {
			names = append(names, gr)
		}
	}
	slices.Sort(names)
	return names
}

func compareStreams(a, b streamKey) int {
	return cmp.Or(cmp.Compare(a.source, b.source), strings.Compare(a.namespace, b.namespace))
}
