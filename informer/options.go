package informer

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Storage is the form in which a Source keeps its objects. The zero value is CompactStorage; in package clientgo, whose
// constants have the same values, it is Auto.
type Storage uint8

const (
	// CompactStorage keeps objects as compressed bytes, and the most recently read ones decoded as well
	// (SourceOptions.Hot). It takes a fraction of the memory; a cold read costs a decode.
	CompactStorage Storage = iota + 1
	// AutoStorage is CompactStorage with a larger set of decoded objects (SourceOptions.Hot). It keeps objects that are
	// read repeatedly: single ones, or all of a kind that is listed repeatedly. An object that is not read for five to
	// ten minutes is kept as bytes only.
	AutoStorage
	// LiveStorage keeps every object decoded, as client-go does, beside its bytes: as the type of the first view. Objects
	// share equal parts: they take a third of client-go's memory with a hundred pods per application, and half with ten.
	LiveStorage
)

// Format is the encoding in which a Source requests its objects.
type Format uint8

const (
	// JSON loses nothing and serves every view.
	JSON Format = iota
	// Protobuf is smaller and faster. It serves views of built-in types and of metadata. If a server does not
	// support it for a resource, the source requests JSON instead.
	Protobuf
)

func (f Format) String() string {
	if f == Protobuf {
		return "protobuf"
	}
	return "JSON"
}

// Default limits of the set of decoded objects, in bytes.
const (
	defaultHot     = 4 << 20
	defaultHotAuto = 64 << 20
)

// SourceOptions tune a Source. The zero value is usable.
type SourceOptions struct {
	Selection Selection
	Storage   Storage
	Format    Format
	// MetadataOnly requests only metadata from the server.
	MetadataOnly bool
	// DropManagedFields removes metadata.managedFields from the bytes before they are stored; it is cheaper
	// than a Transform.
	DropManagedFields bool
	Transform         *Transform
	// Hot limits the set of decoded objects, in estimated bytes of heap; 0 means 4 MiB, or 64 MiB with
	// AutoStorage.
	Hot int64
	// Paged requests lists in pages instead of streaming lists.
	Paged bool
	// NoCheckpoint keeps the source out of the cluster's checkpoint. Secrets, and sources with a
	// Selection.Keep or an unnamed Transform, are never checkpointed. Of several sources with equal options, only
	// the one opened first is (see Status.Checkpoint).
	NoCheckpoint bool
	// OnState, if set, is called on every state transition of every stream of the source, and once the deletions of a
	// Parked stream were queued for its subscribers (feed.Feed.Retire). Calls for one stream are
	// in order; different streams call it concurrently, possibly before Cluster.Source has returned. It holds
	// no lock, but the stream waits for it: it must not block.
	OnState func(Status)
}

// check returns an error for values that no option has.
func (o *SourceOptions) check() error {
	switch {
	case o.Storage > LiveStorage:
		return fmt.Errorf("unknown storage %d", o.Storage)
	case o.Format > Protobuf:
		return fmt.Errorf("unknown format %d", o.Format)
	case o.Hot < 0:
		return fmt.Errorf("the limit of decoded objects is negative: %d bytes", o.Hot)
	}
	return nil
}

func (o *SourceOptions) hot() int64 {
	switch {
	case o.Hot > 0:
		return o.Hot
	case o.Storage == AutoStorage:
		return defaultHotAuto
	}
	return defaultHot
}

func (o *SourceOptions) parts() int64 {
	if o.Storage <= CompactStorage {
		return fewParts
	}
	return manyParts
}

// ViewOptions select what an Informer views. The zero value is the whole cluster, in the best format for the
// type.
type ViewOptions struct {
	// Resource is the resource to list and watch; zero means that of the Go type's kind.
	Resource schema.GroupVersionResource
	// Source, if set, is the source to view; the caller closes it. It excludes SourceOptions.
	Source *Source
	// SourceOptions describe the source that the Informer needs. Views with equal options share a source, however their
	// selectors are spelled; options with functions (Selection.Keep, Transform, OnState) are never shared.
	SourceOptions
}

// Option sets fields of ViewOptions; any function of this type will do.
type Option func(*ViewOptions)

// InNamespaces selects the objects of these namespaces, with one stream each. No name, or a single empty one (as in
// client-go), selects the whole cluster. If it is given twice, the last one counts.
func InNamespaces(namespaces ...string) Option {
	return func(o *ViewOptions) { o.Selection.Namespaces = slices.Clone(namespaces) }
}

// WithLabels selects by a label selector in the API server's syntax.
func WithLabels(selector string) Option {
	return func(o *ViewOptions) { o.Selection.Labels = selector }
}

// WithFields selects by a field selector in the API server's syntax.
func WithFields(selector string) Option {
	return func(o *ViewOptions) { o.Selection.Fields = selector }
}

// WithStorage sets the form in which the objects are kept.
func WithStorage(s Storage) Option { return func(o *ViewOptions) { o.Storage = s } }

// On views an open source; all its views share one copy of the objects.
func On(s *Source) Option { return func(o *ViewOptions) { o.Source = s } }

// fits returns why a view of the type cannot be opened on a source with these options, or nil.
func (o *SourceOptions) fits(c *codec) error {
	switch {
	case c.generic && o.Format == Protobuf:
		return fmt.Errorf("unstructured objects need JSON, but the source requests protobuf")
	case !c.partial && o.MetadataOnly:
		return fmt.Errorf("the source has only metadata")
	case !c.protobuf && o.Format == Protobuf:
		return fmt.Errorf("the type cannot be read from protobuf, which the source requests")
	}
	return nil
}

// needsJSON names the option that cannot work with protobuf; or empty.
func (o *SourceOptions) needsJSON() string {
	t := o.Transform
	switch {
	case t != nil && t.Apply != nil:
		return "Transform.Apply"
	case t != nil && t.Rewrite != nil:
		return "Transform.Rewrite"
	case t != nil && t.codec != nil && !t.codec.protobuf:
		return "the Transform's type"
	}
	return ""
}

// isZero reports whether no option is set.
func (o *SourceOptions) isZero() bool { return reflect.ValueOf(*o).IsZero() }
