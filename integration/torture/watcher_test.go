package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// what is the kind of a sighting.
type what string

const (
	added    what = "ADDED"
	modified what = "MODIFIED"
	deleted  what = "DELETED"
	// present is a version in a list or in the response to a write: added or modified.
	present what = "PRESENT"
)

// sighting is a version of an object as the server showed it.
type sighting struct {
	version string
	what    what
	json    []byte // nil for a deletion
	written bool   // known only from the response to a write
	// vague is a deletion whose version is only known to be in (after, version].
	vague bool
	after string
	// sent is when the writer sent it; zero: not known. The server stored it between asked, when it or an earlier one was
	// sent, and known, when the server first showed it or a later one.
	sent, asked, known time.Time
}

// identity identifies an object.
type identity struct{ kind, uid string }

// timeline is the known history of one object.
type timeline struct {
	kind, namespace, name, uid string
	sights                     []sighting // sorted by version at the end
}

// past is a watcher's knowledge.
type past struct {
	objects map[identity]*timeline
	// blind has, by kind, the versions that the watcher could not see.
	blind map[string][]span
	// start has, by kind, the version up to which a journal need not have entries.
	start map[string]string
}

// watcher records the versions that the server shows. It lists and watches each kind with encoding/json over
// its own connections.
type watcher struct {
	api *api

	mu sync.Mutex
	past
	at   map[string]string // by kind: everything up to this version was seen, or is blind
	gaps []relist
	errs []error
	last map[string]string // by kind: the newest version in a response to a write

	stop func()
}

// relist is a list after a gap in the watch of a kind, and its UIDs.
type relist struct {
	kind   string
	missed span // up to the list's version
	uids   map[string]bool
	at     time.Time
}

// startWatcher starts a watcher.
func startWatcher(ctx context.Context) (*watcher, error) {
	a, err := newAPI()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{
		api: a, at: map[string]string{}, last: map[string]string{},
		past: past{objects: map[identity]*timeline{}, blind: map[string][]span{}, start: map[string]string{}},
	}
	var loops sync.WaitGroup
	for _, r := range kinds {
		loops.Go(func() {
			for ctx.Err() == nil {
				w.follow(ctx, r)
				pause(ctx, 10*time.Millisecond)
			}
		})
	}
	w.stop = func() { cancel(); loops.Wait() }
	if err := within(ctx, 3*time.Minute, w.begun); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// begun returns an error if some kind has not been listed yet.
func (w *watcher) begun() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range kinds {
		if w.at[r.name()] == "" {
			return fmt.Errorf("the watcher has not seen %s", r.plural)
		}
	}
	return nil
}

// behind returns an error if the watcher has not seen a version that was written.
func (w *watcher) behind() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, version := range w.last {
		if compare(w.at[kind], version) < 0 {
			return fmt.Errorf("the watcher is at %s of %s, not at %s", w.at[kind], kind, version)
		}
	}
	return nil
}

// begin sets the current version as the start of the journal.
func (w *watcher) begin(ctx context.Context) error {
	for _, r := range kinds {
		_, version, err := w.api.list(ctx, r)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.start[r.name()] = version
		w.mu.Unlock()
	}
	return nil
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *watcher) where(r resource) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[r.name()]
}

// follow watches a kind from its position until the connection ends, or lists it.
func (w *watcher) follow(ctx context.Context, r resource) {
	if w.where(r) == "" {
		w.list(ctx, r)
		return
	}
	path := fmt.Sprintf("%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=%s", r.path("", ""), w.where(r))
	body, err := w.api.open(ctx, "GET", path, "", nil)
	if isRefusal(err, 410) {
		w.list(ctx, r)
	}
	if err != nil {
		return
	}
	defer body.Close()
	d := json.NewDecoder(body)
	for {
		var e struct {
			Type   what            `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if d.Decode(&e) != nil {
			return // the connection is gone; an incomplete frame will come again
		}
		if e.Type == "ERROR" {
			var status struct{ Code int }
			if json.Unmarshal(e.Object, &status) == nil && status.Code == 410 {
				w.list(ctx, r)
			}
			return
		}
		if err := w.see(r, e.Type, e.Object); err != nil {
			w.fail(err)
			return
		}
	}
}

// see records a watch event.
func (w *watcher) see(r resource, kind what, object []byte) error {
	var o stem
	if err := json.Unmarshal(object, &o); err != nil {
		return fmt.Errorf("the watcher read %.200q: %w", object, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	version := o.Metadata.ResourceVersion
	if old := w.at[r.name()]; compare(version, old) > 0 {
		w.at[r.name()] = version
	} else if kind != "BOOKMARK" {
		return fmt.Errorf("the watcher at %s of %s was shown %s %s at %s", old, r.plural, kind, o.Metadata.Name, version)
	}
	switch kind {
	case "BOOKMARK":
	case deleted:
		w.add(r, &o, sighting{version: version, what: deleted, known: time.Now()})
	case added, modified:
		w.add(r, &o, sighting{version: version, what: kind, json: bytes.Clone(object), known: time.Now()})
	default:
		return fmt.Errorf("the watcher was shown %q", kind)
	}
	return nil
}

// add adds a sighting; a known version is only made more exact. w.mu is held.
func (w *watcher) add(r resource, o *stem, s sighting) {
	id := identity{r.name(), o.Metadata.UID}
	t := w.objects[id]
	if t == nil {
		t = &timeline{kind: r.name(), namespace: o.Metadata.Namespace, name: o.Metadata.Name, uid: o.Metadata.UID}
		w.objects[id] = t
	}
	for i := range t.sights {
		if old := &t.sights[i]; old.version == s.version && !old.vague {
			if old.what == present {
				old.what = s.what
			}
			old.written = old.written && s.written
			old.sent, old.known = latest(old.sent, s.sent), earliest(old.known, s.known)
			return
		}
	}
	t.sights = append(t.sights, s)
}

// list records the current objects and marks the versions since the last position as blind.
func (w *watcher) list(ctx context.Context, r resource) {
	items, version, err := w.api.list(ctx, r)
	if err != nil {
		return // retried later
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.at[r.name()]
	there := map[string]bool{}
	for _, item := range items {
		var o fields
		var s stem
		if err := errors.Join(json.Unmarshal(item, &s), decode(item, &o)); err != nil {
			w.errs = append(w.errs, fmt.Errorf("the watcher listed %.200q: %w", item, err))
			return
		}
		o["apiVersion"], o["kind"] = r.apiVersion(), r.kind // items have neither
		whole, err := json.Marshal(o)
		if err != nil {
			w.errs = append(w.errs, err)
			return
		}
		there[s.Metadata.UID] = true
		w.add(r, &s, sighting{version: s.Metadata.ResourceVersion, what: present, json: whole, known: now})
	}
	missed := span{last, version}
	w.gaps = append(w.gaps, relist{r.name(), missed, there, now})
	if last != "" {
		w.blind[r.name()] = append(w.blind[r.name()], missed)
	}
	w.at[r.name()] = version
}

// decode keeps numbers in their original form.
func decode(raw []byte, to *fields) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(to)
}

// vanished adds the deletions that only lists reveal. It runs at the end: during a list, writers create newer
// objects and learn of versions of others that were already deleted.
func (w *watcher) vanished() {
	for _, l := range w.gaps {
		for id, t := range w.objects {
			before := func(s sighting) bool { return compare(s.version, l.missed.to) <= 0 }
			gone := func(s sighting) bool { return before(s) && s.what == deleted }
			if id.kind == l.kind && !l.uids[id.uid] && slices.ContainsFunc(t.sights, before) && !slices.ContainsFunc(t.sights, gone) {
				t.sights = append(t.sights, sighting{version: l.missed.to, what: deleted, vague: true, after: l.missed.from, known: l.at})
			}
		}
	}
}

// answered records the object in the response to a write: a version that exists on the server, whether it was watched or
// not. sent is when the write was sent, or zero if it may have changed nothing.
func (w *watcher) answered(r resource, sent time.Time, object []byte) {
	var o stem
	if json.Unmarshal(object, &o) != nil || o.Kind != r.kind || o.Metadata.DeletionTimestamp != "" {
		return // the last write to a deleted object is its end, whatever the response looks like
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(r, &o, sighting{version: o.Metadata.ResourceVersion, what: present, json: bytes.Clone(object), written: true, sent: sent, known: time.Now()})
	if compare(o.Metadata.ResourceVersion, w.last[r.name()]) > 0 {
		w.last[r.name()] = o.Metadata.ResourceVersion
	}
}

// finish ends the watcher and returns its history, sorted. If a write confirmed a version that the watcher had
// to see and did not, that is an error: the watcher cannot be trusted.
func (w *watcher) finish() (*past, error) {
	w.stop()
	w.vanished()
	w.bound()
	for _, t := range w.objects {
		slices.SortStableFunc(t.sights, func(a, b sighting) int { return compare(a.version, b.version) })
		for _, s := range t.sights {
			if s.written && !w.blindAt(t.kind, s.version) {
				w.errs = append(w.errs, fmt.Errorf("the watcher did not see %s %s at %s, which was written", t.kind, t.name, s.version))
			}
		}
	}
	return &w.past, errors.Join(w.errs...)
}

// bound narrows the times of each version by those of all others: the server wrote them in their order.
func (p *past) bound() {
	var all []*sighting
	for _, t := range p.objects {
		for i := range t.sights {
			if !t.sights[i].vague {
				all = append(all, &t.sights[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b *sighting) int { return compare(a.version, b.version) })
	var sent time.Time
	for _, s := range all {
		sent = latest(sent, s.sent)
		s.asked = sent
	}
	for i := len(all) - 1; i > 0; i-- {
		all[i-1].known = earliest(all[i-1].known, all[i].known)
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (p *past) blindAt(kind, version string) bool {
	return slices.ContainsFunc(p.blind[kind], func(s span) bool { return s.has(version) })
}
