package feed

import (
	"errors"
	"io"
	"iter"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// Steps does what a source does between a watch's bytes and a feed's Version, one step at a time and for JSON only. It
// is for benchmarks that count what each step costs. It serves one goroutine at a time.
type Steps struct {
	sumKey []byte
	packer compact.Packer
}

// NewSteps returns the steps of a source with this Options.SumKey.
func NewSteps(sumKey []byte) *Steps {
	return &Steps{sumKey, compact.Packer{Router: compact.NewRouter(compact.Options{})}}
}

// CutObject is an object of a watch, with what is read while it is cut.
type CutObject struct {
	Key                  informer.Key
	UID, ResourceVersion string
	// Raw is valid until the next object.
	Raw []byte
}

// Cut yields the objects of a watch stream until it ends. An error ends it, too.
func (s *Steps) Cut(body io.Reader) iter.Seq2[CutObject, error] {
	return func(yield func(CutObject, error) bool) {
		frames := wire.NewWatch(wire.JSON, body)
		for {
			ev, err := frames.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			o := CutObject{informer.Key{Namespace: ev.Namespace, Name: ev.Name}, ev.UID, ev.ResourceVersion, ev.Raw}
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

// DropManagedFields returns an object without managedFields, as with SourceOptions.DropManagedFields.
func (s *Steps) DropManagedFields(raw []byte) []byte { return wire.DropManagedFields(wire.JSON, raw) }

// Sum returns the keyed checksum of the object that the server sent: see Version.Sum.
func (s *Steps) Sum(raw []byte) uint64 { return wire.KeyedSum(s.sumKey, wire.JSON, raw) }

// Pack packs an object, as a difference from a similar one where that pays.
func (s *Steps) Pack(uid, resourceVersion string, sum uint64, raw []byte) Version {
	return version(s.packer.PackSummed(wire.JSON, uid, resourceVersion, sum, raw))
}
