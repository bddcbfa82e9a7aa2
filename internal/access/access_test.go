package access

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// some is a viewer with some rights. It counts reviews.
type some struct {
	allowed map[Target]bool // an empty namespace is all namespaces
	created map[Namespace]time.Time
	asked   int
	err     error
}

// Created returns a time long ago unless created has one.
func (s *some) Created(_ context.Context, namespaces []Namespace) ([]time.Time, error) {
	var all []time.Time
	for _, ns := range namespaces {
		s.asked++
		at, ok := s.created[ns]
		if !ok {
			at = time.Unix(0, 0)
		}
		all = append(all, at)
	}
	return all, s.err
}

func (s *some) May(_ context.Context, targets []Target) ([]bool, error) {
	var all []bool
	for _, t := range targets {
		s.asked++
		all = append(all, s.allowed[t] || s.allowed[Target{Group: t.Group, Resource: t.Resource}])
	}
	return all, s.err
}

var (
	deployments = journal.Kind{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true}
	replicaSets = journal.Kind{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true}
	pods        = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	secrets     = journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	nodes       = journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	kinds       = []journal.Kind{deployments, replicaSets, pods, secrets, nodes}
	owns        = map[string][]string{"deployments.apps": {"replicasets.apps"}, "replicasets.apps": {"pods"}}
	start       = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
)

// world makes two journals that look the same to a viewer: what the viewer may not see has other names, owners and
// contents in the second one. Names that begin with h are never visible.
type world struct {
	*rand.Rand
	viewer *some
	rows   [2][]journal.Row
	hidden []string // names, ids and contents that must not come out
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 3)), viewer: &some{allowed: map[Target]bool{}}}
	for _, k := range kinds {
		switch w.IntN(4) {
		case 0:
			w.viewer.allowed[TargetOf(k, "")] = true
		case 1, 2:
			w.viewer.allowed[TargetOf(k, []string{"a", "b"}[w.IntN(2)])] = true
		}
	}
	return w
}

func (w *world) may(k journal.Kind, ns string) bool {
	all, _ := w.viewer.May(context.Background(), []Target{TargetOf(k, ns)})
	return all[0]
}

// add adds the changes of an object.
func (w *world) add(k journal.Kind, ns, name string, owner func(side int) *event.Owner) {
	visible := w.may(k, ns)
	if !k.Namespaced {
		ns = ""
	}
	uid := fmt.Sprint("u", w.Uint64())
	steps := 1 + w.IntN(4)
	ops := []event.Op{event.Created}
	for range steps {
		ops = append(ops, event.Updated)
	}
	if w.IntN(3) == 0 {
		ops = append(ops, event.Deleted)
	}
	for side := range w.rows {
		name, uid, value := name, uid, 0
		if !visible && k != replicaSets { // pods name their ReplicaSets
			name = fmt.Sprintf("h%d-%s", side, name)
			uid = fmt.Sprintf("h%d-%s", side, uid)
			w.hidden = append(w.hidden, name, uid)
		}
		if !visible {
			value = 100 * (side + 1)
		}
		object := func(n int) []byte {
			return fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":%q},"spec":{"n":%d}}`, name, uid, value+n)
		}
		for n, op := range ops {
			at := start.Add(time.Duration(len(w.rows[side])) * time.Second)
			r := journal.Row{Meta: journal.Meta{Op: op, Kind: k, Namespace: ns, Name: name, UID: uid, ResourceVersion: fmt.Sprint(n + 1),
				Time: at, At: at, Manager: "m", Quiet: op == event.Updated && n%3 == 0}}
			if owner != nil {
				r.Owner = owner(side)
			}
			if op != event.Created {
				r.Before = object(n - 1)
			}
			if op != event.Deleted {
				r.After = object(n)
			}
			w.rows[side] = append(w.rows[side], r)
		}
	}
}

func (w *world) gap(k journal.Kind, ns string) {
	for side := range w.rows {
		at := start.Add(time.Duration(len(w.rows[side])) * time.Second)
		reason := "expired"
		if !w.may(k, ns) && ns != "" {
			reason = fmt.Sprintf("h%d-reason", side)
			w.hidden = append(w.hidden, reason)
		}
		w.rows[side] = append(w.rows[side], journal.Row{Meta: journal.Meta{Op: event.Gap, Kind: k, Namespace: ns, Time: at, At: at, Since: at.Add(-time.Second),
			Gap: &event.GapInfo{From: fmt.Sprint(len(w.rows[side])), To: fmt.Sprint(len(w.rows[side]) + 1), Reason: reason}}})
	}
}

// fill makes some objects in three namespaces.
func (w *world) fill() {
	for i := range 6 {
		for _, ns := range []string{"a", "b", "c"} {
			deployment, set := fmt.Sprint("web", i), fmt.Sprint("web", i, "-rs")
			w.add(deployments, ns, deployment, nil)
			w.add(replicaSets, ns, set, func(side int) *event.Owner {
				name := deployment
				if !w.may(replicaSets, ns) { // else its owner is part of it
					name = fmt.Sprintf("h%d-%s", side, deployment)
				}
				return &event.Owner{Kind: "Deployment", Name: name, UID: "d"}
			})
			w.add(pods, ns, fmt.Sprint("pod", i), func(int) *event.Owner { return &event.Owner{Kind: "ReplicaSet", Name: set, UID: "r"} })
			w.add(secrets, ns, fmt.Sprint("key", i), nil)
			if w.IntN(3) == 0 {
				w.gap(kinds[w.IntN(4)], ns)
			}
		}
		w.add(nodes, "", fmt.Sprint("node", i), nil)
		w.gap(kinds[w.IntN(5)], "")
	}
}

// open writes one of the journals and returns the viewer's Source.
func (w *world) open(t *testing.T, side int) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	var batches []journal.Batch
	for _, r := range w.rows[side] {
		batches = append(batches, journal.Batch{Stream: journal.Stream{GroupResource: r.Kind.GroupResource()}, Head: journal.Head{Version: "1", At: start}, Rows: []journal.Row{r}})
	}
	if _, err := j.Append(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s := New(r)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// queries are what is asked of both journals.
func (w *world) queries() []journal.Query {
	all := []journal.Query{{}, {Quiet: true, Snapshots: true, OldestFirst: true}, {Namespaces: []string{"a"}, Quiet: true}, {Namespaces: []string{"b*", "c"}}}
	for range 20 {
		q := journal.Query{Quiet: w.IntN(2) == 0, OldestFirst: w.IntN(2) == 0, Limit: w.IntN(4) * w.IntN(10)}
		if w.IntN(2) == 0 {
			q.Resources = []string{kinds[w.IntN(len(kinds))].GroupResource()}
		}
		if w.IntN(2) == 0 {
			q.Names = []string{fmt.Sprint("web", w.IntN(6)), fmt.Sprint("web", w.IntN(6), "-rs"), fmt.Sprint("pod", w.IntN(6))}
			q.Owned = owns
		}
		if w.IntN(4) == 0 {
			q.Names, q.Owned = []string{fmt.Sprint("h", w.IntN(2), "-web", w.IntN(6))}, owns
		}
		if w.IntN(3) == 0 {
			q.Namespaces = []string{[]string{"a", "b", "c"}[w.IntN(3)]}
		}
		if w.IntN(3) == 0 {
			q.Since, q.Until = start.Add(time.Duration(w.IntN(50))*time.Second), start.Add(time.Duration(50+w.IntN(200))*time.Second)
		}
		all = append(all, q)
	}
	return all
}

// answers is everything that a Source says about some queries and ids, as text.
func answers(ctx context.Context, t *testing.T, s *Source, queries []journal.Query, ids []string) (out []string) {
	t.Helper()
	say := func(what string, v ...any) { out = append(out, what+": "+fmt.Sprintf("%+v", v)) }
	entry := func(e *journal.Entry) string {
		if e == nil {
			return "none"
		}
		before, after, err := e.Contents(ctx)
		m := e.Meta
		m.Gap, m.Owner, m.Absence = nil, nil, nil // pointers
		return fmt.Sprintf("%d %s %+v %v %v %s %s %v", e.Seq, e.ID, m, e.Gap, e.Owner, before, after, err)
	}
	state := func(s *journal.State) string {
		return fmt.Sprintf("%v %s %s %s %d %s %v %s %s", s.Kind, s.Namespace, s.Name, s.UID, s.Presence, s.JSON, s.Err, entry(s.Last), entry(s.Next))
	}
	known := map[string]bool{} // states of which the history was read
	for i, q := range queries {
		what := fmt.Sprint("query ", i)
		for e, err := range s.Rows(ctx, q) {
			say(what, entry(&e), err)
		}
		for st, err := range s.At(ctx, q, start.Add(40*time.Second)) {
			text := state(&st)
			say(what+" at", text, err)
			if known[text] {
				continue
			}
			known[text] = true
			for step, err := range s.History(ctx, &st) {
				say(what+" history", entry(&step.Entry), string(step.Before), string(step.After), err)
			}
		}
		if !q.Until.IsZero() {
			for both, err := range s.Between(ctx, q) {
				say(what+" between", state(&both[0]), state(&both[1]), err)
			}
		}
		for _, prefix := range []string{"", "h", "web", "key"} {
			for _, ns := range []string{"", "a", "c"} {
				names, err := s.Names(ctx, q.Resources, ns, prefix, 1+i)
				say(what+" names", names, err)
			}
		}
	}
	for _, id := range ids {
		e, err := s.ByID(ctx, id)
		say("id "+id, entry(&e), err)
	}
	k, err := s.Kinds(ctx)
	say("kinds", k, err)
	last, err := s.Last(ctx)
	say("last", last, err)
	return out
}

// TestNothingComesOut: whatever a viewer asks for, what is hidden makes no difference to the answers, and does not
// come out. Everything else does.
func TestNothingComesOut(t *testing.T) {
	shown, hidden := 0, 0
	for seed := range uint64(5) {
		w := newWorld(seed)
		w.fill()
		queries := w.queries()
		sources := [2]*Source{w.open(t, 0), w.open(t, 1)}
		var ids []string
		for _, s := range sources {
			for e, err := range s.Journal.Rows(t.Context(), journal.Query{Quiet: true, Snapshots: true}) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, e.ID, e.ID[:1], e.ID[:2])
			}
		}
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		ctx := With(t.Context(), w.viewer)
		got := answers(ctx, t, sources[0], queries, ids)
		if d := cmp.Diff(got, answers(ctx, t, sources[1], queries, ids)); d != "" {
			t.Errorf("seed %d: the answers depend on what is hidden (-one +other):\n%.2000s", seed, d)
		}
		for _, line := range got {
			_, said, _ := strings.Cut(line, ": ")
			for _, h := range w.hidden {
				if strings.Contains(said, h) {
					t.Fatalf("seed %d: %s came out: %.500s", seed, h, line)
				}
			}
		}
		for e, err := range sources[0].Journal.Rows(t.Context(), journal.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			if w.may(e.Kind, e.Namespace) {
				shown++
				if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "query 0: ") && strings.Contains(line, e.ID) }) {
					t.Errorf("seed %d: %s %s/%s is missing", seed, e.Op, e.Namespace, e.Name)
				}
			} else {
				hidden++
			}
		}
	}
	if shown < 100 || hidden < 100 {
		t.Errorf("%d changes were visible, %d hidden: the test shows nothing", shown, hidden)
	}
}

// TestGapsOfKinds: a viewer of one namespace sees the gaps of a whole kind where the query names that namespace.
func TestGapsOfKinds(t *testing.T) {
	w := newWorld(1)
	w.viewer.allowed = map[Target]bool{TargetOf(pods, "a"): true}
	w.gap(pods, "")
	w.gap(secrets, "")
	w.gap(pods, "b")
	s := w.open(t, 0)
	for _, tc := range []struct {
		namespaces []string
		want       int
	}{{nil, 0}, {[]string{"a"}, 1}, {[]string{"c", "a"}, 1}, {[]string{"b"}, 0}, {[]string{"*"}, 0}} {
		n := 0
		for _, err := range s.Rows(With(t.Context(), w.viewer), journal.Query{Namespaces: tc.namespaces}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != tc.want {
			t.Errorf("%v: %d gaps, want %d", tc.namespaces, n, tc.want)
		}
	}
}

// TestFailsClosed: without a viewer, and where rights cannot be checked, nothing comes out and the error says so.
func TestFailsClosed(t *testing.T) {
	w := newWorld(2)
	w.fill()
	s := w.open(t, 0)
	broken := &some{allowed: w.viewer.allowed, err: errors.New("the API server does not answer")}
	for what, ctx := range map[string]context.Context{"nobody": t.Context(), "nil": With(t.Context(), nil), "broken": With(t.Context(), broken), "short": With(t.Context(), short{})} {
		for name, err := range map[string]error{
			"rows":    drain(s.Rows(ctx, journal.Query{})),
			"at":      drain(s.At(ctx, journal.Query{}, start.Add(time.Hour))),
			"between": drain(s.Between(ctx, journal.Query{Since: start, Until: start.Add(time.Hour)})),
			"id":      second(s.ByID(ctx, "a")),
			"kinds":   second(s.Kinds(ctx)),
			"names":   second(s.Names(ctx, nil, "", "", 10)),
		} {
			if ce := new(CheckError); !errors.As(err, &ce) {
				t.Errorf("%s, %s: %v", what, name, err)
			}
		}
	}
}

// short answers with too few decisions.
type short struct{}

func (short) May(context.Context, []Target) ([]bool, error) { return make([]bool, 3), nil }

func (short) Created(context.Context, []Namespace) ([]time.Time, error) { return nil, nil }

func second[T any](_ T, err error) error { return err }

func drain[T any](in iter.Seq2[T, error]) error {
	for _, err := range in {
		if err != nil {
			return err
		}
		return errors.New("something came out")
	}
	return nil
}

// TestPause: with nothing to show, Rows pauses at its time and can be resumed.
func TestPause(t *testing.T) {
	w := newWorld(3)
	w.viewer.allowed = map[Target]bool{TargetOf(pods, "a"): true}
	for len(w.rows[0]) < 3*32*256 { // three pages of blocks
		w.fill()
	}
	s := w.open(t, 0)
	ctx := journal.WithPause(With(t.Context(), w.viewer), 0)
	after, pauses := int64(0), 0
	for {
		var p *journal.Paused
		err := error(nil)
		for _, e := range s.Rows(ctx, journal.Query{After: after, OldestFirst: true, Quiet: true, Managers: []string{"nobody"}}) {
			err = e
		}
		if !errors.As(err, &p) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if p.Seq <= after {
			t.Fatalf("no progress at %d", after)
		}
		after = p.Seq
		pauses++
	}
	if pauses < 2 {
		t.Errorf("%d pauses", pauses)
	}
}

// TestFewReviews: a viewer of everything causes one review for each kind and namespace, at most.
func TestFewReviews(t *testing.T) {
	w := newWorld(4)
	for _, k := range kinds {
		w.viewer.allowed[TargetOf(k, "")] = true
	}
	w.fill()
	s := w.open(t, 0)
	w.viewer.asked = 0
	n := 0
	for _, err := range s.Rows(With(t.Context(), w.viewer), journal.Query{Quiet: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if most := 4*4 + 1; n < 200 || w.viewer.asked > most {
		t.Errorf("%d changes took %d reviews, want at most %d", n, w.viewer.asked, most)
	}
}
