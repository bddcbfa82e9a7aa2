package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
)

// feedTrail follows the feed of a source with one stream, and checks that every version that the server
// confirmed arrived, unless a gap covers it.
type feedTrail struct {
	name     string
	resource string
	from     int // the first write after the feed's start
	feed     *feed.Feed
	ended    chan struct{}

	mu       sync.Mutex
	state    map[informer.Key]version
	seen     map[version]bool
	base     string   // the version of the first complete state
	live     string   // the last live version
	open     *gap     // since when versions may be missing
	gaps     []gap    // closed gaps
	reasons  []string // of all gaps
	shown    []shown  // the versions that arrived
	problems []error  // with what arrived
	epoch    int64    // of the last batch
	final    map[types.UID]bool
}

// gap is a range of versions that may be missing: after from, up to to.
type gap struct{ from, to string }

func feeding(ctx context.Context, s *informer.Source, name string, from int) (*feedTrail, error) {
	feed, err := feed.Join(s, name, 0)
	if err != nil {
		return nil, fmt.Errorf("feed %s: %w", name, err)
	}
	f := &feedTrail{
		name: name, resource: s.Status()[0].Stream.Resource.Resource, from: from, feed: feed, ended: make(chan struct{}),
		state: map[informer.Key]version{}, seen: map[version]bool{}, final: map[types.UID]bool{},
	}
	go func() {
		defer close(f.ended)
		for {
			b, err := feed.Next(ctx)
			if err != nil {
				return
			}
			f.take(&b)
		}
	}()
	return f, nil
}

func (f *feedTrail) take(b *feed.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.Gap != nil {
		f.reasons = append(f.reasons, b.Gap.Reason)
		if f.open == nil {
			f.open = &gap{from: b.Gap.From}
		}
	}
	for i := range b.Deltas {
		d := &b.Deltas[i]
		if err := f.delta(d); err != nil {
			f.problems = append(f.problems, fmt.Errorf("%v %v (%q to %q): %w", d.Op, d.Key, d.Old.ResourceVersion, d.New.ResourceVersion, err))
		}
	}
	if b.Epoch < f.epoch {
		f.problems = append(f.problems, fmt.Errorf("epoch %d after %d", b.Epoch, f.epoch))
	}
	f.epoch = b.Epoch
	if b.Phase != feed.Live {
		return
	}
	if older(b.Version, f.live) || b.Version == "" {
		f.problems = append(f.problems, fmt.Errorf("version %q after %q", b.Version, f.live))
	}
	f.live = b.Version
	if f.base == "" {
		f.base = b.Version
	}
	if f.open != nil {
		f.open.to = b.Version
		f.gaps = append(f.gaps, *f.open)
		f.open = nil
	}
}

func (f *feedTrail) delta(d *feed.Delta) error {
	before, has := f.state[d.Key]
	switch {
	case d.Op == informer.Added && has:
		return fmt.Errorf("it was %v", before)
	case d.Op != informer.Added && before != version{d.UID, d.Old.ResourceVersion}:
		return fmt.Errorf("it was %v", before)
	case d.Op == informer.Updated && !older(before.rv, d.New.ResourceVersion):
		return errors.New("not newer")
	case f.final[d.UID]:
		return errors.New("the object was deleted before")
	case d.Op == informer.Deleted:
		delete(f.state, d.Key)
		f.final[d.UID] = true
		if d.Final.IsZero() && !d.Relisted {
			return errors.New("the deletion has no version")
		}
		return nil
	}
	v := version{d.UID, d.New.ResourceVersion}
	f.state[d.Key], f.seen[v] = v, true
	obj, err := d.New.Object()
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: obj}
	f.shown = append(f.shown, showing(f.resource, u))
	return is(u, d.Key, v)
}

func (f *feedTrail) diff(want map[informer.Key]version) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return differ(f.state, want)
}

// verify checks the feed once it has caught up.
func (f *feedTrail) verify(l *ledger) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	problems := f.problems
	for _, s := range f.shown {
		if err := l.explain(s); err != nil {
			problems = append(problems, err)
		}
	}
	for _, w := range l.since(f.from, f.resource) {
		if v := (version{types.UID(w.uid), w.rv}); !f.seen[v] && !f.excused(w.rv) {
			problems = append(problems, fmt.Errorf("%v of %v is missing without a gap (%v)", v, w.object, f.gaps))
		}
	}
	return wrap(f.name, first(problems))
}

// excused reports whether a version may be missing.
func (f *feedTrail) excused(rv string) bool {
	if !older(f.base, rv) {
		return true // the first list had the state
	}
	for _, g := range f.gaps {
		if older(g.from, rv) && !older(g.to, rv) {
			return true
		}
	}
	return false
}

// first joins the first of many problems.
func first(problems []error) error {
	if len(problems) <= 10 {
		return errors.Join(problems...)
	}
	return fmt.Errorf("%d problems, first: %w", len(problems), errors.Join(problems[:10]...))
}

// because counts the gaps with a reason.
func (f *feedTrail) because(reason string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.reasons {
		if strings.Contains(r, reason) {
			n++
		}
	}
	return n
}
