package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

const defaultBudget = 32 << 20

// FeedOptions tune a Feed. The zero value is usable.
type FeedOptions struct {
	// Budget bounds the bytes of queued versions, compressed as they are at rest; 0 means 32 MiB. A
	// feed that exceeds it gets net deltas and a Gap until it has caught up.
	Budget int64
	// SkipRestored starts the feed at the state that SourceOptions.Restore had: only what differs from
	// it is told. The feed must be the source's first.
	SkipRestored bool
	// Strict ends the feed with ErrBehind where it would exceed its budget, behind what is queued: for a
	// consumer that can have the source opened anew with what it has kept, and so misses nothing.
	Strict bool
}

// Feed hands a source's changes to one consumer.
type Feed struct{ consumer *consumer }

// Name is the name given to Source.Feed.
func (f *Feed) Name() string { return f.consumer.name }

// Next waits for the next batch, which is the caller's. It serves one goroutine. Its errors are
// ErrClosed, ErrBehind and those of ctx. What keeps a stream from getting on is not told here but by
// Source.Status and SourceOptions.OnState.
func (f *Feed) Next(ctx context.Context) (Batch, error) {
	b, err := f.consumer.queue.Next(ctx)
	source := f.consumer.source
	switch {
	case errors.Is(err, store.ErrClosed):
		return Batch{}, ErrClosed
	case errors.Is(err, store.ErrBehind):
		source.forget(f.consumer)
		return Batch{}, ErrBehind
	case err != nil:
		return Batch{}, err
	}
	source.hooks().lag(source.gvr, f.consumer)
	out := Batch{
		Stream:  source.streams[b.Stream].id,
		Epoch:   b.Epoch,
		Phase:   Phase(b.Phase),
		Version: b.Version,
		Served:  b.Served,
		Deltas:  make([]Delta, len(b.Deltas)),
	}
	if b.Gap != nil {
		out.Gap = gapOf(b.Gap)
	}
	for i := range b.Deltas {
		out.Deltas[i] = delta(&b.Deltas[i])
	}
	return out, nil
}

// Close ends the feed; what it holds is dropped.
func (f *Feed) Close() { f.consumer.stop() }

// Lag tells how far behind the consumer is.
func (f *Feed) Lag() Lag { return f.consumer.lag() }

func gapOf(g *store.Gap) *Gap {
	return &Gap{From: g.From, To: g.To, Since: g.Since, Until: g.Until, Reason: g.Reason}
}

func delta(d *store.Delta) Delta {
	return Delta{
		Op:       Op(d.Op),
		Key:      Key(d.Key),
		UID:      uidOf(d),
		Old:      version(d.Old),
		New:      version(d.New),
		Final:    version(d.Final),
		Initial:  d.Initial,
		Relisted: d.Relisted,
		At:       d.At,
		After:    d.After,
	}
}

// uidOf copies the UID: within the version it would keep the whole object in memory.
func uidOf(d *store.Delta) types.UID { return types.UID(strings.Clone(d.UID())) }

// version copies the resource version, which would keep the object in memory as well.
func version(v *compact.Version) Version {
	return Version{ResourceVersion: strings.Clone(v.RV()), v: v}
}

// Version is one version of an object, at rest. It is immutable.
type Version struct {
	ResourceVersion string
	v               *compact.Version
}

// NewVersion makes a version of an object's JSON, for tests of consumers. raw is copied.
func NewVersion(resourceVersion string, raw []byte) Version {
	var p compact.Packer
	return version(p.Pack(wire.JSON, "", resourceVersion, raw))
}

// IsZero tells an absent version.
func (v Version) IsZero() bool { return v.v == nil }

// Sum is a sum of the object's content as the server sent it, before any transform; 0: not known. Where UID
// and resource version are equal and the sums are not, the server served the object in another form.
func (v Version) Sum() uint64 { return v.v.Sum() }

// Size is what the version costs at rest, in bytes.
func (v Version) Size() int { return v.v.Size() }

// Raw returns the object's bytes, in JSON or as a bare protobuf message; they are the caller's. An
// absent version has none.
func (v Version) Raw() (raw []byte, format Format, err error) {
	if v.v == nil {
		return nil, JSON, nil
	}
	if v.v.Format() == wire.Protobuf {
		format = Protobuf
	}
	raw, err = v.v.Append(nil)
	return raw, format, err
}

// JSON returns the object's JSON; the bytes are the caller's. An absent version has none; one in
// protobuf is an error.
func (v Version) JSON() ([]byte, error) {
	raw, format, err := v.Raw()
	if err == nil && format != JSON {
		return nil, errors.New("read object: it is protobuf, not JSON")
	}
	return raw, err
}

// Object returns the decoded object; it is the caller's. Integers are int64. An absent version is a
// nil map; one in protobuf is an error.
func (v Version) Object() (map[string]any, error) {
	raw, err := v.JSON()
	if raw == nil || err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return o, nil
}
