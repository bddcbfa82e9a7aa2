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

// what a sighting is of.
type what string

const (
	added    what = "ADDED"
	modified what = "MODIFIED"
	deleted  what = "DELETED"
	// present is a version that a list or an answer to a write showed: added or modified.
	present what = "PRESENT"
)

// sighting is a version of an object as the server showed it.
type sighting struct {
	version string
	what    what
	json    []byte // of a deletion: none
	told    bool   // only a writer was told of it
	// vague is a deletion of which only a bound is known: it was in (after, version].
	vague bool
	after string
}

// identity tells objects apart.
type identity struct{ kind, uid string }

// timeline is what is known of one object.
type timeline struct {
	kind, namespace, name, uid string
	sights                     []sighting // in the order of versions, once sorted
}

// past is what a witness knows.
type past struct {
	objects map[identity]*timeline
	// blind are the versions, by kind, that the witness could not see.
	blind map[string][]span
	// start is, by kind, the version up to which a journal need not know what was.
	start map[string]string
}

// witness records what the server shows. It lists and watches each kind by itself, with encoding/json and
// over its own connections.
type witness struct {
	api *api

	mu sync.Mutex
	past
	at   map[string]string // by kind: everything up to there was seen, or is blind
	gaps []relist
	errs []error
	last map[string]string // by kind: the newest version that a writer was told of

	stop func()
}

// relist is a list behind a gap in the watch of a kind, and the UIDs that it had.
type relist struct {
	kind   string
	missed span // the list was at its end
	uids   map[string]bool
}

// watch starts a witness.
func watch(ctx context.Context) (*witness, error) {
	a, err := newAPI()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &witness{
		api: a, at: map[string]string{}, last: map[string]string{},
		past: past{objects: map[identity]*timeline{}, blind: map[string][]span{}, start: map[string]string{}},
	}
	var loops sync.WaitGroup
	for _, r := range kinds {
		loops.Go(func() {
			for ctx.Err() == nil {
				w.follow(ctx, r)
				rest(ctx, 10*time.Millisecond)
			}
		})
	}
	w.stop = func() { cancel(); loops.Wait() }
	if err := within(ctx, time.Minute, w.begun); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// begun tells which kinds are not seen at all.
func (w *witness) begun() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range kinds {
		if w.at[r.name()] == "" {
			return fmt.Errorf("the witness has not seen %s", r.plural)
		}
	}
	return nil
}

// behind tells of which kinds the witness did not see what a writer was told of.
func (w *witness) behind() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, version := range w.last {
		if compare(w.at[kind], version) < 0 {
			return fmt.Errorf("the witness is at %s of %s, not at %s", w.at[kind], kind, version)
		}
	}
	return nil
}

// begin says that a journal need not know what was up to now: it has begun.
func (w *witness) begin(ctx context.Context) error {
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

func (w *witness) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *witness) where(r resource) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[r.name()]
}

// follow watches a kind from where it is until the connection ends; where it cannot, it lists.
func (w *witness) follow(ctx context.Context, r resource) {
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
			return // the connection is gone; what was not whole comes again
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

// see notes an event of a watch.
func (w *witness) see(r resource, kind what, object []byte) error {
	var o stem
	if err := json.Unmarshal(object, &o); err != nil {
		return fmt.Errorf("the witness read %.200q: %w", object, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	version := o.Metadata.ResourceVersion
	if old := w.at[r.name()]; compare(version, old) > 0 {
		w.at[r.name()] = version
	} else if kind != "BOOKMARK" {
		return fmt.Errorf("the witness at %s of %s was shown %s %s at %s", old, r.plural, kind, o.Metadata.Name, version)
	}
	switch kind {
	case "BOOKMARK":
	case deleted:
		w.add(r, &o, sighting{version: version, what: deleted})
	case added, modified:
		w.add(r, &o, sighting{version: version, what: kind, json: bytes.Clone(object)})
	default:
		return fmt.Errorf("the witness was shown %q", kind)
	}
	return nil
}

// add adds a sighting; a version that is known is only made more exact. w.mu is held.
func (w *witness) add(r resource, o *stem, s sighting) {
	id := identity{r.name(), o.Metadata.UID}
	t := w.objects[id]
	if t == nil {
		t = &timeline{kind: r.name(), namespace: o.Metadata.Namespace, name: o.Metadata.Name, uid: o.Metadata.UID}
		w.objects[id] = t
	}
	for i := range t.sights {
		if t.sights[i].version == s.version && !t.sights[i].vague {
			if t.sights[i].what == present {
				t.sights[i].what = s.what
			}
			t.sights[i].told = t.sights[i].told && s.told
			return
		}
	}
	t.sights = append(t.sights, s)
}

// list notes what there is, and that everything since the last version is unknown.
func (w *witness) list(ctx context.Context, r resource) {
	items, version, err := w.api.list(ctx, r)
	if err != nil {
		return // it is tried again
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.at[r.name()]
	there := map[string]bool{}
	for _, item := range items {
		var o fields
		var s stem
		if err := errors.Join(json.Unmarshal(item, &s), decode(item, &o)); err != nil {
			w.errs = append(w.errs, fmt.Errorf("the witness listed %.200q: %w", item, err))
			return
		}
		o["apiVersion"], o["kind"] = r.apiVersion(), r.kind // items have none
		whole, err := json.Marshal(o)
		if err != nil {
			w.errs = append(w.errs, err)
			return
		}
		there[s.Metadata.UID] = true
		w.add(r, &s, sighting{version: s.Metadata.ResourceVersion, what: present, json: whole})
	}
	missed := span{last, version}
	w.gaps = append(w.gaps, relist{r.name(), missed, there})
	if last != "" {
		w.blind[r.name()] = append(w.blind[r.name()], missed)
	}
	w.at[r.name()] = version
}

// decode keeps numbers as they are written.
func decode(raw []byte, to *fields) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(to)
}

// vanished notes the deletions that only lists show. It does so at the end: while a list is under way,
// writers make objects that are too new for it, and hear of others that were gone by then.
func (w *witness) vanished() {
	for _, l := range w.gaps {
		for id, t := range w.objects {
			before := func(s sighting) bool { return compare(s.version, l.missed.to) <= 0 }
			gone := func(s sighting) bool { return before(s) && s.what == deleted }
			if id.kind == l.kind && !l.uids[id.uid] && slices.ContainsFunc(t.sights, before) && !slices.ContainsFunc(t.sights, gone) {
				t.sights = append(t.sights, sighting{version: l.missed.to, what: deleted, vague: true, after: l.missed.from})
			}
		}
	}
}

// answered notes what a writer was told: a version that the server has, whether it was watched or not.
func (w *witness) answered(r resource, object []byte) {
	var o stem
	if json.Unmarshal(object, &o) != nil || o.Kind != r.kind || o.Metadata.DeletionTimestamp != "" {
		return // the last write to one that is deleted is its end, whatever the answer looks like
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(r, &o, sighting{version: o.Metadata.ResourceVersion, what: present, json: bytes.Clone(object), told: true})
	if compare(o.Metadata.ResourceVersion, w.last[r.name()]) > 0 {
		w.last[r.name()] = o.Metadata.ResourceVersion
	}
}

// testify ends the witness and returns what it knows, sorted. What a writer was told of, and the witness
// had to see and did not, is an error: the witness is not to be trusted.
func (w *witness) testify() (*past, error) {
	w.stop()
	w.vanished()
	for _, t := range w.objects {
		slices.SortStableFunc(t.sights, func(a, b sighting) int { return compare(a.version, b.version) })
		for _, s := range t.sights {
			if s.told && !w.blindAt(t.kind, s.version) {
				w.errs = append(w.errs, fmt.Errorf("the witness did not see %s %s at %s, which was written", t.kind, t.name, s.version))
			}
		}
	}
	return &w.past, errors.Join(w.errs...)
}

func (p *past) blindAt(kind, version string) bool {
	return slices.ContainsFunc(p.blind[kind], func(s span) bool { return s.has(version) })
}
