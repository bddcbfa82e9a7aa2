package history

import (
	"bytes"
	"math/rand/v2"
	"sync"

	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/jsonmap"
)

// Only what has changed is decoded. A Teller keeps the last version of some objects decoded, within a bound. It
// decodes the next version from it (jsonmap.Version), and both share every object and array with the same text. A
// kept version is used only if its text equals the journal's. Without one, root fields with the same text are
// skipped, unless the sink needs whole objects: to include, show or narrate them, or because its filter reads them
// (deliver.Options.Whole). The two kinds of sinks share nothing with each other.

// versions are the objects as the changes made last left them: what was before the next change of one was decoded
// already. The zero value keeps none. It is safe for concurrent use.
type versions struct {
	limit int // bytes

	mu   sync.Mutex
	size int
	of   map[object]*jsonmap.Version
}

// object names an object. Two may have the same name: the text of a version tells whether it is the right one.
type object struct {
	kind                 journal.Kind
	namespace, name, uid string
}

func objectOf(e *journal.Entry) object { return object{e.Kind, e.Namespace, e.Name, e.UID} }

// admit is one in how many objects replaces another where there is no room. All of them would, in turn, leave before
// they come again.
const admit = 8

// pair decodes what was before and after an update. It returns nil where nothing is kept, or the objects need the
// general decoder. The caller puts after once it has written to it; before may be shared.
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

// put keeps a version.
func (vs *versions) put(o object, v *jsonmap.Version) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.drop(o)
	for other := range vs.of { // in no order
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

// KeepVersions has Make keep the objects as updates left them, in so many bytes at most, for who reads the oldest
// change first. It is called before Make.
func (t *Teller) KeepVersions(limit int) { t.versions.limit = limit }
