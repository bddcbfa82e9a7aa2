package clientgo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"
	"k8s.io/klog/v2"
)

// rawSource is client-go's Reflector over what the server answers to its ListerWatcher, out of which objects
// are cut: nothing is decoded before somebody reads it. When and what is asked, what becomes of errors and how
// long it takes until the next attempt is up to client-go. Where the ListerWatcher turns out to be one whose
// answers cannot be had so, the source becomes a plain one.
type rawSource struct {
	informer *sharedInformer
	lw       cache.ListerWatcherWithContext
	forms    rawForms
	misfits  *misfits
	config   cache.Config // of the plain one
	decode   bool         // objects at once: a transform wants them, or they are kept so

	ctx  context.Context // of RunWithContext
	over chan struct{}   // closed once the Reflector of raw objects has ended

	mu      sync.Mutex
	now     cache.Controller
	cancel  context.CancelFunc // ends now
	why     string             // it became a plain one; empty: it has not
	hand    handover
	listed  *kinds // what becomes of kinds in lists; nil: no list has been seen
	watched *kinds // and in watches
}

// newRawSource returns a source; or why there is none for this informer. The caller holds s.mu.
func (s *sharedInformer) newRawSource(plain cache.Config) (*rawSource, string) {
	switch _, object := s.example.(metav1.Object); {
	case s.engine.http == nil:
		return nil, "the engine has no configuration"
	case s.engine.opts.decoded(s.example):
		return nil, "the options say so"
	case !object || reflect.TypeOf(s.example).Kind() != reflect.Pointer:
		return nil, "the example is no object"
	case consistencydetector.IsDataConsistencyDetectionForWatchListEnabled(): // which compares objects
		return nil, "the environment wants watch lists compared"
	}
	m := &misfits{name: s.done.name}
	r := &rawSource{
		informer: s, lw: cache.ToListerWatcherWithContext(s.lw), config: plain, over: make(chan struct{}),
		misfits: m, forms: newRawForms(s.example, m), decode: s.transform != nil || s.table.packing.live,
	}
	return r, ""
}

// RunWithContext serves the informer until ctx ends.
func (r *rawSource) RunWithContext(ctx context.Context) {
	r.ctx = ctx
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	c := r.config
	c.Queue = &rawIntake{intake: r.newIntake(), raw: r}
	c.ListerWatcher = rawListerWatcher{r}
	c.ObjectType, c.ObjectDescription = &rawObject{}, describe(r.informer.example)
	first := r.become(cache.New(&c), cancel)
	first.RunWithContext(running)
	close(r.over)
	hand, declined := r.handed()
	switch {
	case !declined:
	case ctx.Err() != nil:
		hand.drop()
	default:
		c := r.config
		c.Queue, c.ListerWatcher = r.newIntake(), hand.before(r.informer.lw)
		r.become(cache.New(&c), cancel).RunWithContext(ctx)
	}
}

func (r *rawSource) newIntake() *intake {
	return &intake{informer: r.informer, ctx: r.ctx, transform: r.informer.transform, closed: make(chan struct{})}
}

func (r *rawSource) become(c cache.Controller, cancel context.CancelFunc) cache.Controller {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.cancel = c, cancel
	return c
}

// LastSyncResourceVersion is where a watch resumes.
func (r *rawSource) LastSyncResourceVersion() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		return ""
	}
	return r.now.LastSyncResourceVersion()
}

// state tells whether objects are cut out of what the server says, and if not, why not: empty where that is
// not known yet.
func (r *rawSource) state() (raw bool, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why == "" && (r.listed != nil || r.watched != nil), r.why
}

// handed returns what was handed over, and whether answers were declined. It is returned once: it may be all
// objects, decoded.
func (r *rawSource) handed() (hand handover, declined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hand, r.hand = r.hand, handover{}
	return hand, r.why != ""
}

// decline ends the Reflector of raw objects. What the ListerWatcher has answered, if it can be used, is for the
// one that follows.
func (r *rawSource) decline(not *declined) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil { // whatever came of it then says nothing
		not.hand.drop()
		return
	}
	if r.why != "" {
		return
	}
	r.why, r.hand = not.why.Error(), not.hand
	r.informer.engine.log().Info("Objects are decoded as they come, which takes more memory and time",
		"informer", r.informer.done.name, "reason", r.why)
	r.cancel()
}

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

// Why a ListerWatcher's answers cannot be had as they come.
var (
	errElsewhere = errors.New("its requests do not come by the engine's HTTPClient, with the context of the call")
	errSeveral   = errors.New("it makes several requests")
)
