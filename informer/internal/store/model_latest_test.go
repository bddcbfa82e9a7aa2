package store

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// latest is the expectation of a queue in mode Latest: it compares the consumer's state with the current one, for
// every object, each time.
type latest struct {
	base
	fold  *fold
	owed  map[Key]*due // initial objects that it does not have yet
	since map[Key]*due // other objects that differ
	lives map[*life]bool
	knows map[Key]*compact.Version
	n     int
	gap   bool
	taken bool // a part of the state was taken

	complete bool         // the stream has been live since it joined
	first    map[Key]*due // the objects that differed at that time
}

// due is an object that differs.
type due struct {
	n         int // its position
	relisted  bool
	at, after time.Time
	final     *compact.Version
}

func (l *latest) start(s *source, at time.Time) {
	l.owed, l.lives, l.knows = map[Key]*due{}, map[*life]bool{}, map[Key]*compact.Version{}
	for k, h := range s.ref.has {
		if l.skip {
			l.knows[k] = h.v
			continue
		}
		l.owed[k] = &due{at: at}
		l.lives[h.life] = true
	}
	l.noteStart()
}

// noteStart records which objects belong to the initial state, once the stream is live.
func (l *latest) noteStart() {
	if l.ref.live() && !l.complete {
		l.complete, l.first = true, maps.Clone(l.since)
		maps.Copy(l.first, l.owed)
	}
}

func (l *latest) push(means []meaning, gap, firstList bool, _ time.Time) {
	l.gap = l.gap || gap
	if l.skip && firstList {
		l.knows = l.ref.versions()
	} else {
		for _, m := range means {
			l.hear(m)
		}
	}
	l.noteStart()
}

func (l *latest) hear(m meaning) {
	d := l.owed[m.Key]
	if d == nil {
		d = l.since[m.Key]
	}
	if d == nil {
		l.n++
		d = &due{n: l.n}
		l.since[m.Key] = d
	}
	d.at, d.relisted = m.At, d.relisted || m.Relisted
	if d.after.IsZero() {
		d.after = m.After
	}
	old := l.knows[m.Key]
	switch {
	case old == nil:
	case m.Op == Deleted && m.Old.UID() == old.UID():
		d.final = m.Final
	case m.Op == Added && m.New.UID() == old.UID():
		d.final = nil
	}
	if l.since[m.Key] == d && (old == nil) == (m.New == nil) && alike(old, m.New) {
		l.forget(m.Key)
	}
}

func (l *latest) forget(k Key) {
	if d := l.first[k]; d != nil && (l.since[k] == d || l.owed[k] == d) {
		delete(l.first, k)
	}
	delete(l.since, k)
	delete(l.owed, k)
}

func (l *latest) left() int { return len(l.owed) + len(l.since) }

// next returns the next deltas, object by object.
func (l *latest) next() []Key {
	keys := slices.SortedFunc(maps.Keys(l.since), func(a, b Key) int { return cmp.Compare(l.since[a].n, l.since[b].n) })
	return append(slices.SortedFunc(maps.Keys(l.owed), compareKeys), keys...)
}

// deltas returns an object's deltas.
func (l *latest) deltas(k Key) (all []Delta) {
	d := l.owed[k]
	if d == nil {
		d = l.since[k]
	}
	t := Delta{Key: k, Relisted: d.relisted, At: d.at, After: d.after}
	old, now := l.knows[k], l.ref.has[k]
	if old != nil && (now == nil || now.v.UID() != old.UID()) {
		gone := t
		gone.Op, gone.Old, gone.Final = Deleted, old, d.final
		all = append(all, gone)
		old = nil
	}
	if now != nil {
		t.Op, t.Old, t.New = Updated, old, now.v
		if old == nil {
			t.Op, t.Initial = Added, now.life.formed || l.lives[now.life]
			if t.Initial {
				t.Relisted, t.After = false, time.Time{}
			}
		}
		all = append(all, t)
	}
	return all
}

func (l *latest) check(b *Batch) {
	if !l.taken && (len(b.Deltas) > 0 || b.Phase == Live) {
		l.taken = true
		maps.Copy(l.state, l.knows) // it is treated as if it had the initial state
	}
	got := b.Deltas
	for _, k := range l.next() {
		want := l.deltas(k)
		if len(want) == 0 && !l.passed() || len(want) > 0 && len(got) == 0 {
			break
		}
		for i := range want {
			if i == len(got) {
				l.Fatalf("a part of %s", describe(&want[i]))
			}
			l.compare(&got[i], &want[i])
		}
		got = got[len(want):]
		delete(l.knows, k)
		if h := l.ref.has[k]; h != nil {
			l.knows[k] = h.v
		}
		l.forget(k)
	}
	if len(got) > 0 {
		l.Fatalf("%s: not expected", describe(&got[0]))
	}
	l.phases(b)
}

// passed reports whether the queue is past an object of the initial state that was deleted meanwhile.
func (l *latest) passed() bool {
	return l.fold.initial == nil || l.fold.initial.left < len(l.owed)
}

func (l *latest) phases(b *Batch) {
	if (b.Gap != nil) != l.gap {
		l.Fatalf("gap %+v, want %t", b.Gap, l.gap)
	}
	l.gap = false
	if b.Epoch != l.ref.epoch || (b.Phase == Live) != (l.left() == 0 && l.ref.live()) {
		l.Fatalf("phase %d in epoch %d with %d to come", b.Phase, b.Epoch, l.left())
	}
	if b.Phase == Live && b.Version != l.ref.version {
		l.Fatalf("live at %q, want %q", b.Version, l.ref.version)
	}
	if synced := l.complete && len(l.first) == 0; b.Synced != synced {
		l.Fatalf("synced %t, want %t: %v", b.Synced, synced, l.first)
	}
}

func (w *world) compare(got, want *Delta) {
	if got.Op != want.Op || got.Key != want.Key || got.New != want.New || got.Initial != want.Initial ||
		got.Relisted != want.Relisted || got.Final != want.Final || !alike(got.Old, want.Old) ||
		!got.At.Equal(want.At) || !got.After.Equal(want.After) {
		w.Fatalf("got  %s\nwant %s", describe(got), describe(want))
	}
}
