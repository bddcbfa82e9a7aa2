package clientgo

import (
	"context"
	"fmt"
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
	closing   sync.Once
	closed    chan struct{}
}

var (
	_ cache.Queue                  = (*intake)(nil)
	_ cache.TransformingStore      = (*intake)(nil)
	_ cache.ReflectorBookmarkStore = (*intake)(nil)
)

// parcel is an object of a streaming list, packed as it came: the list is never held decoded. That handlers
// have its objects decoded again costs no more than the collector would, which had to mark them all.
type parcel struct {
	key  string
	item *item
}

// Transformer implements cache.TransformingStore: the Reflector calls it with each object of a streaming
// list, and hands what it returns to Replace.
func (in *intake) Transformer() cache.TransformFunc {
	if consistencydetector.IsDataConsistencyDetectionForWatchListEnabled() { // which compares objects
		return in.transform
	}
	return func(obj any) (any, error) {
		obj, err := in.transformed(obj)
		if err != nil {
			return nil, err
		}
		key, err := keyOf(obj)
		if err != nil {
			return nil, err
		}
		return parcel{key, in.informer.table.packing.item(obj)}, nil
	}
}

func (in *intake) transformed(obj any) (any, error) {
	if in.transform == nil {
		return obj, nil
	}
	return in.transform(obj)
}

// receive is the change that makes an object what it is now.
func (in *intake) receive(obj any) (change, error) {
	if p, ok := obj.(parcel); ok {
		return change{key: p.key, item: p.item}, nil
	}
	if _, err := keyOf(obj); err != nil { // a transform is not asked for what cannot be stored
		return change{}, err
	}
	obj, err := in.transformed(obj)
	if err != nil {
		return change{}, err
	}
	key, err := keyOf(obj)
	if err != nil {
		return change{}, err
	}
	return change{key: key, item: in.informer.table.packing.item(obj), obj: obj}, nil
}

// Add implements cache.ReflectorStore.
func (in *intake) Add(obj any) error { return in.Update(obj) }

// Update implements cache.ReflectorStore.
func (in *intake) Update(obj any) error {
	defer utilruntime.HandleCrashWithContext(in.ctx)
	c, err := in.receive(obj)
	if err != nil {
		return err
	}
	in.informer.put(c)
	return nil
}

// Delete implements cache.ReflectorStore.
func (in *intake) Delete(obj any) error {
	defer utilruntime.HandleCrashWithContext(in.ctx)
	if _, err := keyOf(obj); err != nil {
		return err
	}
	if _, ok := obj.(cache.DeletedFinalStateUnknown); !ok {
		var err error
		if obj, err = in.transformed(obj); err != nil {
			return err
		}
	}
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	in.informer.drop(key, obj)
	return nil
}

// Replace implements cache.ReflectorStore.
func (in *intake) Replace(objs []any, version string) error {
	defer utilruntime.HandleCrashWithContext(in.ctx)
	changes := make([]change, len(objs))
	for i, obj := range objs {
		var err error
		if changes[i], err = in.receive(obj); err != nil {
			return fmt.Errorf("replace objects: %w", err)
		}
	}
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
