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

// damage is a shared object that was modified.
type damage struct {
	of     *handout
	stream *stream
	key    Key
	secret bool // its values are not shown
	compare.Difference
	readers []string
}

// check compares an object with a fresh decode of its bytes; it returns nil if they are equal.
func (m *mutations) check(h *handout) (d *damage) {
	defer func() {
		if recover() != nil { // it is being modified right now; the next check will see the result
			d = nil
		}
	}()
	if _, odd := m.nondeterministic[h.codec]; odd {
		return nil
	}
	decoded, err := h.decode()
	if err != nil {
		return nil
	}
	diff, differ := compare.First(decoded, h.obj)
	if !differ {
		return nil
	}
	again, err := h.decode()
	if err != nil {
		return nil
	}
	if _, differ := compare.First(decoded, again); differ {
		m.nondeterministic[h.codec] = struct{}{}
		return nil
	}
	key := Key{decoded.GetNamespace(), decoded.GetName()}
	m.mu.Lock()
	defer m.mu.Unlock()
	return &damage{
		of: h, stream: h.source.streamOf(key), key: key, Difference: diff, readers: h.readers,
		secret: h.source.gvr.Resource == "secrets" || decoded.GetObjectKind().GroupVersionKind().Kind == "Secret",
	}
}

// decode decodes the object again.
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

// streamOf returns the stream that holds an object.
func (s *Source) streamOf(k Key) *stream {
	for _, st := range s.streamsOf(k.Namespace) {
		if st.store.Get(store.Key(k)) != nil {
			return st
		}
	}
	return cmp.Or(append(slices.Clone(s.streamsOf(k.Namespace)), s.streams[0])...)
}

// err describes the damage without values.
func (d *damage) err() error {
	return errors.New("a shared " + d.typeName() + " was modified at " + d.Path + readersText(d.readers))
}

func (d *damage) typeName() string { return fmt.Sprintf("%T", d.of.obj) }

func readersText(readers []string) string {
	if len(readers) == 0 {
		return ""
	}
	return "; read by " + strings.Join(readers, ", ")
}

// maxReported limits the other objects in a report.
const maxReported = 10

// report describes damaged objects of one source, for the programmer.
func report(all []*damage) string {
	first := all[0]
	var b strings.Builder
	fmt.Fprintf(&b, "informer: a shared object was modified: %s %s (%s): %s", first.typeName(), first.key, first.stream.id.Resource.GroupResource(), first.Path)
	if !first.secret {
		fmt.Fprintf(&b, " was %s and is %s", first.Want, first.Got)
	}
	b.WriteString(readersText(first.readers))
	rest := all[1:]
	slices.SortFunc(rest, func(a, b *damage) int { return cmp.Compare(a.key.String(), b.key.String()) })
	for i, d := range rest {
		if i == maxReported {
			fmt.Fprintf(&b, "\n\tand %d more", len(rest)-i)
			break
		}
		fmt.Fprintf(&b, "\n\talso modified: %s %s: %s%s", d.typeName(), d.key, d.Path, readersText(d.readers))
	}
	b.WriteString("\n\tObjects from Informer.Shared, and those passed to index functions, are read-only and share parts: modify a DeepCopy, or read from a view that is not shared.")
	return b.String()
}

// repairing is a source's pending repair after damage.
type repairing struct {
	rounds  int       // remaining rounds, each of which drops all decoded objects
	index   bool      // the indexes must be recomputed
	indexed time.Time // when they last were
}

// indexEvery limits how often indexes are recomputed.
const indexEvery = time.Minute

// repairSoon makes a source decode its objects again. A second round, a moment later, drops objects that were being decoded
// during the first from damaged parts.
func (m *mutations) repairSoon(s *Source) {
	r := m.repair[s]
	if r == nil {
		r = &repairing{}
		m.repair[s] = r
	}
	r.rounds, r.index = 2, true
}

// repairs does the repairs that are due.
func (m *mutations) repairs() {
	for s, r := range m.repair {
		switch {
		case s.isClosed():
			delete(m.repair, s)
		case r.rounds > 0:
			r.rounds--
			s.forgetDecoded()
		case r.index && time.Since(r.indexed) >= indexEvery:
			r.index, r.indexed = false, time.Now()
			s.reindex()
		case time.Since(r.indexed) >= indexEvery:
			delete(m.repair, s)
		}
	}
}

// forgetDecoded drops all decoded objects and their shared parts; the bytes are intact.
func (s *Source) forgetDecoded() {
	s.parts.Clear()
	for _, st := range s.streams {
		for _, item := range st.store.Snapshot("") {
			s.hot.Forget(item.V)
		}
	}
	s.hot.ForgetUnpinned()
}

// reindex recomputes the indexes: some objects may have been decoded from damaged parts.
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
