package soak

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer"
)

// version identifies an object and its version.
type version struct {
	uid types.UID
	rv  string
}

// trail follows a subscription: it checks each change against the earlier ones, and replays them.
type trail[T informer.Object] struct {
	name     string
	resource string
	mode     informer.Mode
	informer *informer.Informer[T]
	sub      *informer.Subscription[T]
	rules    rules

	mu       sync.Mutex
	state    map[informer.Key]version // the sum of the changes
	newest   map[types.UID]string     // the last version shown of each object
	deleted  map[types.UID]object     // until they return
	shown    []shown
	gaps     []informer.Gap
	changes  int // all of them
	later    int // changes after the initial state
	problems []error
	err      error // the error that ended it
	ended    chan struct{}
}

// rules say which changes a trail may receive.
type rules struct {
	returns bool // an object may leave and return: there is a selector
	midway  bool // it received no initial state: SkipInitial
	history bool // the server's history is replaced: versions go back, objects return
}

// follow adds a trail to a view.
func follow[T informer.Object](ctx context.Context, t *testing.T, v *watched[T], name string, o informer.SubscribeOptions, r rules, gate <-chan struct{}) *trail[T] {
	t.Helper()
	tr := must(trailOf(ctx, v.Informer, name, o, r, gate))(t)
	v.trails = append(v.trails, tr)
	return tr
}

// trailOf subscribes and reads until the context or the subscription ends. If gate is set, it reads nothing
// until gate is closed.
func trailOf[T informer.Object](ctx context.Context, i *informer.Informer[T], name string, o informer.SubscribeOptions, r rules, gate <-chan struct{}) (*trail[T], error) {
	sub, err := i.Subscribe(name, o)
	if err != nil {
		return nil, fmt.Errorf("subscribe %s: %w", name, err)
	}
	tr := &trail[T]{
		name: name, resource: i.Source().Status()[0].Stream.Resource.Resource, mode: o.Mode, informer: i, sub: sub, rules: r,
		state: map[informer.Key]version{}, newest: map[types.UID]string{}, deleted: map[types.UID]object{},
		ended: make(chan struct{}),
	}
	tr.rules.midway = tr.rules.midway || o.SkipInitial
	go func() {
		defer close(tr.ended)
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		for {
			c, err := sub.Next(ctx)
			if err != nil {
				tr.mu.Lock()
				tr.err = err
				tr.mu.Unlock()
				return
			}
			tr.take(c)
		}
	}()
	return tr, nil
}

func (tr *trail[T]) take(c *informer.Change[T]) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.changes++
	if !c.Initial {
		tr.later++
	}
	if c.Op == informer.Gapped {
		tr.gaps = append(tr.gaps, *c.Gap)
		return
	}
	if err := tr.check(c); err != nil {
		tr.problems = append(tr.problems, fmt.Errorf("change %d, %v %v (UID %s, %q to %q, initial %v, relisted %v): %w", tr.changes, c.Op,
			c.Key, c.UID, c.OldResourceVersion(), c.ResourceVersion(), c.Initial, c.Relisted, err))
	}
	if c.Op == informer.Deleted {
		delete(tr.state, c.Key)
		tr.deleted[c.UID] = object{tr.resource, c.Key}
		return
	}
	v := version{c.UID, c.ResourceVersion()}
	tr.state[c.Key] = v
	tr.newest[c.UID] = v.rv
	delete(tr.deleted, c.UID)
}

// check returns an error if a change contradicts the earlier ones.
func (tr *trail[T]) check(c *informer.Change[T]) error {
	known, has := tr.state[c.Key]
	last, seen := tr.newest[c.UID]
	_, gone := tr.deleted[c.UID]
	old := version{known.uid, c.OldResourceVersion()}
	switch {
	case c.Op == informer.Added && has:
		return fmt.Errorf("added, but it was %v", known)
	case c.Op == informer.Added && old.rv != "":
		return errors.New("added, with an old version")
	case c.Op != informer.Added && !has && !tr.rules.midway:
		return errors.New("a change of an object that was not added")
	case c.Op != informer.Added && has && (known.uid != c.UID || old != known):
		return fmt.Errorf("the object before was %v", known)
	case gone && !tr.rules.returns && !tr.rules.history:
		return errors.New("the object was deleted before")
	case c.Op == informer.Deleted && c.ResourceVersion() != "":
		return errors.New("deleted, with a new version")
	case c.Op != informer.Deleted && seen && !tr.rules.history && !older(last, c.ResourceVersion()):
		return fmt.Errorf("shown at %s before", last)
	case c.Initial && synced(tr.sub):
		return errors.New("initial, after the subscription was synced")
	case c.Initial && tr.rules.midway:
		return errors.New("initial, but the initial state is skipped")
	}
	return errors.Join(tr.read(c), tr.cached(c))
}

func synced[T informer.Object](s *informer.Subscription[T]) bool {
	select {
	case <-s.Synced():
		return true
	default:
		return false
	}
}

// read decodes some changes, in mode Every all of them, and records the versions.
func (tr *trail[T]) read(c *informer.Change[T]) error {
	if c.Op != informer.Added && tr.changes%16 == 0 {
		old, err := c.Old()
		if err == nil {
			err = is(old, c.Key, version{c.UID, c.OldResourceVersion()})
		}
		if err != nil {
			return err
		}
	}
	if c.Op == informer.Deleted || tr.changes%4 != 0 && tr.mode == informer.Latest {
		return nil
	}
	obj, err := c.New()
	if err != nil {
		return err
	}
	tr.shown = append(tr.shown, showing(tr.resource, obj))
	return is(obj, c.Key, version{c.UID, c.ResourceVersion()})
}

func is[T informer.Object](obj T, k informer.Key, v version) error {
	if got := (informer.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}); got != k {
		return fmt.Errorf("decoded, it is %v", got)
	}
	if got := (version{obj.GetUID(), obj.GetResourceVersion()}); got != v {
		return fmt.Errorf("decoded, it is %v, not %v", got, v)
	}
	return nil
}

// cached checks that the cache shows the change already, or a later one.
func (tr *trail[T]) cached(c *informer.Change[T]) error {
	if tr.changes%8 != 0 {
		return nil // checking is expensive
	}
	obj, err := tr.informer.Get(c.Key.Namespace, c.Key.Name)
	switch {
	case tr.rules.history:
		return nil
	case errors.Is(err, informer.ErrNotFound): // by now
		return nil
	case err != nil:
		return err
	case c.Op == informer.Deleted && obj.GetUID() == c.UID && !tr.rules.returns:
		return errors.New("the cache still has it")
	case c.Op != informer.Deleted && obj.GetUID() == c.UID && older(obj.GetResourceVersion(), c.ResourceVersion()):
		return fmt.Errorf("the cache is at %s", obj.GetResourceVersion())
	case c.Op != informer.Deleted && obj.GetUID() != c.UID && older(obj.GetResourceVersion(), c.ResourceVersion()):
		return fmt.Errorf("the cache has an earlier object, at %s", obj.GetResourceVersion())
	}
	return nil
}

// diff returns an error if the replayed state differs from want.
func (tr *trail[T]) diff(want map[informer.Key]version) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if !tr.rules.midway {
		return differ(tr.state, want)
	}
	for k, v := range tr.state { // objects in its changes
		if want[k] != v {
			return fmt.Errorf("%v is %v, want %v", k, v, want[k])
		}
	}
	return nil
}

// verify returns the problems found.
func (tr *trail[T]) verify(l *ledger) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	problems := tr.problems
	for _, s := range tr.shown {
		if err := l.explain(s); err != nil {
			problems = append(problems, err)
		}
	}
	for uid, o := range tr.deleted {
		if !tr.rules.returns && !tr.rules.history && !l.mayBeGone(o, string(uid)) {
			problems = append(problems, fmt.Errorf("%v, UID %s: shown as deleted, but it was not deleted", o, uid))
		}
	}
	if tr.changes == 0 {
		problems = append(problems, errors.New("nothing was shown"))
	}
	return wrap(tr.name, first(problems))
}

// differ returns an error if two states differ.
func differ[V comparable](got, want map[informer.Key]V) error {
	var lines []string
	n := 0
	note := func(format string, args ...any) {
		if n++; n <= 5 {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	for k, v := range want {
		if g, ok := got[k]; !ok {
			note("%v is missing, want %v", k, v)
		} else if g != v {
			note("%v is %v, want %v", k, g, v)
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			note("%v is %v, want nothing", k, g)
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d objects differ: %s", n, len(want), strings.Join(lines, "; "))
}

// older compares resource versions of one history, which are numbers on this test's servers.
func older(a, b string) bool {
	x, ok := new(big.Int).SetString(a, 10)
	y, ok2 := new(big.Int).SetString(b, 10)
	return ok && ok2 && x.Cmp(y) < 0
}

// because counts the gaps with a reason.
func (tr *trail[T]) because(reason string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := 0
	for _, g := range tr.gaps {
		if strings.Contains(g.Reason, reason) {
			n++
		}
	}
	return n
}

// over waits until the subscription has ended, and returns its error.
func (tr *trail[T]) over(ctx context.Context) error {
	select {
	case <-tr.ended:
		return tr.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// laterChanges counts the changes after the initial state.
func (tr *trail[T]) laterChanges() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.later
}
