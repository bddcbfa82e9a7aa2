package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
)

// TestTwoRecordersAgree lets two recorders watch one server. They begin at different times; each is stopped, killed, cut
// off and made to doubt its state, at random. Sometimes the server forgets its history, and sometimes a backup is restored
// while one of them is down. Then their journals are compared:
//
//   - what both saw has one id, in each of the server's histories,
//   - no id occurs twice in a journal,
//   - a change that is the sum of several is marked as such,
//   - doubts have begun no epoch, and each restored backup has begun one in every stream.
//
// A recorder must be able to prove a replacement: its versions must be later than the backup, and the server's not yet, or
// the newest object of each kind that is written to must be lost. AGREE_SEED repeats a run.
func TestTwoRecordersAgree(t *testing.T) {
	seeds := make([]uint64, 12)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if s := os.Getenv("AGREE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	var all tally
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("AGREE_SEED=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				w.live()
				all.add(w.compare())
			})
		})
	}
	t.Logf("%+v", all)
	if len(seeds) > 1 && (all.Both == 0 || all.Net == 0 || all.Restores == 0 || all.Overtaken == 0 || all.Quiet == 0 || all.Doubts == 0 || all.Deleted == 0) {
		t.Errorf("too little happened: %+v", all)
	}
}

// tally counts what the runs met.
type tally struct{ Both, Deleted, Net, Restores, Overtaken, Quiet, Doubts int }

func (t *tally) add(o tally) {
	t.Both, t.Deleted, t.Net = t.Both+o.Both, t.Deleted+o.Deleted, t.Net+o.Net
	t.Restores, t.Overtaken, t.Quiet, t.Doubts = t.Restores+o.Restores, t.Overtaken+o.Overtaken, t.Quiet+o.Quiet, t.Doubts+o.Doubts
}

var agreeKinds = map[schema.GroupVersionResource]string{
	configMaps: "ConfigMap",
	{Group: "apps", Version: "v1", Resource: "deployments"}:    "Deployment",
	{Group: "example.com", Version: "v1", Resource: "widgets"}: "Widget",
}

// world is a server, what was written to it, and two recorders.
type world struct {
	*testing.T
	*rand.Rand
	tally
	server  *informertest.Server
	kinds   []schema.GroupVersionResource
	busy    []schema.GroupVersionResource // the kinds that are written to
	parties [2]*party
	objects map[place]thing
	states  int
	// before is the state that each state followed, and ended the last state of each deleted object, by UID and history.
	before  map[string]string
	ended   map[string]string
	history int
}

type place struct {
	gvr  schema.GroupVersionResource
	name string
}

// thing is an object of the server. Its state is unique among all that were ever written.
type thing struct{ uid, state, created string }

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, 31)), server: informertest.NewServer(), history: 1,
		objects: map[place]thing{}, before: map[string]string{}, ended: map[string]string{},
	}
	for gvr, kind := range agreeKinds {
		w.kinds = append(w.kinds, gvr)
		w.server.Serve(gvr, kind)
	}
	slices.SortFunc(w.kinds, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.Resource, b.Resource) })
	w.busy = w.kinds
	redactor, err := redact.New(redact.NewRandomKey(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.parties {
		p := &party{T: t, name: string(rune('A' + i)), path: filepath.Join(t.TempDir(), "journal.db"), redactor: redactor, server: w.server}
		w.parties[i] = p
	}
	return w
}

// live lets random things happen, and ends with both recorders running and current.
func (w *world) live() {
	w.write(w.kinds[0], "first") // or there is nothing to watch
	w.parties[0].start()
	for range 40 {
		w.some(1 + w.IntN(4))
		p := w.parties[w.IntN(2)]
		switch w.IntN(9) {
		case 0, 1:
			p.toggle(w.IntN(2) == 0)
		case 2:
			p.link.set(true, false)
			w.some(w.IntN(5))
			w.pass(time.Duration(w.IntN(9000)) * time.Millisecond)
			p.link.set(false, false)
		case 3: // it cannot verify its state, and lists
			if p.running() {
				p.stop(w.IntN(2) == 0)
				w.some(w.IntN(3))
				p.link.set(false, true)
				p.start()
				w.pass(3 * time.Second)
				p.link.set(false, false)
				w.Doubts++
			}
		case 4:
			w.server.Compact()
		case 5:
			w.server.Cut()
		case 6:
			if w.IntN(2) == 0 {
				w.restore(p)
			}
		}
		w.pass(time.Duration(w.IntN(4000)) * time.Millisecond)
	}
	w.settle()
	w.some(5)
	w.settle()
	for _, p := range w.parties {
		p.stop(false)
	}
}

func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// settle lets both recorders become current.
func (w *world) settle() {
	for _, p := range w.parties {
		p.link.set(false, false)
		p.start()
	}
	for range 5 {
		w.pass(30 * time.Second)
		w.server.Bookmark()
	}
	w.pass(2 * time.Second) // so that the versions are in the journals, even after a kill
}

// some writes some changes.
func (w *world) some(n int) {
	for range n {
		gvr, name := w.busy[w.IntN(len(w.busy))], fmt.Sprint("o", w.IntN(4))
		if at := (place{gvr, name}); w.objects[at].uid != "" && w.IntN(4) == 0 {
			w.ended[w.lifeOf(w.objects[at].uid)] = w.objects[at].state
			w.server.Delete(gvr, "shop", name)
			delete(w.objects, at)
			continue
		}
		w.write(gvr, name)
	}
}

func (w *world) lifeOf(uid string) string { return fmt.Sprint(uid, " in history ", w.history) }

func (w *world) write(gvr schema.GroupVersionResource, name string) {
	at := place{gvr, name}
	o := w.objects[at]
	if o.uid == "" {
		o.created = time.Now().UTC().Format(time.RFC3339)
	}
	w.states++
	now := fmt.Sprint("state", w.states)
	w.before[now] = o.state
	w.server.Put(gvr, "shop", name, map[string]any{
		"metadata": map[string]any{"creationTimestamp": o.created}, "spec": map[string]any{"is": now},
	})
	o.state = now
	o.uid = w.server.Objects(gvr)["shop/"+name]["metadata"].(map[string]any)["uid"].(string)
	w.objects[at] = o
}

// restore replaces the server's history by that of a backup, while one recorder is down.
func (w *world) restore(down *party) {
	w.settle()
	backup, objects := w.server.Snapshot(), maps.Clone(w.objects)
	overtakes := w.IntN(2) == 0
	if overtakes && w.IntN(2) == 0 {
		w.busy = w.kinds[:1] // the others can prove nothing
		w.Quiet++
	}
	w.some(6 + w.IntN(10))
	if overtakes {
		for _, gvr := range w.busy {
			w.write(gvr, fmt.Sprint("lost", w.states))
		}
	}
	w.settle()
	down.stop(w.IntN(2) == 0)
	w.some(w.IntN(10))
	w.server.Restore(backup)
	w.objects = objects
	w.history++
	w.Restores++
	w.pass(time.Minute) // the other one notices
	if w.some(w.IntN(4)); overtakes {
		w.Overtaken++
		w.server.Skip(100)
		w.some(w.IntN(20))
	}
	down.start()
	w.settle()
	w.busy = w.kinds
}

// party is a recorder.
type party struct {
	*testing.T
	name, path string
	redactor   *redact.Redactor
	server     *informertest.Server
	link       link
	journal    *journal.Journal // nil while it does not run
	end        func()
}

func (p *party) running() bool { return p.journal != nil }

func (p *party) toggle(kill bool) {
	if p.running() {
		p.stop(kill)
	} else {
		p.start()
	}
}

// start does nothing if it runs.
func (p *party) start() {
	if p.running() {
		return
	}
	rules, err := quiet.New()
	if err == nil {
		p.journal, err = journal.Open(p.Context(), p.path, journal.Options{Cluster: "test"})
	}
	if err != nil {
		p.Fatal(err)
	}
	k, err := newKept(p.Context(), p.journal, "", slog.New(slog.DiscardHandler))
	if err != nil {
		p.Fatal(err)
	}
	config := p.server.Config()
	config.Wrap(p.link.wrap)
	w, err := capture.New(capture.Options{Config: config, Types: []string{"configmaps,deployments.apps,widgets.example.com"}, Redactor: p.redactor, Quiet: rules, Kept: k})
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(p.Context())
	var running sync.WaitGroup
	rec := &recorder{journal: p.journal, state: &state{}, recorded: func(int64, capture.Version) {}, onMessage: func(capture.Message) {}}
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			p.Errorf("%s: %v", p.name, err)
		}
	})
	running.Go(func() {
		rec.run(context.WithoutCancel(ctx), w.Messages(), func(err error) {
			if !errors.Is(err, journal.ErrClosed) {
				p.Errorf("%s: %v", p.name, err)
			}
		})
	})
	p.end = func() { cancel(); running.Wait() }
	synctest.Wait()
}

// stop ends the recorder; a killed one writes nothing more.
func (p *party) stop(kill bool) {
	if !p.running() {
		return
	}
	if kill {
		if err := p.journal.Close(); err != nil {
			p.Error(err)
		}
	}
	p.end()
	if err := p.journal.Close(); err != nil && !errors.Is(err, journal.ErrClosed) {
		p.Error(err)
	}
	p.journal = nil
}

// link is a party's connection to the server.
type link struct {
	mu       sync.Mutex
	down     bool
	secluded bool // no object can be read by itself
	open     map[*context.CancelFunc]bool
}

func (l *link) set(down, secluded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.secluded = down, secluded
	for cancel := range l.open {
		if down {
			(*cancel)()
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

var oneObject = regexp.MustCompile(`/namespaces/[^/]+/[^/]+/[^/]+$`)

func (l *link) wrap(to http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancel(r.Context())
		l.mu.Lock()
		down, secluded := l.down, l.secluded && oneObject.MatchString(r.URL.Path)
		if l.open == nil {
			l.open = map[*context.CancelFunc]bool{}
		}
		l.open[&cancel] = true
		l.mu.Unlock()
		context.AfterFunc(r.Context(), func() {
			cancel()
			l.mu.Lock()
			delete(l.open, &cancel)
			l.mu.Unlock()
		})
		if down {
			return nil, syscall.ECONNREFUSED
		}
		if secluded {
			return forbidden(), nil
		}
		return to.RoundTrip(r.WithContext(ctx))
	})
}

func forbidden() *http.Response {
	w := httptest.NewRecorder()
	informertest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no")
	return w.Result()
}

// rowSeen is a row of a journal.
type rowSeen struct {
	journal.Entry
	before, after string // states
}

var stateOf = regexp.MustCompile(`"is":"(state\d+)"`)

func (p *party) rows() (rows []rowSeen) {
	r, err := journal.OpenReader(p.Context(), p.path)
	if err != nil {
		p.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Rows(p.Context(), journal.Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			p.Fatal(err)
		}
		if !e.Op.HasObject() {
			continue
		}
		before, after, err := e.Contents(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		is := func(json []byte) string {
			if m := stateOf.FindSubmatch(json); m != nil {
				return string(m[1])
			}
			return ""
		}
		rows = append(rows, rowSeen{e, is(before), is(after)})
	}
	return rows
}

// compare judges the two journals.
func (w *world) compare() tally {
	var ids [2]map[string]map[string]bool // of each state, and of each deleted UID
	for i, p := range w.parties {
		ids[i] = map[string]map[string]bool{}
		seen := map[string]bool{}
		for _, r := range p.rows() {
			if seen[r.ID] {
				w.Errorf("%s has id %s twice: %s %s", p.name, r.ID, r.Op, r.after)
			}
			seen[r.ID] = true
			what := r.after
			if r.Op == event.Deleted {
				what = r.UID
			}
			if ids[i][what] == nil {
				ids[i][what] = map[string]bool{}
			}
			ids[i][what][r.ID] = true
			if w.check(p, r); r.Net {
				w.Net++
			}
		}
		p.checkHeads(w)
	}
	for what, a := range ids[0] {
		b := ids[1][what]
		switch {
		case b == nil:
			continue
		case strings.HasPrefix(what, "state"):
			w.Both++
		default:
			w.Deleted++
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(id string) bool { return b[id] }) {
			w.Errorf("the recorders have no common id for %s: %v and %v", what, a, b)
		}
	}
	return w.tally
}

// check checks that a row is the very change that was written, or says that it is not.
func (w *world) check(p *party, r rowSeen) {
	switch {
	case r.Op == event.Snapshot, r.Net:
	case r.Op == event.Deleted:
		is := false
		for h := range w.history {
			is = is || w.ended[fmt.Sprint(r.UID, " in history ", h+1)] == r.before
		}
		if !is {
			w.Errorf("%s saw the deletion of %s after %s, and does not say that something was missed", p.name, r.UID, r.before)
		}
	case r.before != w.before[r.after]:
		w.Errorf("%s: %s %s follows %q, not %q, and does not say that something was missed", p.name, r.Op, r.after, w.before[r.after], r.before)
	}
}

// checkHeads checks that each replaced history has begun an epoch, and nothing else has, and that the recorder knows the
// server's last state.
func (p *party) checkHeads(w *world) {
	j, err := journal.Open(p.Context(), p.path, journal.Options{Cluster: "test"})
	if err != nil {
		p.Fatal(err)
	}
	defer j.Close()
	streams, err := j.Streams(p.Context())
	if err != nil || len(streams) != len(w.kinds) {
		p.Fatalf("%s: %d streams, %v", p.name, len(streams), err)
	}
	var got, want []string
	for _, s := range streams {
		if s.Head.Epoch != int64(w.history) {
			p.Errorf("%s: %s in epoch %d of %d", p.name, s.Stream.GroupResource, s.Head.Epoch, w.history)
		}
		for o, err := range j.Objects(p.Context(), s.Stream) {
			if err != nil {
				p.Fatal(err)
			}
			got = append(got, s.Stream.GroupResource+" "+o.Name+" "+o.UID+" "+string(stateOf.Find(o.JSON)))
		}
	}
	for at, o := range w.objects {
		want = append(want, at.gvr.GroupResource().String()+" "+at.name+" "+o.uid+` "is":"`+o.state+`"`)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.Errorf("%s knows\n%s\nwant\n%s", p.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
