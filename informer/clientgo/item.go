package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	plans "github.com/tattler-dev/tattler/informer/internal/decode"
)

// item is one version of an object, packed or decoded. It is immutable except for its statistics.
type item struct {
	v           *compact.Version // nil: obj is stored instead
	obj         any
	form        *form            // of v, or of the bytes from which obj was decoded
	weight      int64            // heap size of the decoded object, estimated, in bytes
	kept        bool             // obj is kept because it is read often: it could be packed
	from        *compact.Version // kept: what obj was decoded from, if encoding obj would change it
	used        atomic.Bool      // kept: it was read since the last call of age
	cost        atomic.Int64     // its size when last decoded; 0: not known
	reads       atomic.Uint32    // recent decodes for readers
	undecodable atomic.Bool      // v could not be decoded, and was counted
	gone        atomic.Bool      // it is no longer stored: its decoded object must not be cached
}

// form holds what an item's bytes do not contain.
type form struct {
	codec *codec
	kind  schema.GroupVersionKind // to set on decoded objects; empty: none
	// undecodable, if set, means that the bytes are the server's, so decoding may fail. It counts the failures.
	undecodable *undecodableLog
}

// undecodableLog counts and logs the versions of objects that the server sent and the Go type cannot hold, each once.
type undecodableLog struct {
	n        atomic.Uint64
	informer *sharedInformer

	mu         sync.Mutex
	lastLogged time.Time // time of the last log line
}

// logUndecodableEvery is the shortest interval between log lines of an informer: there may be as many failures as
// objects.
const logUndecodableEvery = time.Minute

func (m *undecodableLog) add(err error) {
	n := m.n.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.lastLogged.IsZero() && now.Sub(m.lastLogged) < logUndecodableEvery {
		return
	}
	m.lastLogged = now
	utilruntime.HandleErrorWithContext(context.Background(), err, "Unable to decode an object", "informer", m.informer.title(), "objectsSoFar", n)
}

// held returns an item that keeps the object itself.
func held(obj any) *item { return &item{obj: obj, weight: weigh(obj)} }

// read records a read of a kept object.
func (it *item) read() {
	if it.kept && !it.used.Load() {
		it.used.Store(true)
	}
}

// heap estimates the heap size of the decoded object without shared parts, in bytes.
func (it *item) heap() int64 {
	if c := it.cost.Load(); c > 0 {
		return c
	}
	return it.weight
}

// size returns the memory of the stored item, without dictionaries, in bytes.
func (it *item) size() int64 {
	const own = int64(unsafe.Sizeof(item{}))
	switch {
	case it == nil:
		return 0
	case it.v == nil:
		return own + it.weight
	}
	return own + int64(it.v.Size())
}

// version returns the object's resource version. It returns false for an object without metadata.
func (it *item) version() (string, bool) {
	if it.v != nil {
		return it.v.RV(), true
	}
	return versionOf(it.obj)
}

func versionOf(obj any) (string, bool) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}

func (it *item) uid() string {
	if it.v != nil {
		return it.v.UID()
	}
	if m, err := meta.Accessor(it.obj); err == nil {
		return string(m.GetUID())
	}
	return ""
}

func identityOf(obj any) (uid, version string) {
	if m, err := meta.Accessor(obj); err == nil {
		return string(m.GetUID()), m.GetResourceVersion()
	}
	return "", ""
}

// decode returns the object, decoding it if it is packed. It returns nil if the server's bytes are undecodable. Bytes
// from our own codec always decode; anything else is a bug, and it panics.
func (it *item) decode() any {
	switch {
	case it.v == nil:
		return it.obj
	case it.undecodable.Load():
		return nil
	}
	obj, err := it.tryDecode()
	switch {
	case err == nil:
		return obj
	case it.form.undecodable != nil:
		if !it.undecodable.Swap(true) {
			it.form.undecodable.add(err)
		}
		return nil
	}
	panic(fmt.Errorf("decode stored %v: %w", it.form.codec.typ, err))
}

func (it *item) tryDecode() (any, error) {
	b := borrow()
	defer giveBack(b)
	raw, err := it.v.Append(*b)
	if err != nil {
		return nil, err
	}
	*b = raw
	obj, size, err := it.form.codec.shared(raw)
	if err != nil {
		return nil, err
	}
	it.cost.Store(size)
	setKind(obj, it.form.kind)
	return obj, nil
}

// decodeNear is decode for an item of which another version, near, is already decoded: the result shares its
// unchanged parts. Both other and near may be nil.
func (it *item) decodeNear(other *item, near any) any {
	if near == nil || other == nil || !it.follows(other) {
		return it.decode()
	}
	b, base := borrow(), borrow()
	defer giveBack(b)
	defer giveBack(base)
	raw, err := it.v.Append(*b)
	if err != nil {
		return it.decode()
	}
	*b = raw
	was, err := other.v.Append(*base)
	if err != nil {
		return it.decode()
	}
	*base = was
	obj, size, ok := it.form.codec.near(raw, plans.Base{Raw: was, Obj: near})
	if !ok {
		return it.decode()
	}
	it.cost.Store(max(size, other.heap())) // the shared parts may outlive the other version
	setKind(obj, it.form.kind)
	return obj
}

// follows reports whether an item can be decoded from another version. Both must be packed in the same form from the
// server's bytes: quantities decoded by a program's client may lack their cached text, which String would then write
// into shared parts.
func (it *item) follows(other *item) bool {
	return it.v != nil && other.v != nil && it.form == other.form && it.form.undecodable != nil && it.form.codec.near != nil
}

// packing makes the items of one informer.
type packing struct {
	live   bool // nothing is packed (storage Live)
	packer compact.Packer
	parts  *plans.Table // parts shared by decoded objects
	// unpacked counts the versions of objects that are kept decoded because packing would change them.
	unpacked atomic.Uint64

	mu     sync.Mutex
	codecs map[reflect.Type]*codec // nil for types without one
	forms  map[form]*form
}

func newPacking(live bool) *packing {
	limit := int64(minPartsLimit)
	if live {
		limit = partsLimit
	}
	return &packing{
		live:   live,
		parts:  plans.NewTable(limit),
		packer: compact.Packer{Router: compact.NewRouter(compact.Options{})},
		codecs: map[reflect.Type]*codec{},
		forms:  map[form]*form{},
	}
}

// item packs an object, unless that would change it.
func (p *packing) item(obj any) *item {
	if p.live {
		return held(obj)
	}
	b := borrow()
	defer giveBack(b)
	f, err := p.encode(b, obj)
	if err != nil {
		p.unpacked.Add(1)
		return held(obj)
	}
	uid, version := identityOf(obj)
	return &item{v: p.packer.Pack(f.codec.format, uid, version, *b), form: f, weight: f.codec.weigh(len(*b))}
}

// encode sets b to the object's bytes and returns their form.
func (p *packing) encode(b *[]byte, obj any) (*form, error) {
	c := p.codec(reflect.TypeOf(obj))
	if c == nil {
		return nil, errNoCodec
	}
	raw, err := encode(c, (*b)[:0], obj)
	if err != nil {
		return nil, err
	}
	*b = raw
	f := form{codec: c}
	if c.needsKind {
		f.kind = kindOf(obj)
	}
	return p.form(f), nil
}

// Limits of an informer's table of shared parts, in bytes: partsLimit if objects stay decoded, minPartsLimit if they
// rarely do.
const (
	partsLimit    = 64 << 20
	minPartsLimit = 8 << 20
)

// keep returns the item of an object that stays decoded. It encodes and decodes the object to share its parts, so the
// program cannot write to them through the given object.
func (p *packing) keep(obj any) *item {
	b := borrow()
	defer giveBack(b)
	f, err := p.encode(b, obj)
	if err != nil {
		if !p.live {
			p.unpacked.Add(1)
		}
		return held(obj)
	}
	it := &item{obj: obj, form: f, weight: f.codec.weigh(len(*b)), kept: !p.live}
	if f.codec.share == nil {
		return it
	}
	if shared, size, err := f.codec.shared(*b); err == nil {
		setKind(shared, f.kind)
		it.obj, it.weight = shared, size
	}
	return it
}

// encode calls the codec's encode. It recovers a panic: the type's methods may be the program's, and client-go would
// never call them.
func encode(c *codec, dst []byte, obj any) (raw []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			raw, err = dst, fmt.Errorf("encode object: %v", r)
		}
	}()
	return c.encode(dst, obj)
}

func (p *packing) codec(t reflect.Type) *codec {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.codecs[t]
	if !ok {
		c = newCodec(t, p.parts)
		p.codecs[t] = c
	}
	return c
}

// form returns the stored form equal to f. There are few forms.
func (p *packing) form(f form) *form {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.forms[f]; have != nil {
		return have
	}
	p.forms[f] = &f
	return &f
}

// weakRef is a weak reference to a decoded object.
type weakRef struct {
	p   weak.Pointer[byte]
	typ reflect.Type // of the struct; nil: none
}

func weakRefOf(obj any) weakRef {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return weakRef{}
	}
	return weakRef{weak.Make((*byte)(v.UnsafePointer())), v.Type().Elem()}
}

// weakObject is a weak reference that can be set concurrently. It saves decoding an object again while others still
// hold it.
type weakObject struct{ at atomic.Pointer[weakRef] }

func (s *weakObject) set(obj any) {
	if g := weakRefOf(obj); g.typ != nil {
		s.at.Store(&g)
	}
}

// get returns the object, or nil.
func (s *weakObject) get() any {
	if g := s.at.Load(); g != nil {
		return g.get()
	}
	return nil
}

// get returns the object, or nil.
func (g weakRef) get() any {
	if g.typ == nil {
		return nil
	}
	p := g.p.Value()
	if p == nil {
		return nil
	}
	return reflect.NewAt(g.typ, unsafe.Pointer(p)).Interface()
}
