package informer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	"github.com/tattler-dev/tattler/informer/internal/store"
)

const defaultBudget = 32 << 20

// FeedOptions tune a Feed. The zero value is usable.
type FeedOptions struct {
	// Budget bounds the bytes of queued versions, compressed as they are at rest; 0 means 32 MiB. A
	// feed that exceeds it gets net deltas and a Gap until it has caught up.
	Budget int64
}

// Feed hands a source's changes to one consumer.
type Feed struct {
	source *Source
	name   string
	queue  *store.Queue
}

// Name is the name given to Source.Feed.
func (f *Feed) Name() string { return f.name }

// Next waits for the next batch, which is the caller's. It serves one goroutine. Its errors are
// ErrClosed and those of ctx. What keeps a stream from getting on is not told here but by
// Source.Status and Options.OnState.
func (f *Feed) Next(ctx context.Context) (Batch, error) {
	b, err := f.queue.Next(ctx)
	if errors.Is(err, store.ErrClosed) {
		return Batch{}, ErrClosed
	}
	if err != nil {
		return Batch{}, err
	}
	out := Batch{
		Stream:  f.source.streams[b.Stream].id,
		Epoch:   b.Epoch,
		Phase:   Phase(b.Phase),
		Version: b.Version,
		Deltas:  make([]Delta, len(b.Deltas)),
	}
	if b.Gap != nil {
		out.Gap = &Gap{From: b.Gap.From, To: b.Gap.To, Since: b.Gap.Since, Until: b.Gap.Until, Reason: b.Gap.Reason}
	}
	for i := range b.Deltas {
		out.Deltas[i] = delta(&b.Deltas[i])
	}
	return out, nil
}

// Close ends the feed; what it holds is dropped.
func (f *Feed) Close() {
	f.queue.Close()
	f.source.forget(f)
}

func delta(d *store.Delta) Delta {
	return Delta{
		Op:       Op(d.Op),
		Key:      Key(d.Key),
		UID:      types.UID(d.UID),
		Old:      version(d.Old),
		New:      version(d.New),
		Final:    version(d.Final),
		Initial:  d.Initial,
		Relisted: d.Relisted,
		At:       d.At,
		After:    d.After,
	}
}

func version(v store.Version) Version {
	return Version{ResourceVersion: v.RV, object: v.Object}
}

// Version is one version of an object, at rest. It is immutable.
type Version struct {
	ResourceVersion string
	object          compact.Object
}

// NewVersion makes a version of an object's JSON, for tests of consumers. raw is copied.
func NewVersion(resourceVersion string, raw []byte) Version {
	var p compact.Packer
	return Version{ResourceVersion: resourceVersion, object: p.Pack(raw)}
}

// IsZero tells an absent version.
func (v Version) IsZero() bool { return v.object.IsZero() && v.ResourceVersion == "" }

// Size is what the version costs at rest, in bytes.
func (v Version) Size() int { return v.object.Size() }

// JSON returns the object's JSON; the bytes are the caller's. An absent version has none.
func (v Version) JSON() ([]byte, error) { return v.object.JSON() }

// Object returns the decoded object; it is the caller's. Integers are int64. An absent version is a
// nil map.
func (v Version) Object() (map[string]any, error) {
	raw, err := v.object.JSON()
	if raw == nil || err != nil {
		return nil, err
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return o, nil
}
