package informer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compare"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

// damage is a shared object that somebody wrote to.
type damage struct {
	of     *handout
	stream *stream
	key    Key
	secret bool // its values are not shown
	compare.Difference
	readers []string
}

// check compares an object with what its bytes decode to; nil: it is as it was.
func (m *mutations) check(h *handout) (d *damage) {
	defer func() {
		if recover() != nil { // somebody writes to it at this moment; the next check sees what comes of that
			d = nil
		}
	}()
	if _, odd := m.odd[h.codec]; odd {
		return nil
	}
	true1, err := h.decode()
	if err != nil {
		return nil
	}
	diff, differ := compare.First(true1, h.obj)
	if !differ {
		return nil
	}
	true2, err := h.decode()
	if err != nil {
		return nil
	}
	if _, differ := compare.First(true1, true2); differ {
		m.odd[h.codec] = struct{}{}
		return nil
	}
	key := Key{true1.GetNamespace(), true1.GetName()}
	m.mu.Lock()
	defer m.mu.Unlock()
	return &damage{
		of: h, stream: h.source.streamOf(key), key: key, Difference: diff, readers: h.readers,
		secret: h.source.gvr.Resource == "secrets" || true1.GetObjectKind().GroupVersionKind().Kind == "Secret",
	}
}

// decode makes the object anew.
func (h *handout) decode() (Object, error) {
	scratch := borrow()
	defer scratch.giveBack()
	raw, err := h.v.Append(scratch.b[:0])
	if err != nil {
		return nil, err
	}
	scratch.b = raw
	obj, _, err := h.codec.read(nil, h.v.Format(), raw)
	return obj, err
}

// streamOf is the stream that has an object.
func (s *Source) streamOf(k Key) *stream {
	for _, st := range s.reaching(k.Namespace) {
		if st.store.Get(store.Key(k)) != nil {
			return st
		}
	}
	return cmp.Or(append(slices.Clone(s.reaching(k.Namespace)), s.streams[0])...)
}

// err describes the damage without any value.
func (d *damage) err() error {
	return errors.New("a shared " + d.what() + " was changed at " + d.Path + had(d.readers))
}

func (d *damage) what() string { return fmt.Sprintf("%T", d.of.obj) }

func had(readers []string) string {
	if len(readers) == 0 {
		return ""
	}
	return "; " + strings.Join(readers, ", ") + " had it"
}

// maxReported bounds the other objects in a report.
const maxReported = 10

// report describes objects that were damaged, of one source, for the programmer.
func report(all []*damage) string {
	first := all[0]
	var b strings.Builder
	fmt.Fprintf(&b, "informer: a shared object was changed: %s %s (%s): %s", first.what(), first.key, first.stream.id.Resource.GroupResource(), first.Path)
	if !first.secret {
		fmt.Fprintf(&b, " was %s and is %s", first.Want, first.Got)
	}
	b.WriteString(had(first.readers))
	rest := all[1:]
	slices.SortFunc(rest, func(a, b *damage) int { return cmp.Compare(a.key.String(), b.key.String()) })
	for i, d := range rest {
		if i == maxReported {
			fmt.Fprintf(&b, "\n\tand %d more", len(rest)-i)
			break
		}
		fmt.Fprintf(&b, "\n\talso changed: %s %s: %s%s", d.what(), d.key, d.Path, had(d.readers))
	}
	b.WriteString("\n\tObjects of Informer.Shared, and those that an index's function gets, are read-only and share parts: change a DeepCopy, or what a view that is not shared returns.")
	return b.String()
}

// repairing is what a source needs after damage.
type repairing struct {
	rounds  int       // of which each lets go of all decoded objects
	index   bool      // its indexes are to be computed anew
	indexed time.Time // when they were
}

// indexEvery bounds how often indexes are computed anew.
const indexEvery = time.Minute

// repairSoon has a source decode its objects anew. A second time, a moment later, it is rid of what was being decoded the
// first time, out of damaged parts.
func (m *mutations) repairSoon(s *Source) {
	r := m.repair[s]
	if r == nil {
		r = &repairing{}
		m.repair[s] = r
	}
	r.rounds, r.index = 2, true
}

// repairs does what is due.
func (m *mutations) repairs() {
	for s, r := range m.repair {
		switch {
		case s.isClosed():
			delete(m.repair, s)
		case r.rounds > 0:
			r.rounds--
			s.undamage()
		case r.index && time.Since(r.indexed) >= indexEvery:
			r.index, r.indexed = false, time.Now()
			s.reindex()
		case time.Since(r.indexed) >= indexEvery:
			delete(m.repair, s)
		}
	}
}

// undamage forgets all decoded objects and what they share: the bytes are as they were.
func (s *Source) undamage() {
	s.parts.Clear()
	for _, st := range s.streams {
		for _, item := range st.store.Snapshot("") {
			s.hot.Forget(item.V)
		}
	}
	s.hot.ForgetUnpinned()
}

// reindex computes the indexes anew: some objects may have been decoded with damaged parts.
func (s *Source) reindex() {
	for slot, ix := range s.indexes() {
		if ix == nil {
			continue
		}
		for _, st := range s.streams {
			for _, item := range st.store.Snapshot("") {
				if s.isClosed() {
					return
				}
				st.store.SetIndex(slot, item.Key, item.V, st.indexed(ix, item))
			}
		}
	}
}
