package clientgo

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// Storage says in what form an informer keeps its objects.
type Storage uint8

const (
	// Auto packs objects that are rarely read, and keeps those decoded that are read often (Options.Kept): by key, by an
	// index or in lists, twice within ten minutes. Those that nobody has read for ten minutes are packed again.
	Auto Storage = iota
	// Compact keeps objects packed whatever is read.
	Compact
	// Live keeps every object decoded: what is read twice is the same pointer, as with client-go.
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

// Options tune an Engine. With the zero value its informers behave as client-go's.
type Options struct {
	// Storage is the form in which objects are kept. StorageOf, if set, says it for each informer by
	// the example object that it was made with.
	Storage   Storage
	StorageOf func(example runtime.Object) Storage
	// Hot bounds, for all informers together, the objects that are kept decoded because they were read
	// or have changed, in bytes of heap, estimated; 0 means 16 MiB.
	Hot int64
	// Kept bounds, for all informers together, the objects that Auto keeps decoded because they are read often, in bytes
	// of heap, estimated; 0 means 512 MiB, less than nothing that there are none.
	Kept int64
	// HandlerBudget is what a handler may have queued, in bytes of memory that nobody else needs, decoded
	// objects included, which are let go of first; 0 means 64 MiB, less than nothing that there is no
	// bound. While a handler has more, it is told, of each object, the difference between what it was told
	// last and what is.
	HandlerBudget int64
	// Coalesce tells handlers nothing but such differences from the start, as soon as they can take
	// them: who only asks what is, need not hear of what was.
	Coalesce bool
	// Recreate tells of an object with another UID as of a deletion and an addition. client-go, and
	// the zero value, tell of an update.
	Recreate bool
	// Decoded has the program's clients decode what they list and watch, as with client-go, where answers would be
	// taken undecoded. DecodedOf, if set, says it for each informer by the example object that it was made with.
	Decoded   bool
	DecodedOf func(example runtime.Object) bool
	// Log, if set, is written to instead of klog's default.
	Log   *klog.Logger
	Hooks Hooks
}

// Hooks are told what happens, each time on a goroutine of its own. Each may be nil.
type Hooks struct {
	// Folding hears that a handler has exceeded its budget, each time anew after it had captured up.
	Folding func(informer, handler string)
}

const (
	defaultHot           = 16 << 20
	defaultKept          = 512 << 20
	defaultHandlerBudget = 64 << 20
)

func (o *Options) handlerBudget() int64 { return orDefault(o.HandlerBudget, defaultHandlerBudget) }

func (o *Options) storageOf(example runtime.Object) Storage {
	if o.StorageOf != nil {
		return o.StorageOf(example)
	}
	return o.Storage
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
