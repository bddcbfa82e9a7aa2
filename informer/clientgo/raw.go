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

// Our transport intercepts the responses to lists and watches under a marked context, and passes on an empty list or
// a silent watch. The objects cut out of the real responses go to the Reflector undecoded. That requires a
// ListerWatcher that leaves objects unchanged. Its provenance decides that (our ListWatch, or controller-runtime's
// cache by NewCacheInformer); its behaviour is never probed.

// rawSource runs client-go's Reflector on objects that are cut out of the server's responses and decoded only when
// read. client-go decides which requests to send and when, how to handle errors, and how long to back off.
type rawSource struct {
	in          *intake
	informer    *sharedInformer
	lw          cache.ListerWatcherWithContext
	forms       rawForms
	undecodable *undecodableLog
	listed      kinds // how lists treat kinds
	watched     kinds // how watches treat kinds
	// transforms means that a transform gets each object decoded and may change it.
	transforms bool

	controller cache.Controller
}

// provenance is the maker of a ListerWatcher. It decides whether the ListerWatcher passes on what the server sends.
type provenance uint8

const (
	unknown           provenance = iota // the program
	controllerRuntime                   // controller-runtime's cache
)

// Reasons why the ListerWatcher decodes the objects, as sentences for InformerStats.Decoded.
const (
	decodedAsUsual   = "the program's client decodes them, as with client-go"
	decodedByOptions = "the program's client decodes them, as Options.Decoded says"
	decodedToCompare = "the program's client decodes them, since the environment enables the comparison of watch lists"
	decodedAlone     = "the program's client decodes them, since the engine has no configuration"
)

// newRawSource returns a source, or the reason why the objects of this informer are decoded by the program's client.
// The caller holds s.mu.
func (s *sharedInformer) newRawSource(config cache.Config, in *intake) (*rawSource, string) {
	listed, watched, ok := s.passesThrough()
	switch _, object := s.example.(metav1.Object); {
	case !ok || !object || reflect.TypeOf(s.example).Kind() != reflect.Pointer:
		return nil, decodedAsUsual
	case s.engine.http == nil:
		return nil, decodedAlone
	case s.engine.opts.decoded(s.example):
		return nil, decodedByOptions
	case consistencydetector.IsDataConsistencyDetectionForWatchListEnabled(): // it compares objects
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

// passesThrough reports whether the ListerWatcher passes on what the server sends, and how its lists and watches
// treat kinds.
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

// cacheKinds returns how controller-runtime's ListerWatchers treat kinds: they set the kind of metadata, and
// otherwise do the same as client-go's clients.
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

// kinds is how a client treats the kind in an object: it keeps it, clears it, or sets another one.
type kinds struct {
	clear bool
	given schema.GroupVersionKind
}

// RunWithContext serves the informer until ctx ends.
func (r *rawSource) RunWithContext(ctx context.Context) { r.controller.RunWithContext(ctx) }

// LastSyncResourceVersion returns the version from which a watch resumes.
func (r *rawSource) LastSyncResourceVersion() string { return r.controller.LastSyncResourceVersion() }

// describe returns client-go's description of an example's type.
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
