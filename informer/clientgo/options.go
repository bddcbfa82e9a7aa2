package clientgo

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// Storage is the form in which an informer keeps its objects. The zero value is Auto. The constants have the values of
// those of package informer.
type Storage uint8

const (
	// Compact keeps objects packed, however often they are read.
	Compact Storage = iota + 1
	// Auto packs rarely read objects and keeps frequently read ones decoded, within Options.Kept: those decoded for
	// readers twice within ten minutes, whether by key, by index or in lists. Objects that were not read for ten
	// minutes are packed again.
	Auto
	// Live keeps every object decoded: repeated reads return the same pointer, as with client-go.
	Live
)

func (s Storage) String() string {
	switch s {
	case Compact:
		return "compact"
	case Live:
		return "live"
	}
	return "auto"
}

// Options tune an Engine. With the zero value, its informers behave like client-go's.
type Options struct {
	// Storage is the form in which objects are kept. StorageOf, if set, decides it per informer by the example object
	// with which the informer was made.
	Storage   Storage
	StorageOf func(example runtime.Object) Storage
	// Hot limits the objects of all informers that are kept decoded because they were read or changed recently, in
	// estimated bytes of heap; 0 means 16 MiB.
	Hot int64
	// Kept limits the objects of all informers that Auto keeps decoded because they are read often, in estimated
	// bytes of heap; 0 means 512 MiB, a negative value disables it.
	Kept int64
	// HandlerBudget limits one handler's queue, in bytes of memory that nothing else needs; 0 means 64 MiB, a
	// negative value no limit. Decoded objects count and are dropped first. A handler that exceeds its budget
	// receives, for each object, only the difference between the last delivered and the current state, until it has
	// caught up.
	HandlerBudget int64
	// Coalesce always delivers only such differences, as soon as a handler can take them. It suits handlers that need
	// the current state and no intermediate versions.
	Coalesce bool
	// Recreate delivers an object with another UID as a deletion and an addition. client-go, and the zero value,
	// deliver an update.
	Recreate bool
	// Decoded makes the program's clients decode lists and watches, as with client-go, where the engine would take
	// the responses undecoded. DecodedOf, if set, decides it per informer by the example object.
	Decoded   bool
	DecodedOf func(example runtime.Object) bool
	// Log, if set, replaces klog's default logger.
	Log   *klog.Logger
	Hooks Hooks
}

// Hooks are callbacks. Each call runs on its own goroutine. Each may be nil.
type Hooks struct {
	// Folding is called when a handler exceeds its budget: again each time it does so after it had caught up.
	Folding func(informer, handler string)
}

const (
	defaultHot           = 16 << 20
	defaultKept          = 512 << 20
	defaultHandlerBudget = 64 << 20
)

func (o *Options) handlerBudget() int64 { return orDefault(o.HandlerBudget, defaultHandlerBudget) }

func (o *Options) storageOf(example runtime.Object) Storage {
	storage := o.Storage
	if o.StorageOf != nil {
		storage = o.StorageOf(example)
	}
	return cmp.Or(storage, Auto)
}

func (o *Options) decoded(example any) bool {
	obj, ok := example.(runtime.Object)
	return o.Decoded || ok && o.DecodedOf != nil && o.DecodedOf(obj)
}

func orDefault(n, otherwise int64) int64 {
	if n == 0 {
		return otherwise
	}
	return n
}
