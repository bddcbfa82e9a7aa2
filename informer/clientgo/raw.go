package clientgo

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"
	"k8s.io/klog/v2"
)

// Our transport takes the responses to lists and watches, under a marked context, and passes on an empty list and a
// silent watch. The objects that it cuts out of the real responses go to the Reflector undecoded. That requires a
// ListerWatcher that leaves objects unchanged. Its provenance shows that (our ListWatch, or controller-runtime's
// cache by NewCacheInformer); its behaviour is never tried out.

// rawSource is client-go's Reflector over what the server answers to its ListerWatcher, out of which objects
// are cut: nothing is decoded before somebody reads it. When and what is asked, what becomes of errors and how
// long it takes until the next attempt is up to client-go.
type rawSource struct {
	in          *intake
	informer    *sharedInformer
	lw          cache.ListerWatcherWithContext
	forms       rawForms
	undecodable *undecodableLog
	listed      kinds // what becomes of kinds in lists
	watched     kinds // and in watches
	// transforms: a transform gets each object, decoded, and may change it.
	transforms bool

	controller cache.Controller
}

// provenance says who made a ListerWatcher, which shows whether it hands on what the server sends.
type provenance uint8

const (
	unknown           provenance = iota // the program
	controllerRuntime                   // controller-runtime's cache
)

// Why objects are decoded by the ListerWatcher: sentences for InformerStats.Decoded.
const (
	decodedAsUsual   = "the program's client decodes them, as with client-go"
	decodedByOptions = "the program's client decodes them, as Options.Decoded says"
	decodedToCompare = "the program's client decodes them, since the environment wants watch lists compared"
	decodedAlone     = "the program's client decodes them, since the engine was made without a configuration"
)

// newRawSource returns a source; or why objects of this informer come decoded. The caller holds s.mu.
func (s *sharedInformer) newRawSource(config cache.Config, in *intake) (*rawSource, string) {
	listed, watched, ok := s.passesThrough()
	switch _, object := s.example.(metav1.Object); {
	case !ok || !object || reflect.TypeOf(s.example).Kind() != reflect.Pointer:
		return nil, decodedAsUsual
	case s.engine.http == nil:
		return nil, decodedAlone
	case s.engine.opts.decoded(s.example):
		return nil, decodedByOptions
	case consistencydetector.IsDataConsistencyDetectionForWatchListEnabled(): // which compares objects
		return nil, decodedToCompare
	}
	in.shares = s.transform != nil && s.table.packing.live
	m := &undecodableLog{informer: s}
	r := &rawSource{
		informer: s, in: in, lw: cache.ToListerWatcherWithContext(s.lw), listed: listed, watched: watched,
		undecodable: m, forms: newRawForms(s.example, s.table.packing.parts, m), transforms: s.transform != nil,
	}
	config.Queue = &rawIntake{intake: in, raw: r}
	config.ListerWatcher = rawListerWatcher{r}
	config.ObjectType, config.ObjectDescription = &rawObject{}, cmp.Or(s.options.ObjectDescription, describe(s.example))
	r.controller = cache.New(&config)
	return r, ""
}

// passesThrough reports whether the ListerWatcher hands on what the server sends, and what becomes of kinds in its lists
// and watches.
func (s *sharedInformer) passesThrough() (listed, watched kinds, ok bool) {
	if s.made == controllerRuntime {
		listed, watched = cacheKinds(s.example)
		return listed, watched, true
	}
	l, ok := s.lw.(*listWatch)
	if !ok {
		return kinds{}, kinds{}, false
	}
	ok, keeps := passesThrough(l.client)
	return kinds{}, kinds{clear: !keeps}, ok
}

// cacheKinds is what controller-runtime's ListerWatchers make of kinds: they name the kind of metadata, and otherwise
// do as client-go's clients do.
func cacheKinds(example runtime.Object) (listed, watched kinds) {
	switch example.(type) {
	case *metav1.PartialObjectMetadata:
		k := kinds{given: example.GetObjectKind().GroupVersionKind()}
		return k, k
	case *unstructured.Unstructured:
		return kinds{}, kinds{}
	}
	return kinds{}, kinds{clear: true}
}

// kinds is what a client makes of the kind that an object says: it keeps it, clears it, or sets another one.
type kinds struct {
	clear bool
	given schema.GroupVersionKind
}

// RunWithContext serves the informer until ctx ends.
func (r *rawSource) RunWithContext(ctx context.Context) { r.controller.RunWithContext(ctx) }

// LastSyncResourceVersion is where a watch resumes.
func (r *rawSource) LastSyncResourceVersion() string { return r.controller.LastSyncResourceVersion() }

// describe is what client-go's Reflector calls an example's type.
func describe(example runtime.Object) string {
	if u, ok := example.(*unstructured.Unstructured); ok && !u.GroupVersionKind().Empty() {
		return u.GroupVersionKind().String()
	}
	return fmt.Sprintf("%T", example)
}

func (e *Engine) log() klog.Logger {
	if e.opts.Log != nil {
		return *e.opts.Log
	}
	return klog.Background()
}
