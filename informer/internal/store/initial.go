package store

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer/internal/compact"
)

// initial is the part of one store's initial state that a consumer has not taken yet. It is delivered in the order of
// the keys, so the key of a change shows whether the consumer has the object already. Sorting a large namespace takes
// long, so the consumer sorts when it gets there, while the writer may push.
type initial struct {
	spaces []initialSpace // not yet delivered; the first one is in progress
	sorted int            // how many of the first ones are sorted
	left   int            // number of objects not yet delivered
	at     time.Time
}

type initialSpace struct {
	name    string
	objects []initialObject
}

type initialObject struct {
	name string
	v    *compact.Version
}

// perInitial is the memory of an object here, in bytes, without its version, which the store may still hold.
const perInitial = 24

// newInitial copies the table.
func newInitial(t *table, at time.Time) *initial {
	in := &initial{spaces: make([]initialSpace, 0, len(t.spaces)), left: t.objects, at: at}
	all := make([]initialObject, 0, t.objects)
	for ns, sp := range t.spaces {
		first := len(all)
		sp.each(func(o *object) { all = append(all, initialObject{o.name, o.v}) })
		in.spaces = append(in.spaces, initialSpace{ns, all[first:len(all):len(all)]})
	}
	slices.SortFunc(in.spaces, func(a, b initialSpace) int { return cmp.Compare(a.name, b.name) })
	return in
}

// sort sorts at least a batch of the next objects, unless they are sorted already. The caller holds mu; sort releases
// it meanwhile, since push does not access the objects.
func (in *initial) sort(batch int, mu *sync.Mutex) {
	if in.sorted > 0 {
		return
	}
	next := in.spaces
	mu.Unlock()
	sorted := 0
	for n := 0; n < batch && sorted < len(next); sorted++ {
		objects := next[sorted].objects
		slices.SortFunc(objects, func(a, b initialObject) int { return cmp.Compare(a.name, b.name) })
		n += len(objects)
	}
	mu.Lock()
	in.sorted = sorted
}

// hasPending reports whether an object that existed when the consumer joined is still to be delivered.
func (in *initial) hasPending(k Key) bool {
	if in == nil || len(in.spaces) == 0 {
		return false
	}
	sp := &in.spaces[0]
	if k.Namespace != sp.name || in.sorted == 0 {
		return k.Namespace >= sp.name
	}
	return k.Name >= sp.objects[0].name
}

// next removes the next object. Ok is false after the last sorted one.
func (in *initial) next() (k Key, v *compact.Version, ok bool) {
	if in.sorted == 0 {
		return Key{}, nil, false
	}
	sp := &in.spaces[0]
	o := sp.objects[0]
	k, v = Key{sp.name, o.name}, o.v
	sp.objects[0] = initialObject{}
	sp.objects = sp.objects[1:]
	in.left--
	if len(sp.objects) == 0 {
		in.spaces[0] = initialSpace{}
		in.spaces = in.spaces[1:]
		in.sorted--
	}
	return k, v, true
}

// held returns the memory of the initial state, without versions.
func (in *initial) held() int64 { return int64(perInitial * in.left) }
