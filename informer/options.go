package informer

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Storage says in what form a Source keeps its objects.
type Storage uint8

const (
	// CompactStorage keeps objects as compressed bytes, and those read most recently decoded as well
	// (SourceOptions.Hot). It costs a fraction of the memory; a cold read costs a decode.
	CompactStorage Storage = iota
	// AutoStorage is CompactStorage with a larger set of decoded objects (SourceOptions.Hot), which holds what is read
	// again: single objects, and all of a kind that is listed again and again. What nobody reads for five to ten minutes
	// is only kept as bytes again.
	AutoStorage
	// LiveStorage keeps every object decoded beside its bytes, as client-go does: as the type of the first view. Objects
	// share the parts in which they are equal: they take a third of client-go's memory with a hundred pods of each application,
	// and half with ten.
	LiveStorage
)

// Format is what a Source asks its objects for in.
type Format uint8

const (
	// JSON loses nothing and serves every view.
	JSON Format = iota
	// Protobuf is smaller and quicker. It serves views of the types that the server knows, and of
	// metadata; where a server has none, JSON is asked for instead.
	Protobuf
)

func (f Format) String() string {
	if f == Protobuf {
		return "protobuf"
	}
	return "JSON"
}

// The sizes of the set of decoded objects, in bytes.
const (
	defaultHot     = 4 << 20
	defaultHotAuto = 64 << 20
)

// SourceOptions tune a Source. The zero value is usable.
type SourceOptions struct {
	Selection Selection
	Storage   Storage
	Format    Format
	// MetadataOnly asks the server for nothing but metadata.
	MetadataOnly bool
	// DropManagedFields cuts metadata.managedFields out of the bytes before they are stored, which
	// costs less than a Transform.
	DropManagedFields bool
	Transform         *Transform
	// Hot bounds the decoded objects that are kept, in bytes of heap, estimated; 0 means 4 MiB, or
	// 64 MiB with AutoStorage.
	Hot int64
	// Paged asks for lists in pages, not for streaming lists.
	Paged bool
	// NoCheckpoint keeps the source out of the cluster's checkpoint. Secrets, and sources with a
	// Selection.Keep or a Transform without a name, are never in it. Of several sources that ask for
	// the same objects in the same way, the one that was opened first is (Status.Checkpoint).
	NoCheckpoint bool
	// OnState, if set, hears of every transition of every stream of the source. For one stream it
	// is called in order; streams call it concurrently, also before Cluster.Source has returned. No
	// lock is held, but the stream waits: it must not block.
	OnState func(Status)
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
	if o.Storage == CompactStorage {
		return fewParts
	}
	return manyParts
}

// ViewOptions say what an Informer is a view of. The zero value is the whole cluster, in the format
// that suits the type.
type ViewOptions struct {
	// Resource is the one to list and watch; zero: as the Go type's kind says.
	Resource schema.GroupVersionResource
	// Source, if set, is what to view; it stays the caller's to close. It excludes what follows.
	Source *Source
	// SourceOptions say what source the Informer needs. Equal ones share a source, however their
	// selection is written; those with functions (Selection.Keep, Transform, OnState) never do.
	SourceOptions
}

// Option sets some of the ViewOptions; any function may.
type Option func(*ViewOptions)

// InNamespaces selects the objects of these namespaces, each with a stream of its own. None is the
// whole cluster, and so is a single one with an empty name, as client-go has it. Given twice, the last
// one counts.
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

// WithStorage says in what form the objects are kept.
func WithStorage(s Storage) Option { return func(o *ViewOptions) { o.Storage = s } }

// On views a source that is open already, with every view of it sharing one copy.
func On(s *Source) Option { return func(o *ViewOptions) { o.Source = s } }

// fits tells why a view of the type cannot be opened on a source with these options.
func (o *SourceOptions) fits(c *codec) error {
	switch {
	case c.generic && o.Format == Protobuf:
		return fmt.Errorf("unstructured objects need JSON, and the source asks for protobuf")
	case !c.partial && o.MetadataOnly:
		return fmt.Errorf("the source has only metadata")
	case !c.protobuf && o.Format == Protobuf:
		return fmt.Errorf("the type cannot be read from protobuf, which the source asks for")
	}
	return nil
}

// needsJSON names what cannot do with protobuf; empty: nothing.
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

// isZero tells that nothing was asked for.
func (o *SourceOptions) isZero() bool { return reflect.ValueOf(*o).IsZero() }
