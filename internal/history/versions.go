package history

import (
	"bytes"
	"math/rand/v2"
	"sync"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Only what has changed is decoded. A Builder keeps the last version of some objects decoded, within a bound. It
// decodes the next version from it (jsonmap.Version), and both share every object and array with the same text. A
// kept version is used only if its text equals the journal's. Without one, root fields with the same text are
// skipped, unless the sink needs whole objects: to include, show or narrate them, or because its filter reads them
// (deliver.Options.Whole). The two kinds of sinks share nothing with each other.

// versions caches objects, decoded, as the last changes left them, because that is the state before their next change.
// The zero value caches nothing. It is safe for concurrent use.
type versions struct {
	limit int // bytes

	mu   sync.Mutex
	size int
	of   map[object]*jsonmap.Version
}

// object identifies an object. Two may have the same identity: the text of a version decides.
type object struct {
	kind                 journal.Kind
	namespace, name, uid string
}

func objectOf(e *journal.Entry) object { return object{e.Kind, e.Namespace, e.Name, e.UID} }

// admit: when the cache is full, one in so many objects replaces another. If all did, in turn, each would be evicted before
// it is needed again.
const admit = 8

// pair decodes the versions before and after an update. It returns nil if nothing is cached, or if the objects need the
// general decoder. The caller passes after to put once it has finished writing to it; before may be shared.
func (vs *versions) pair(o object, before, after []byte) (b, a *jsonmap.Version) {
	if before == nil || after == nil || vs.limit == 0 {
		return nil, nil
	}
	vs.mu.Lock()
	b = vs.of[o]
	wanted := b != nil || vs.size < vs.limit || rand.IntN(admit) == 0
	vs.mu.Unlock()
	if !wanted {
		return nil, nil
	}
	if b == nil || !bytes.Equal(b.Raw(), before) {
		b = jsonmap.DecodeVersion(before)
	}
	if b == nil {
		return nil, nil
	}
	return b, b.Next(after)
}

// put caches a version.
func (vs *versions) put(o object, v *jsonmap.Version) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.drop(o)
	for other := range vs.of { // in any order
		if vs.size+v.Size() <= vs.limit {
			break
		}
		vs.drop(other)
	}
	if vs.size+v.Size() > vs.limit {
		return
	}
	if vs.of == nil {
		vs.of = map[object]*jsonmap.Version{}
	}
	vs.of[o] = v
	vs.size += v.Size()
}

func (vs *versions) drop(o object) {
	if v := vs.of[o]; v != nil {
		vs.size -= v.Size()
		delete(vs.of, o)
	}
}

// KeepVersions lets Make cache objects as updates left them, in at most limit bytes, for callers that read oldest first. It
// must be called before Make.
func (t *Builder) KeepVersions(limit int) { t.versions.limit = limit }
