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

// Informer is a typed view of a Source: its objects, as type T, and their changes. It is safe for concurrent use.
type Informer[T Object] struct {
	source *Source
	codec  *codec
	shared bool
	reader string // names the reader in reports of mutations; empty: a caller of Get or List
	left   *sync.Once
}

// For opens a view of a Go type's kind: *corev1.Pod, or a type of Options.Scheme. Views with equal options share one
// source; see ViewOptions. A view is served while Cluster.Run runs, and may be opened before or during that.
func For[T Object](c *Cluster, opts ...Option) (*Informer[T], error) {
	t := reflect.TypeFor[T]()
	kind, err := kindOf(t, c.opts.Scheme)
	if err == nil && (t == reflect.TypeFor[*unstructured.Unstructured]() || t == reflect.TypeFor[*metav1.PartialObjectMetadata]()) {
		err = errors.New("the type has no fixed kind: use Unstructured or Metadata")
	}
	if err != nil {
		return nil, fmt.Errorf("open informer: %w", err)
	}
	return open[T](c, newCodec(t, kind), resourceOf(kind), opts)
}

// Unstructured opens a view of any resource as maps. It loses nothing that the server sends.
func Unstructured(c *Cluster, gvr schema.GroupVersionResource, opts ...Option) (*Informer[*unstructured.Unstructured], error) {
	return open[*unstructured.Unstructured](c, newCodec(reflect.TypeFor[*unstructured.Unstructured](), schema.GroupVersionKind{}), gvr, opts)
}

// Metadata opens a view of any resource's metadata; without On, the source requests nothing else.
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
	return &Informer[T]{source: s, codec: s.codecFor(reflect.TypeFor[T](), codec), left: &sync.Once{}}, nil
}

// view finds or opens the source of a view.
func (c *Cluster) view(t reflect.Type, codec *codec, o *ViewOptions) (*Source, error) {
	if names := o.Selection.Namespaces; len(names) == 0 || !slices.ContainsFunc(names, func(n string) bool { return n != "" }) {
		o.Selection.Namespaces = nil
	}
	if o.Source != nil {
		switch {
		case !o.SourceOptions.isZero():
			return nil, errors.New("source options do not apply to an open source")
		case o.Source.cluster != c:
			return nil, errors.New("the source belongs to another cluster")
		case o.Source.gvr.GroupResource() != o.Resource.GroupResource():
			return nil, fmt.Errorf("the source holds %s", o.Source.gvr.GroupResource())
		}
		if v := o.Source.served().Version; codec.versioned() && v != o.Resource.Version {
			return nil, fmt.Errorf("the source has version %s, but the type belongs to %s", v, o.Resource.Version)
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

// Source returns the source of the view.
func (i *Informer[T]) Source() *Source { return i.source }

// Shared returns the same view with shared objects: reads and changes return objects that are decoded once per version
// for all readers and must not be modified.
func (i *Informer[T]) Shared() *Informer[T] {
	i.source.shares.Store(true)
	return &Informer[T]{source: i.source, codec: i.codec, shared: true, left: i.left}
}

// Close closes the view. A source that For, Unstructured or Metadata opened is closed with its last view, and its
// subscriptions with it. A source given by On stays open and keeps the indexes added through the view: close those
// separately.
func (i *Informer[T]) Close() { i.left.Do(i.source.leave) }
