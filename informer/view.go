package informer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Informer is a typed view of a Source: what the Source keeps, as objects of type T, and their
// changes. It is safe for concurrent use.
type Informer[T Object] struct {
	source *Source
	codec  *codec
	shared bool
	reader string // who has what it reads; empty: the caller
	left   *sync.Once
}

// For opens a view of the kind of a Go type: *corev1.Pod, or a type of Options.Scheme. Views that ask
// for the same objects in the same way share one source; see ViewOptions. A view is served once
// Cluster.Run runs, also when it is opened later.
func For[T Object](c *Cluster, opts ...Option) (*Informer[T], error) {
	t := reflect.TypeFor[T]()
	kind, err := kindOf(t, c.opts.Scheme)
	if err == nil && (t == reflect.TypeFor[*unstructured.Unstructured]() || t == reflect.TypeFor[*metav1.PartialObjectMetadata]()) {
		err = errors.New("the type has no kind of its own: use Unstructured or Metadata")
	}
	if err != nil {
		return nil, fmt.Errorf("open informer: %w", err)
	}
	return open[T](c, newCodec(t, kind), resourceOf(kind), opts)
}

// Unstructured opens a view of any resource as maps, which lose nothing that the server sends.
func Unstructured(c *Cluster, gvr schema.GroupVersionResource, opts ...Option) (*Informer[*unstructured.Unstructured], error) {
	return open[*unstructured.Unstructured](c, newCodec(reflect.TypeFor[*unstructured.Unstructured](), schema.GroupVersionKind{}), gvr, opts)
}

// Metadata opens a view of any resource's metadata; without On, nothing else is asked for.
func Metadata(c *Cluster, gvr schema.GroupVersionResource, opts ...Option) (*Informer[*metav1.PartialObjectMetadata], error) {
	return open[*metav1.PartialObjectMetadata](c, newCodec(reflect.TypeFor[*metav1.PartialObjectMetadata](), schema.GroupVersionKind{}), gvr, opts)
}

func open[T Object](c *Cluster, codec *codec, gvr schema.GroupVersionResource, opts []Option) (*Informer[T], error) {
	o := ViewOptions{Resource: gvr}
	for _, set := range opts {
		set(&o)
	}
	s, err := c.view(reflect.TypeFor[T](), codec, &o)
	if err != nil {
		return nil, fmt.Errorf("open informer for %s: %w", o.Resource.GroupResource(), err)
	}
	return &Informer[T]{source: s, codec: s.decodes(reflect.TypeFor[T](), codec), left: &sync.Once{}}, nil
}

// view finds or opens the source of a view.
func (c *Cluster) view(t reflect.Type, codec *codec, o *ViewOptions) (*Source, error) {
	if names := o.Selection.Namespaces; len(names) == 0 || !slices.ContainsFunc(names, func(n string) bool { return n != "" }) {
		o.Selection.Namespaces = nil
	}
	if o.Source != nil {
		switch {
		case !o.SourceOptions.isZero():
			return nil, errors.New("options of a source do not apply to one that is open")
		case o.Source.cluster != c:
			return nil, errors.New("the source is another cluster's")
		case o.Source.gvr.GroupResource() != o.Resource.GroupResource():
			return nil, fmt.Errorf("the source has %s", o.Source.gvr.GroupResource())
		}
		if v := o.Source.served().Version; codec.versioned() && v != o.Resource.Version {
			return nil, fmt.Errorf("the source has version %s, and the type is of %s", v, o.Resource.Version)
		}
		if err := o.Source.opts.fits(codec); err != nil {
			return nil, err
		}
		return o.Source, o.Source.join(false)
	}
	if codec.partial {
		o.MetadataOnly = true
	}
	if codec.protobuf && o.needsJSON() == "" {
		o.Format = Protobuf
	}
	if err := o.fits(codec); err != nil {
		return nil, err
	}
	return c.viewSource(t, codec, o.Resource, o.SourceOptions)
}

// Source is what the Informer is a view of.
func (i *Informer[T]) Source() *Source { return i.source }

// Shared returns the same view, whose reads and changes hand out shared objects: decoded once per
// version for all readers, and not to be written to by anyone.
func (i *Informer[T]) Shared() *Informer[T] {
	i.source.shares.Store(true)
	return &Informer[T]{source: i.source, codec: i.codec, shared: true, left: i.left}
}

// Close gives the view up. A source that For, Unstructured or Metadata opened is closed with its last
// view, and so are its subscriptions; one given by On stays open, with the indexes that were added
// through the view: close those, too.
func (i *Informer[T]) Close() { i.left.Do(i.source.leave) }
