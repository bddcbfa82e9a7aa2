package clientgo

import (
	"context"
	"fmt"
	"os"
	"reflect"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/compare"
)

// detector finds programs that write to cached objects, as client-go's does, if KUBE_CACHE_MUTATION_DETECTOR is true.
// It copies each object that it hands out, compares the two every second, and ends the program if they differ. The
// report names the readers of the object.
type detector struct {
	fail func(report string)

	mu    sync.Mutex
	given map[runtime.Object]*handout
}

// handout is an object that was handed out.
type handout struct {
	copy    runtime.Object
	readers []string
	at      time.Time // of the last handout
}

const (
	detectEvery = time.Second
	// detectFor is how long an object is compared after its last handout. client-go compares for two to four minutes.
	detectFor = 2 * time.Minute
	// maxReaders limits the names remembered for each object.
	maxReaders = 8
)

// newDetector returns nil unless the environment enables it.
func newDetector() *detector {
	if on, err := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")); err != nil || !on {
		return nil
	}
	return &detector{fail: func(report string) { panic(report) }, given: map[runtime.Object]*handout{}}
}

// handsOut records objects before a reader gets them.
func (d *detector) handsOut(reader string, objs ...any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, obj := range objs {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		o, ok := obj.(runtime.Object)
		if !ok || isNil(o) {
			continue
		}
		h := d.given[o]
		if h == nil {
			h = &handout{copy: o.DeepCopyObject()}
			d.given[o] = h
		}
		h.at = now
		if len(h.readers) < maxReaders && !slices.Contains(h.readers, reader) {
			h.readers = append(h.readers, reader)
		}
	}
}

// reads is handsOut for reads of the store. The report names the caller.
func (d *detector) reads(what string, objs ...any) {
	if d != nil {
		d.handsOut(what+" by "+caller(), objs...)
	}
}

// caller returns the first function on the stack outside this package, client-go and controller-runtime.
func caller() string {
	pcs := make([]uintptr, 32)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if !isLibrary(f.Function) {
			return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
		}
		if !more {
			return "an unknown function"
		}
	}
}

func isLibrary(function string) bool {
	for _, p := range []string{
		"github.com/tattler-dev/tattler/informer/clientgo.(", "github.com/tattler-dev/tattler/informer/clientgo.indexer.", "k8s.io/client-go/", "sigs.k8s.io/controller-runtime/",
	} {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return false
}

// run compares until ctx ends, then once more.
func (d *detector) run(ctx context.Context) {
	tick := time.NewTicker(detectEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.check()
			return
		case <-tick.C:
			d.check()
		}
	}
}

// check compares all recorded objects with their copies.
func (d *detector) check() {
	d.mu.Lock()
	var found []string
	for obj, h := range d.given {
		diff, differ := compare.First(h.copy, obj)
		switch {
		case differ:
			found = append(found, h.report(diff))
			delete(d.given, obj)
		case time.Since(h.at) > detectFor:
			delete(d.given, obj)
		}
	}
	d.mu.Unlock()
	if len(found) > 0 {
		slices.Sort(found)
		d.fail("a cached object was modified. Cached objects are shared and read-only: modify a DeepCopy.\n\t" + strings.Join(found, "\n\t"))
	}
}

// report describes the change and names the readers.
func (h *handout) report(diff compare.Difference) string {
	key, err := keyOf(h.copy)
	if err != nil {
		key = "without a name"
	}
	values := fmt.Sprintf(" was %s and is %s", diff.Want, diff.Got)
	if secret(h.copy) {
		values = " differs"
	}
	return fmt.Sprintf("%T %s: %s%s; readers: %s", h.copy, key, diff.Path, values, strings.Join(h.readers, ", "))
}

// secret reports whether an object's values must not be shown.
func secret(obj runtime.Object) bool {
	t := structOf(reflect.TypeOf(obj))
	return t != nil && t.Name() == "Secret" || kindOf(obj).Kind == "Secret"
}
