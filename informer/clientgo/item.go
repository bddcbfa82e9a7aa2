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

// item is one state of one object: packed, or as it is. It is immutable, but for what was found out.
type item struct {
	v      *compact.Version // nil: obj is what is kept
	obj    any
	form   *form            // of v, or of what obj was decoded from
	weight int64            // of the object when decoded, estimated, in bytes of heap
	kept   bool             // obj is kept because it is read often: it could be packed
	from   *compact.Version // kept: what obj was decoded from, if encoding obj would change it
	used   atomic.Bool      // kept: it was read since age asked
	cost   atomic.Int64     // what it weighed when it was decoded last; 0: not known
	reads  atomic.Uint32    // how often it was decoded for readers, lately
	misfit atomic.Bool      // v could not be decoded, and was counted
	gone   atomic.Bool      // it was stored, and is not any more: what it is decoded to is not kept
}

// form is what the bytes of an item do not say.
type form struct {
	codec *codec
	kind  schema.GroupVersionKind // to be set on what is decoded; empty: none
	// misfits, if set, says that the bytes are the server's: whether the type can hold them shows when
	// they are decoded. It counts those that it cannot hold.
	misfits *misfits
}

// misfits counts what the server sent and a type cannot hold: each version of an object once.
type misfits struct {
	n        atomic.Uint64
	informer *sharedInformer

	mu   sync.Mutex
	said time.Time // when it was logged last
}

// sayMisfits is how often misfits of an informer are logged: there may be as many as objects.
const sayMisfits = time.Minute

func (m *misfits) add(err error) {
	n := m.n.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.said.IsZero() && now.Sub(m.said) < sayMisfits {
		return
	}
	m.said = now
	utilruntime.HandleErrorWithContext(context.Background(), err, "Unable to decode an object", "informer", m.informer.title(), "objectsSoFar", n)
}

// held is an item that keeps the object itself.
func held(obj any) *item { return &item{obj: obj, weight: weigh(obj)} }

// read notes that somebody reads what is kept.
func (it *item) read() {
	if it.kept && !it.used.Load() {
		it.used.Store(true)
	}
}

// heap is what the object costs when it is decoded, without what it shares, estimated, in bytes.
func (it *item) heap() int64 {
	if c := it.cost.Load(); c > 0 {
		return c
	}
	return it.weight
}

// size is what the item costs at rest, without dictionaries, in bytes.
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

// version is the object's resource version; false is returned for what has no metadata.
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

// decode makes the object anew. Nil is one that the server has and the type cannot hold; anything else
// that does not decode was not made by the codec.
func (it *item) decode() any {
	switch {
	case it.v == nil:
		return it.obj
	case it.misfit.Load():
		return nil
	}
	obj, err := it.tryDecode()
	switch {
	case err == nil:
		return obj
	case it.form.misfits != nil:
		if !it.misfit.Swap(true) {
			it.form.misfits.add(err)
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

// decodeNear is decode for an item of which another version is decoded, as near: the two share what is the same in them.
// Both may be nil.
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
	it.cost.Store(max(size, other.heap())) // what was taken over may outlive the other version
	setKind(obj, it.form.kind)
	return obj
}

// follows reports whether an item can be decoded from another version: both are packed in the same form, and decoded by
// nothing but their codec: quantities that a program's client decoded may lack the text that String would store in them.
func (it *item) follows(other *item) bool {
	return it.v != nil && other.v != nil && it.form == other.form && it.form.misfits != nil && it.form.codec.near != nil
}

// packing makes the items of one informer.
type packing struct {
	live   bool // nothing is packed
	packer compact.Packer
	parts  *plans.Table // what decoded objects share
	// unpacked counts the versions of objects that are kept as they are since they would come back changed.
	unpacked atomic.Uint64

	mu     sync.Mutex
	codecs map[reflect.Type]*codec // nil where the type has none
	forms  map[form]*form
}

func newPacking(live bool) *packing {
	limit := int64(fewParts)
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

// item packs an object, unless it would come back changed.
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

// encode sets b to the bytes that come back as the object, and returns the form that they have.
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
	if c.kinded {
		f.kind = kindOf(obj)
	}
	return p.form(f), nil
}

// The parts that an informer's table holds are bounded, in bytes, by partsLimit where objects stay decoded, and by fewParts
// where they seldom do.
const (
	partsLimit = 64 << 20
	fewParts   = 8 << 20
)

// keep makes the item of an object that stays decoded. It is encoded and decoded again, with shared parts, so
// whoever has the given object cannot write to those parts through it.
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

// encode is the codec's, where a type's own methods may panic that client-go would never call.
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

// form returns the one of its like: there are few.
func (p *packing) form(f form) *form {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.forms[f]; have != nil {
		return have
	}
	p.forms[f] = &f
	return &f
}

// glimpse is a decoded object for as long as somebody else keeps it.
type glimpse struct {
	p   weak.Pointer[byte]
	typ reflect.Type // of the struct; nil: none
}

func glimpseOf(obj any) glimpse {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return glimpse{}
	}
	return glimpse{weak.Make((*byte)(v.UnsafePointer())), v.Type().Elem()}
}

// sight is where an object was seen last: whoever comes soon after finds it, and need not decode it again.
type sight struct{ at atomic.Pointer[glimpse] }

func (s *sight) set(obj any) {
	if g := glimpseOf(obj); g.typ != nil {
		s.at.Store(&g)
	}
}

// get returns the object, or nil.
func (s *sight) get() any {
	if g := s.at.Load(); g != nil {
		return g.get()
	}
	return nil
}

// get returns the object, or nil.
func (g glimpse) get() any {
	if g.typ == nil {
		return nil
	}
	p := g.p.Value()
	if p == nil {
		return nil
	}
	return reflect.NewAt(g.typ, unsafe.Pointer(p)).Interface()
}
