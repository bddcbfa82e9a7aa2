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

// detector finds objects that somebody has written to, where KUBE_CACHE_MUTATION_DETECTOR is true, as client-go's does.
// It keeps a copy of each object that it hands out, compares the two every second, and ends the program where they
// differ. The report names who had the object.
type detector struct {
	fail func(report string)

	mu    sync.Mutex
	given map[runtime.Object]*handout
}

// handout is an object that somebody has.
type handout struct {
	copy    runtime.Object
	readers []string
	at      time.Time // when it was handed out last
}

const (
	detectEvery = time.Second
	// detectFor is how long an object is compared after it was handed out last; client-go does it for two to four minutes.
	detectFor = 2 * time.Minute
	// maxReaders bounds the names that are remembered for an object.
	maxReaders = 8
)

// newDetector returns nil where the environment does not ask for one.
func newDetector() *detector {
	if on, err := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")); err != nil || !on {
		return nil
	}
	return &detector{fail: func(report string) { panic(report) }, given: map[runtime.Object]*handout{}}
}

// gives notes that somebody is given objects: before that happens.
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

// reads is gives for who reads the store: the report names the caller.
func (d *detector) reads(what string, objs ...any) {
	if d != nil {
		d.handsOut(what+" by "+caller(), objs...)
	}
}

// caller is the first function on the stack that is neither ours nor of the libraries between us and the program.
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

// run compares until ctx ends, and then a last time.
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

// check compares everything that somebody has.
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
		d.fail("an object of the cache was changed, which is shared and read-only: change a DeepCopy.\n\t" + strings.Join(found, "\n\t"))
	}
}

// report says what was changed, and who had the object.
func (h *handout) report(diff compare.Difference) string {
	key, err := keyOf(h.copy)
	if err != nil {
		key = "without a name"
	}
	values := fmt.Sprintf(" was %s and is %s", diff.Want, diff.Got)
	if secret(h.copy) {
		values = " is another one"
	}
	return fmt.Sprintf("%T %s: %s%s; who had it: %s", h.copy, key, diff.Path, values, strings.Join(h.readers, ", "))
}

// secret reports whether an object's values are not shown.
func secret(obj runtime.Object) bool {
	t := structOf(reflect.TypeOf(obj))
	return t != nil && t.Name() == "Secret" || kindOf(obj).Kind == "Secret"
}
