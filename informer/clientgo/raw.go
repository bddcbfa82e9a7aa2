package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rawSource lists and watches a collection with the engine's own reflector, which cuts objects out of the
// bytes: nothing is decoded before somebody reads it.
type rawSource struct {
	*sharedInformer
	of        collection
	check     time.Duration
	transform cache.TransformFunc
	onError   cache.WatchErrorHandlerWithContext
	forms     rawForms
	misfits   *misfits
	// stand is what a watch error handler is given: a Reflector that does not run.
	stand *cache.Reflector

	ctx         context.Context
	plain       bool // the server has no protobuf of this
	jsonInstead int  // requests in a row that were answered 500 in protobuf, and in JSON were not

	listed  []change // of the list under way
	places  map[string]int
	version atomic.Pointer[string]
	told    reflector.Machine // what was reported last
}

func (s *sharedInformer) newRawSource(of collection) *rawSource {
	m := &misfits{name: s.done.name}
	r := &rawSource{
		sharedInformer: s, of: of, check: s.check, transform: s.transform, onError: s.onError,
		misfits: m, forms: rawFormsOf(s.example, of.kind, m),
		stand: cache.NewReflectorWithOptions(s.lw, s.example, &intake{informer: s}, cache.ReflectorOptions{}),
	}
	if r.onError == nil {
		r.onError = cache.DefaultWatchErrorHandler
	}
	r.version.Store(new(string))
	return r
}

// LastSyncResourceVersion is where a watch resumes.
func (r *rawSource) LastSyncResourceVersion() string { return *r.version.Load() }

// RunWithContext serves the informer until ctx ends.
func (r *rawSource) RunWithContext(ctx context.Context) {
	r.ctx = ctx
	var resyncing sync.WaitGroup
	defer resyncing.Wait()
	if r.check > 0 {
		resyncing.Go(func() { r.resyncNowAndThen(ctx) })
	}
	for ctx.Err() == nil {
		loop := r.loop()
		loop.Run(ctx)
		_ = loop.AwaitServed(ctx) // the loop ends where the kind is not served, or ctx does
	}
}

func (r *rawSource) loop() *reflector.Reflector {
	return &reflector.Reflector{
		Open:   r.open,
		Query:  r.of.query,
		Sink:   r,
		Lists:  r.engine.lists,
		Timing: timing(),
		Paged:  !features.FeatureGates().Enabled(features.WatchListClient),
		Synced: r.HasSynced(),
	}
}

// timing waits about as long as client-go's Reflector does, whose delays grow from one second to half a minute.
func timing() reflector.Timing {
	t := reflector.DefaultTiming
	t.Refused, t.Unserved, t.MaxUnserved = 5*time.Second, 15*time.Second, 30*time.Second
	return t
}

func (r *rawSource) resyncNowAndThen(ctx context.Context) {
	ticks := time.NewTicker(r.check)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			if r.shouldResync() {
				r.resync()
			}
		case <-ctx.Done():
			return
		}
	}
}

// open asks for the collection, in protobuf where that is wanted and had: aggregated API servers without
// it may refuse even a request that accepts JSON, too.
func (r *rawSource) open(ctx context.Context, watch bool, q url.Values) (io.ReadCloser, wire.Format, error) {
	want := request.Want{Protobuf: r.of.protobuf && r.forms.protobuf != nil && !r.plain, Metadata: r.of.metadata, Watch: watch}
	body, f, err := r.engine.client.Open(ctx, r.of.path, q, want)
	var st apierrors.APIStatus
	if !want.Protobuf || !errors.As(err, &st) {
		r.jsonInstead = 0
		return body, f, err
	}
	code := st.Status().Code
	sure := code == http.StatusNotAcceptable || code == http.StatusUnsupportedMediaType
	if !sure && code != http.StatusInternalServerError {
		return body, f, err
	}
	want.Protobuf = false
	body, f, plainErr := r.engine.client.Open(ctx, r.of.path, q, want)
	if plainErr != nil {
		return nil, 0, err // it was not the format
	}
	r.jsonInstead++
	r.plain = sure || r.jsonInstead > 1
	return body, f, nil
}

// receive is the change that makes an object what the server says.
func (r *rawSource) receive(o wire.Object) (change, error) {
	f := r.forms.of(o.Format)
	c := change{key: rawKey(o.Meta)}
	if f == nil || o.Raw == nil {
		return c, fmt.Errorf("read %s: %T cannot be read from %v", c.key, r.example, o.Format)
	}
	if p := r.table.packing; r.transform == nil && !p.live {
		v := p.packer.Pack(o.Format, o.UID, o.ResourceVersion, o.Raw)
		c.item = &item{v: v, form: f, weight: f.codec.weigh(len(o.Raw))}
		return c, nil
	}
	obj, err := f.codec.decode(o.Raw)
	if err != nil {
		return c, fmt.Errorf("decode %s: %w", c.key, err)
	}
	setKind(obj, f.kind)
	if r.transform != nil {
		if obj, err = r.transform(obj); err != nil {
			return c, err
		}
	}
	if c.key, err = keyOf(obj); err != nil {
		return c, err
	}
	c.item, c.obj = r.table.packing.item(obj), obj
	return c, nil
}

func rawKey(m wire.Meta) string {
	if m.Namespace == "" {
		return m.Name
	}
	return m.Namespace + "/" + m.Name
}

// rawForms are how an informer's objects are read from either format; nil where they cannot be.
type rawForms struct{ json, protobuf *form }

func (f *rawForms) of(w wire.Format) *form {
	if w == wire.Protobuf {
		return f.protobuf
	}
	return f.json
}

// rawFormsOf decodes as client-go's clients do from a streaming list: all but the dynamic one clear what an
// object says of its kind. It is then given the kind that the ListerWatcher gives it, as controller-runtime's
// does with metadata.
func rawFormsOf(example any, kind schema.GroupVersionKind, m *misfits) rawForms {
	switch example.(type) {
	case *unstructured.Unstructured:
		return rawForms{json: &form{codec: newCodec(reflect.TypeOf(example)), misfits: m}}
	case *metav1.PartialObjectMetadata:
		return rawForms{
			json:     &form{codec: metadataCodec(wire.JSON, 2), kind: kind, misfits: m},
			protobuf: &form{codec: metadataCodec(wire.Protobuf, 3), kind: kind, misfits: m},
		}
	}
	t := reflect.TypeOf(example).Elem()
	plain := &codec{typ: t, format: wire.JSON, growth: 1.7, decode: decodeKindless(t)}
	forms := rawForms{json: &form{codec: plain, kind: kind, misfits: m}}
	if c := newCodec(reflect.PointerTo(t)); c != nil && c.format == wire.Protobuf {
		forms.protobuf = &form{codec: c, kind: kind, misfits: m}
	}
	return forms
}

func metadataCodec(f wire.Format, growth float64) *codec {
	return &codec{typ: reflect.TypeFor[metav1.PartialObjectMetadata](), format: f, growth: growth,
		decode: func(raw []byte) (any, error) {
			p, err := wire.DecodeMetadata(f, raw)
			if err != nil {
				return nil, err
			}
			p.TypeMeta = metav1.TypeMeta{}
			return p, nil
		}}
}

func decodeKindless(t reflect.Type) func([]byte) (any, error) {
	decode := decodeJSON(t)
	return func(raw []byte) (any, error) {
		obj, err := decode(raw)
		if o, ok := obj.(runtime.Object); ok && err == nil {
			o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		return obj, err
	}
}
