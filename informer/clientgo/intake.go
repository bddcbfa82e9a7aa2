package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"
)

// intake is what client-go's Reflector writes into. It takes the place of client-go's queue, which holds
// objects until somebody processes them: nothing is queued here, since to process an object takes no
// longer than to queue it.
type intake struct {
	informer  *sharedInformer
	ctx       context.Context
	transform cache.TransformFunc
	shares    bool // what a transform returns stays decoded, and shares its equal parts
	closing   sync.Once
	closed    chan struct{}
}

var (
	_ cache.Queue                  = (*intake)(nil)
	_ cache.TransformingStore      = (*intake)(nil)
	_ cache.ReflectorBookmarkStore = (*intake)(nil)
)

// What a transform does decides what becomes of an object:
//
//	nothing   The object is left out: it is not stored, and deleted if it was there (as if a list did not name
//	          it). It is counted. client-go does not sync then.
//	an error  Of a list: the whole list fails, and the Reflector lists again; so it does with client-go, whose
//	          streaming lists go on without the object. Of a watch, as with client-go: the Reflector logs it, and
//	          what was known of the object stays until its next version; but that it is deleted is believed.
//	a panic   goes on into the Reflector, as with client-go: if that does not end the process, it lists again.

// packedObject is an object of a streaming list, packed as it came: the list is never held decoded. That handlers
// have its objects decoded again costs no more than the collector would, which had to mark them all.
type packedObject struct {
	key  string
	item *item // nil: it is left out
	err  error // the error of the transform; the Reflector would leave the object out
}

// Transformer implements cache.TransformingStore: the Reflector calls it with each object of a streaming
// list, and hands what it returns to Replace.
func (in *intake) Transformer() cache.TransformFunc {
	if consistencydetector.IsDataConsistencyDetectionForWatchListEnabled() { // which compares objects
		return in.transform
	}
	return func(obj any) (any, error) {
		c, err := in.receive(obj)
		return packedObject{c.key, c.item, err}, nil
	}
}

func (in *intake) transformed(obj any) (any, error) {
	if in.transform == nil {
		return obj, nil
	}
	return in.transform(obj)
}

// receive is the change that makes an object what it is now; one without an item is of an object that is left
// out.
func (in *intake) receive(obj any) (change, error) {
	if p, ok := obj.(packedObject); ok {
		return change{key: p.key, item: p.item}, p.err
	}
	if isNil(obj) { // of a streaming list, where that is compared
		return change{}, nil
	}
	before, err := keyOf(obj)
	if err != nil { // a transform is not asked for what cannot be stored
		return change{}, err
	}
	if obj, err = in.transformed(obj); err != nil {
		return change{}, fmt.Errorf("transform %s: %w", before, err)
	}
	if isNil(obj) {
		return change{key: before}, nil
	}
	key, err := keyOf(obj)
	if err != nil {
		return change{}, err
	}
	t := in.informer.table
	if in.shares || t.staysDecoded(key) {
		it := t.packing.keep(obj)
		return change{key: key, item: it, obj: it.obj}, nil
	}
	return change{key: key, item: t.packing.item(obj), obj: obj}, nil
}

// none reports whether there is no object.
func isNil(obj any) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Add implements cache.ReflectorStore.
func (in *intake) Add(obj any) error { return in.Update(obj) }

// Update implements cache.ReflectorStore.
func (in *intake) Update(obj any) error {
	c, err := in.receive(obj)
	switch {
	case err != nil:
		return err
	case c.item == nil:
		in.informer.left.Add(1)
		in.informer.deleteMissed(c.key)
	default:
		in.informer.put(c)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (in *intake) Delete(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	if _, ok := obj.(cache.DeletedFinalStateUnknown); !ok {
		if obj, err = in.transformed(obj); err != nil || isNil(obj) {
			in.informer.deleteMissed(key) // what was known of it is its last state
			return err
		}
		if key, err = keyOf(obj); err != nil {
			return err
		}
	}
	in.informer.drop(key, obj)
	return nil
}

// Replace implements cache.ReflectorStore. After an error nothing has changed, and the Reflector lists again.
func (in *intake) Replace(objs []any, version string) error {
	changes := make([]change, 0, len(objs))
	for _, obj := range objs {
		c, err := in.receive(obj)
		if err != nil {
			return fmt.Errorf("replace objects: %w", err)
		}
		if c.item != nil {
			changes = append(changes, c)
		}
	}
	in.informer.left.Add(uint64(len(objs) - len(changes)))
	in.informer.replace(changes, version)
	return nil
}

// Resync implements cache.ReflectorStore.
func (in *intake) Resync() error {
	defer utilruntime.HandleCrashWithContext(in.ctx)
	in.informer.resync()
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (in *intake) Bookmark(version string) error {
	in.informer.bookmark(version)
	return nil
}

// Pop implements cache.Queue: there is never anything to pop.
func (in *intake) Pop(cache.PopProcessFunc) (any, error) {
	<-in.closed
	return nil, cache.ErrFIFOClosed
}

// HasSynced implements cache.Queue.
func (in *intake) HasSynced() bool { return in.informer.HasSynced() }

// HasSyncedChecker implements cache.Queue.
func (in *intake) HasSyncedChecker() cache.DoneChecker { return in.informer.done }

// Close implements cache.Queue.
func (in *intake) Close() { in.closing.Do(func() { close(in.closed) }) }
