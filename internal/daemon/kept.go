package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/journal"
)

// kept lets capture resume its streams from the journal.
type kept struct {
	cluster string // see journal.ClusterKey
	journal *journal.Journal
	log     *slog.Logger
	since   time.Time
	epochs  map[schema.GroupResource]int64
	kinds   []capture.KeptKind

	mu      sync.Mutex
	damaged map[journal.Stream]bool // streams with an object that cannot be read
}

// newKept determines when the last change of a cluster was recorded, and in which epochs.
func newKept(ctx context.Context, j *journal.Journal, cluster string, log *slog.Logger) (*kept, error) {
	streams, err := j.Streams(ctx)
	if err != nil {
		return nil, fmt.Errorf("read streams of the journal: %w", err)
	}
	epochs, err := j.Epochs(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("read epochs of the journal: %w", err)
	}
	k := &kept{cluster: cluster, journal: j, log: log, epochs: map[schema.GroupResource]int64{}, damaged: map[journal.Stream]bool{}}
	for gr, epoch := range epochs {
		k.epochs[schema.ParseGroupResource(gr)] = epoch
	}
	for _, s := range streams {
		if s.Stream.Cluster == cluster && s.Head.At.After(k.since) {
			k.since = s.Head.At
		}
	}
	k.kinds, err = keptKinds(ctx, j, cluster, streams)
	return k, err
}

// keptKinds returns the kinds of a cluster, each in the version in which it was last watched.
func keptKinds(ctx context.Context, j *journal.Journal, cluster string, streams []journal.StreamHead) (kinds []capture.KeptKind, err error) {
	all, err := j.Kinds(ctx)
	if err != nil {
		return nil, fmt.Errorf("read kinds of the journal: %w", err)
	}
	short, err := j.ShortNames(ctx)
	if err != nil {
		return nil, fmt.Errorf("read short names of the journal: %w", err)
	}
	at, watched := map[string]int{}, map[string]string{}
	for _, s := range streams {
		if s.Stream.Cluster == cluster {
			gr := s.Stream.GroupResource
			watched[gr] = cmp.Or(capture.PipelineVersion(s.Head.Pipeline), watched[gr])
		}
	}
	for _, kind := range all {
		if kind.Cluster != cluster || kind.Group == journal.AbsenceKind.Group {
			continue
		}
		gr := kind.GroupResource()
		version, held := watched[gr]
		k := capture.KeptKind{Held: held, Resource: capture.Resource{
			Group: kind.Group, Version: kind.Version, Resource: kind.Resource, Kind: kind.Kind, Namespaced: kind.Namespaced,
			Singular: strings.ToLower(kind.Kind), ShortNames: short[gr],
		}}
		if len(k.ShortNames) > 0 {
			k.Short = k.ShortNames[0]
		}
		switch i, known := at[gr]; {
		case !known:
			at[gr] = len(kinds)
			kinds = append(kinds, k)
		case kinds[i].Version != version || k.Version == version:
			kinds[i] = k
		}
	}
	for gr, version := range watched {
		if _, known := at[gr]; !known && version != "" { // it never had an object
			resource, group, _ := strings.Cut(gr, ".")
			kinds = append(kinds, capture.KeptKind{Held: true, Resource: capture.Resource{Group: group, Version: version, Resource: resource}})
		}
	}
	return kinds, nil
}

// Kinds implements capture.Kept.
func (k *kept) Kinds() []capture.KeptKind { return k.kinds }

// Since implements capture.Kept.
func (k *kept) Since() time.Time { return k.since }

// Epochs implements capture.Kept.
func (k *kept) Epochs() map[schema.GroupResource]int64 { return k.epochs }

// State implements capture.Kept. A new stream continues from the state that other streams, under another
// configuration, have kept of its objects; if that is not possible, it only gets the reason of a gap. A stream
// with an unreadable object lists, and is compared with the other objects.
func (k *kept) State(ctx context.Context, s capture.Stream) (*capture.State, error) {
	name := streamOf(s, k.cluster)
	from, h, err := k.journal.Resume(ctx, name)
	if err != nil || from == journal.OriginNone {
		return nil, err
	}
	st := &capture.State{WasLive: h.EverLive && !k.isDamaged(name), Pipeline: h.Pipeline}
	st.Restored = feed.Restored{Epoch: h.Epoch, Identity: h.Identity, Served: h.Served, At: h.At}
	switch from {
	case journal.OriginOwn, journal.OriginOthers:
		st.Objects = k.objects(ctx, name)
	case journal.OriginLost:
		st.Reason = "nothing is known since " + h.At.UTC().Format(time.RFC3339)
	}
	if from == journal.OriginOthers {
		st.Reason = "what is watched was changed"
	}
	if h.Live && !k.isDamaged(name) {
		st.Version = h.Version
		if st.Version == "" && st.Reason == "" {
			st.Reason = "an object could not be read"
		}
	}
	return st, nil
}

// objects yields the last states of a stream. The first damaged one ends it with an error; State is then called
// again and leaves that object out. A damaged page of the file ends it each time.
func (k *kept) objects(ctx context.Context, name journal.Stream) iter.Seq2[feed.RestoredObject, error] {
	return func(yield func(feed.RestoredObject, error) bool) {
		for o, err := range k.journal.Objects(ctx, name) {
			var damage *journal.DamagedError
			if errors.As(err, &damage) && k.note(name, o, err) {
				continue
			}
			r := feed.RestoredObject{
				Key: informer.Key{Namespace: o.Namespace, Name: o.Name},
				UID: o.UID, ResourceVersion: o.ResourceVersion, Sum: o.Sum, JSON: o.JSON,
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// note logs damage, and reports whether the object can be left out.
func (k *kept) note(name journal.Stream, o journal.Object, err error) (leaveOut bool) {
	again := k.isDamaged(name)
	k.mu.Lock()
	k.damaged[name] = true
	k.mu.Unlock()
	switch {
	case o.Name != "":
		k.log.Error("an object in the journal is damaged; reading it from the cluster again",
			"stream", name.GroupResource, "namespace", o.Namespace, "name", o.Name, "error", err)
		return again
	case !again: // State is called every few seconds
		k.log.Error("a page of the journal is damaged, and its objects are unknown: this kind is not recorded until the file is replaced. "+
			"`tattler journal verify` shows what can be read; stop the daemon and move the journal away to start a new one",
			"stream", name.GroupResource, "error", err)
	}
	return false
}

func (k *kept) isDamaged(name journal.Stream) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.damaged[name]
}

func streamOf(s capture.Stream, cluster string) journal.Stream {
	return journal.Stream{Cluster: cluster, GroupResource: s.Resource.GroupResource(), Namespace: s.Namespace, Selection: s.Selection}
}
