package capture

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer"
)

// streamKey names a stream among those of its kind: the source's place and the namespace.
type streamKey struct {
	source    int
	namespace string
}

type streamState struct {
	status informer.Status
	// delivered is true once the initial state was handed on whole.
	delivered bool
}

// onState hears of every transition of a stream. The engine calls it; it does not block.
func (w *Watcher) onState(k *kind, source int, st informer.Status) {
	w.mu.Lock()
	key := streamKey{source, st.Stream.Namespace}
	s := k.streams[key]
	s.status = st
	refused := st.Err != nil && (st.State == informer.Waiting || st.State == informer.Parked)
	if !k.silent {
		w.outage.hear(outageKey{k.GroupResource(), key}, st)
	}
	w.mu.Unlock()
	if st.State == informer.Parked {
		w.wakeSoon()
	}
	if refused {
		w.settle(k)
	}
}

// delivered notes that the initial state of a stream was handed on.
func (w *Watcher) delivered(k *kind, key streamKey) {
	w.mu.Lock()
	k.streams[key].delivered = true
	w.mu.Unlock()
	w.settle(k)
}

// settle counts a kind as started once each of its streams is live or was refused, and announces
// readiness after the last one.
func (w *Watcher) settle(k *kind) {
	w.mu.Lock()
	for _, s := range k.streams {
		if !s.delivered && (s.status.Err == nil || s.status.Synced) {
			w.mu.Unlock()
			return
		}
	}
	last := false
	if !k.settled && !k.silent && !w.ready {
		k.settled = true
		w.waiting--
		last = w.waiting == 0
	}
	w.mu.Unlock()
	if last {
		close(w.started) // follow announces it: a refusal is heard inside the engine, which must not wait for our reader
	}
}

// announce tells what is watched, once.
func (w *Watcher) announce(ctx context.Context) {
	w.mu.Lock()
	w.ready = true
	r := &Ready{}
	for h := range w.hidden {
		r.Hidden = append(r.Hidden, h)
	}
	slices.Sort(r.Hidden)
	for _, k := range w.kinds {
		if k.silent {
			continue
		}
		err := k.refusal()
		for _, s := range k.sources {
			for _, st := range s.Status() {
				r.Objects += st.Objects
			}
		}
		switch {
		case err == nil:
			r.Kinds++
		case apierrors.IsForbidden(err):
			r.Forbidden = append(r.Forbidden, Refusal{k.Resource, err})
		default:
			r.Failing = append(r.Failing, Refusal{k.Resource, err})
		}
	}
	w.mu.Unlock()
	for _, rs := range [][]Refusal{r.Forbidden, r.Failing} {
		slices.SortFunc(rs, func(a, b Refusal) int {
			return strings.Compare(a.Resource.GroupResource(), b.Resource.GroupResource())
		})
	}
	if r.Objects == 0 {
		r.Missing = w.missingNamespaces(ctx)
	}
	w.send(ctx, Message{Ready: r})
}

// missingNamespaces are the named namespaces that do not exist, as far as we may ask.
func (w *Watcher) missingNamespaces(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var missing []string
	for _, ns := range w.o.Namespaces.exact() {
		_, err := w.cluster.Get(ctx, "/api/v1/namespaces/"+ns, nil)
		if apierrors.IsNotFound(err) {
			missing = append(missing, ns)
		}
	}
	return missing
}

// Progress tells how far the start is: how many kinds there are, how many are settled, and how many
// objects they hold.
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
		for _, s := range k.streams {
			objects += s.status.Objects
		}
	}
	return kinds, settled, objects
}

// refusal is the first error among the kind's streams that are not live.
func (k *kind) refusal() error {
	for _, s := range k.streams {
		if !s.status.Synced && s.status.Err != nil {
			return s.status.Err
		}
	}
	return nil
}

// outageKey names a stream among all.
type outageKey struct {
	resource string
	streamKey
}

// outage sums up an absence of the API server that cuts many streams at about the same time.
// Its owner guards it.
type outage struct {
	since    time.Time
	err      error
	told     bool
	calm     time.Time // when the last cut stream came back
	cut      map[outageKey]bool
	down     map[outageKey]bool
	relisted map[outageKey]bool
}

// Times that make one event of many: a cut shorter than grace is not worth a word on the way, and
// streams come back within calmAfter of each other.
const (
	grace     = 1500 * time.Millisecond
	calmAfter = time.Second
)

// hear takes a transition of a stream that was live before.
func (o *outage) hear(key outageKey, st informer.Status) {
	switch {
	case st.State == informer.Waiting && st.Synced && serverAway(st.Err):
		if o.down == nil {
			*o = outage{
				since: st.Since, err: st.Err,
				cut: map[outageKey]bool{}, down: map[outageKey]bool{}, relisted: map[outageKey]bool{},
			}
		}
		o.cut[key], o.down[key] = true, true
	case o.down != nil && o.down[key] && (st.State == informer.Watching || !retrying(st.State)):
		delete(o.down, key)
		o.calm = st.Since
	}
}

// retrying is true for a stream that may still come back by itself.
func retrying(s informer.State) bool {
	return s == informer.Starting || s == informer.ListingState || s == informer.Waiting
}

// gap notes that a stream lost its place; true says that this absence accounts for it.
func (o *outage) gap(key outageKey) bool {
	if o.down == nil {
		return false
	}
	o.relisted[key] = true
	return true
}

// tick returns what there is to tell: that the server is away, then that it is back.
func (o *outage) tick(now time.Time) *Away {
	switch {
	case o.down == nil:
		return nil
	case len(o.down) > 0:
		if o.told || now.Sub(o.since) < grace {
			return nil
		}
		o.told = true
		return &Away{Since: o.since, Err: o.err, Streams: len(o.down)}
	case now.Sub(o.calm) < calmAfter:
		return nil
	}
	a := &Away{Since: o.since, Until: o.calm, Err: o.err, Streams: len(o.cut), Relisted: len(o.relisted)}
	*o = outage{}
	return a
}

// serverAway tells a server that is not there, or shutting down or starting up, from one that
// answers and refuses.
func serverAway(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	return status.Status().Code >= 500
}
