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

// intake is the store that client-go's Reflector writes into. It replaces client-go's queue, but queues nothing:
// processing an object takes no longer than queueing it.
type intake struct {
	informer  *sharedInformer
	ctx       context.Context
	transform cache.TransformFunc
	shares    bool // the results of transforms stay decoded and share their equal parts
	closing   sync.Once
	closed    chan struct{}
}

var (
	_ cache.Queue                  = (*intake)(nil)
	_ cache.TransformingStore      = (*intake)(nil)
	_ cache.ReflectorBookmarkStore = (*intake)(nil)
)

// The result of a transform decides what happens to an object:
//
//	nil       The object is left out: not stored, or deleted if it was stored (as if missing from a list), and
//	          counted. client-go does not sync in this case.
//	error     For an object of a list, the whole list fails and the Reflector lists again. So it does with
//	          client-go, whose streaming lists however continue without the object. For an object of a watch, as
//	          with client-go, the Reflector logs the error, and the last known state stays until the next
//	          version; a deletion is applied.
//	panic     Propagates into the Reflector, as with client-go. If it does not end the process, the Reflector
//	          lists again.

// packedObject is an object of a streaming list, packed on arrival, so that the list is never held decoded. Decoding
// the objects again for handlers costs no more than the garbage collector would need to mark them all.
type packedObject struct {
	key  string
	item *item // nil: the transform returned nil
	err  error // the transform's error; if the Reflector saw it, it would leave the object out
}

// Transformer implements cache.TransformingStore. The Reflector calls it with each object of a streaming list, and
// passes the results to Replace.
func (in *intake) Transformer() cache.TransformFunc {
	if consistencydetector.IsDataConsistencyDetectionForWatchListEnabled() { // it compares objects
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

// receive returns the change to an object's new state. A change without an item means that the object is left out.
func (in *intake) receive(obj any) (change, error) {
	if p, ok := obj.(packedObject); ok {
		return change{key: p.key, item: p.item}, p.err
	}
	if isNil(obj) { // from a streaming list that is being compared
		return change{}, nil
	}
	before, err := keyOf(obj)
	if err != nil { // an object that cannot be stored is not transformed
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

// isNil reports whether obj is nil or a nil pointer.
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
			in.informer.deleteMissed(key) // the last known state is the final one
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

// Pop implements cache.Queue. It waits for Close, since there is never anything to pop.
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
