package clientgo

import (
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rawObject is an object on its way from the server to the cache, in the shape that client-go's Reflector expects. It
// has only the metadata that the Reflector reads.
type rawObject struct {
	metav1.Object // nil

	key, version string
	item         *item
	obj          any           // decoded for a transform; item is then nil
	made         *packedObject // from a list, the transform's result; item and obj are then nil
	undecodable  bool          // the Go type cannot hold it: treat it as absent
	end          bool          // the bookmark that ends a list
}

// GetNamespace implements metav1.Object.
func (o *rawObject) GetNamespace() string {
	namespace, _, _ := cache.SplitMetaNamespaceKey(o.key)
	return namespace
}

// GetName implements metav1.Object.
func (o *rawObject) GetName() string {
	_, name, _ := cache.SplitMetaNamespaceKey(o.key)
	return name
}

// GetResourceVersion implements metav1.Object.
func (o *rawObject) GetResourceVersion() string { return o.version }

// GetAnnotations implements metav1.Object.
func (o *rawObject) GetAnnotations() map[string]string {
	if o.end {
		return map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return nil
}

// GetObjectKind implements runtime.Object.
func (o *rawObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. The object is read-only.
func (o *rawObject) DeepCopyObject() runtime.Object { return o }

// readPage cuts a list into objects.
func (r *rawSource) readPage(body io.Reader, f wire.Format) (page, error) {
	from := &faulty{Reader: body}
	l := wire.NewList(f, from)
	items := []runtime.Object{}
	for {
		o, err := l.Next()
		switch {
		case errors.Is(err, io.EOF):
			apiVersion, kind := l.Kind()
			return page{items: items, meta: l.Meta(), apiVersion: apiVersion, kind: kind}, nil
		case from.err != nil:
			return page{}, from.err
		case err == nil:
			items = append(items, r.transformed(r.receive(o, r.listed, true)))
		case errors.As(err, new(*wire.ObjectError)):
			r.undecodable.add(err)
			if o.Name != "" {
				items = append(items, &rawObject{key: rawKey(o.Meta), version: o.ResourceVersion, undecodable: true})
			}
		default:
			return page{}, fmt.Errorf("read list: %w", err)
		}
	}
}

// transformed packs the transform's result for an object of a list, so that the list is never held decoded.
func (r *rawSource) transformed(o *rawObject) *rawObject {
	if o.obj != nil {
		c, err := r.in.receive(o.obj)
		o.obj, o.made = nil, &packedObject{c.key, c.item, err}
	}
	return o
}

// faulty records a connection's error.
type faulty struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (f *faulty) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// receive packs an object, or decodes it if that is needed at once. In a list, an object that is already stored is
// not packed again: within one server's history, UID and version identify its content.
func (r *rawSource) receive(o wire.Object, k kinds, listed bool) *rawObject {
	raw := &rawObject{key: rawKey(o.Meta), version: o.ResourceVersion}
	f := r.forms.of(o.Format, k, o.TypeFromList)
	t := r.informer.table
	switch {
	case f == nil || o.Raw == nil:
		raw.undecodable = true
		r.undecodable.add(fmt.Errorf("read %s: a %T cannot be read from %v", raw.key, r.informer.example, o.Format))
		return raw
	case r.transforms:
		obj, err := f.codec.decode(o.Raw) // not shared: the transform may change it
		if err != nil {
			raw.undecodable = true
			r.undecodable.add(fmt.Errorf("decode %s: %w", raw.key, err))
			return raw
		}
		setKind(obj, f.kind)
		raw.obj = obj
		return raw
	case listed:
		if raw.item = r.same(raw.key, o, f); raw.item != nil {
			return raw
		}
	}
	live := t.packing.live
	if live || t.staysDecoded(raw.key) {
		obj, size, err := f.codec.shared(o.Raw)
		switch {
		case err == nil:
			setKind(obj, f.kind)
			raw.item = &item{obj: obj, form: f, weight: size, kept: !live}
			if !live && !t.packing.exact(obj) {
				raw.item.keepFrom(t.packing.packer.Pack(o.Format, o.UID, o.ResourceVersion, o.Raw))
			}
			return raw
		case live:
			raw.undecodable = true
			r.undecodable.add(fmt.Errorf("decode %s: %w", raw.key, err))
			return raw
		}
	}
	raw.item = &item{v: t.packing.packer.Pack(o.Format, o.UID, o.ResourceVersion, o.Raw), form: f, weight: f.codec.weigh(len(o.Raw))}
	return raw
}

// same returns the stored item if it has the object's UID, version and form, else nil.
func (r *rawSource) same(key string, o wire.Object, f *form) *item {
	if o.UID == "" || o.ResourceVersion == "" {
		return nil
	}
	it := r.informer.table.item(key)
	if it == nil || it.form != f || it.uid() != o.UID {
		return nil
	}
	if v, _ := it.version(); v != o.ResourceVersion {
		return nil
	}
	return it
}

// rawDecoder cuts a watch into events.
type rawDecoder struct {
	*rawSource
	body    io.ReadCloser
	frames  wire.Watch
	initial bool // a streaming list is in progress
}

// Decode returns the next event. It fails if the connection does or if an event is malformed.
func (d *rawDecoder) Decode() (watch.EventType, runtime.Object, error) {
	ev, err := d.frames.Next()
	if err != nil {
		return "", nil, err
	}
	switch ev.Type {
	case wire.Error:
		st, err := wire.DecodeStatus(ev.Format, ev.Raw)
		if err != nil {
			return "", nil, fmt.Errorf("read error event: %w", err)
		}
		return watch.Error, st, nil
	case wire.Bookmark:
		d.initial = d.initial && !ev.InitialEnd
		return watch.Bookmark, &rawObject{version: ev.ResourceVersion, end: ev.InitialEnd}, nil
	}
	return watch.EventType(ev.Type), d.receive(ev.Object, d.watched, d.initial), nil
}

// Close ends a waiting Decode.
func (d *rawDecoder) Close() { _ = d.body.Close() }

func rawKey(m wire.Meta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}
