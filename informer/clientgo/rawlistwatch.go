package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rawListerWatcher has the ListerWatcher of an informer ask, takes the answers away from it, and hands on
// rawObjects.
type rawListerWatcher struct{ *rawSource }

var _ cache.ListerWatcherWithContext = rawListerWatcher{}

// IsWatchListSemanticsUnSupported is what the ListerWatcher says of itself.
func (r rawListerWatcher) IsWatchListSemanticsUnSupported() bool {
	return unsupportedWatchList(r.informer.lw)
}

func unsupportedWatchList(lw any) bool {
	says, ok := lw.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && says.IsWatchListSemanticsUnSupported()
}

// List implements cache.Lister.
func (r rawListerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(r.ctx, o)
}

// Watch implements cache.Watcher.
func (r rawListerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(r.ctx, o)
}

// errDeclined is seen by nobody.
var errDeclined = errors.New("another Reflector goes on")

// ListWithContext implements cache.ListerWithContext. Where the answer is not to be had so, it returns once
// nobody waits for it.
func (r rawListerWatcher) ListWithContext(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if _, why := r.state(); why == "" {
		l, err := r.list(o)
		var not *declined
		switch {
		case err == nil:
			return l, nil
		case !errors.As(err, &not):
			return nil, err
		}
		r.decline(not)
	}
	<-r.over
	return nil, errDeclined
}

// WatchWithContext implements cache.WatcherWithContext. Where the answer is not to be had so, it returns a
// watch of nothing, for a Reflector that is about to end.
func (r rawListerWatcher) WatchWithContext(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if _, why := r.state(); why == "" {
		w, err := r.watch(o)
		var not *declined
		if !errors.As(err, &not) {
			return w, err
		}
		r.decline(not)
	}
	return watch.NewFake(), nil
}

// declined is why answers cannot be taken, and one that was not.
type declined struct {
	why  error
	hand handover
}

func (d *declined) Error() string { return d.why.Error() }

// list reads a page.
func (r *rawSource) list(o metav1.ListOptions) (*internalversion.List, error) {
	var got page
	var s *sample
	first := r.kindsOf(false) == nil
	t := &tap{ctx: r.ctx}
	t.read = func(req *http.Request, body io.Reader, f wire.Format) ([]byte, error) {
		p, err := r.readPage(body, f)
		if err != nil {
			return nil, err
		}
		made := newSample(r.informer.example, r.below(req))
		if err := t.note(func() { got, s = p, made }); err != nil {
			return nil, err
		}
		return made.list(p.meta, !first), nil
	}
	l, err := r.lw.ListWithContext(t.mark(r.ctx), o)
	c := t.end()
	switch {
	case c.taken > 1:
		return nil, &declined{why: errSeveral}
	case c.taken == 0 && err == nil, c.elsewhere(err):
		return nil, &declined{c.reason(), handover{list: l, err: err, with: o}}
	case got.items == nil && err != nil: // nothing came, or not to its end
		return nil, err
	case err != nil && first: // it does not understand what is made up
		return nil, &declined{why: fmt.Errorf("%w: %w", errAltered, err)}
	case err != nil:
		return nil, err
	case got.items == nil, !first && meta.LenList(l) > 0:
		return nil, &declined{why: errAltered}
	}
	if first {
		k, err := s.checkList(l)
		if err != nil {
			return nil, &declined{why: err}
		}
		r.setKinds(false, k)
	}
	m, err := meta.ListAccessor(l)
	if err != nil {
		return nil, &declined{why: errAltered}
	}
	k := *r.kindsOf(false)
	for _, obj := range got.items {
		if o, ok := obj.(*rawObject); ok {
			r.settle(o, k)
		}
	}
	list := &internalversion.List{Items: got.items}
	list.ResourceVersion, list.Continue = m.GetResourceVersion(), m.GetContinue()
	return list, nil
}

// watch opens a watch.
func (r *rawSource) watch(o metav1.ListOptions) (watch.Interface, error) {
	var s *sample
	first := r.kindsOf(true) == nil
	t := &tap{ctx: r.ctx, watch: true}
	if first {
		t.made = func(req *http.Request) []byte {
			s = newSample(r.informer.example, r.below(req))
			return s.events()
		}
	}
	w, err := r.lw.WatchWithContext(t.mark(r.ctx), o)
	c := t.end()
	switch {
	case c.taken == 0 && err == nil && c.broken && c.unfit == "": // client-go's clients make an empty watch of that
		return w, nil
	case c.taken == 0 && err == nil, c.elsewhere(err):
		return nil, &declined{c.reason(), handover{watch: w, err: err, with: o}}
	case err != nil && (c.taken == 0 || !first):
		c.drop()
		return nil, err
	}
	if err := r.untouched(s, c, w, err); err != nil {
		c.drop()
		return nil, &declined{why: err}
	}
	d := &rawDecoder{
		rawSource: r, body: c.body, frames: wire.NewWatch(c.format, c.body), kinds: *r.kindsOf(true),
		initial: o.SendInitialEvents != nil && *o.SendInitialEvents,
	}
	return newRawWatch(r.ctx, d), nil
}

// untouched ends a watch whose answer was taken, and tells why that cannot be used; s is what came instead, if
// anything did.
func (r *rawSource) untouched(s *sample, c caught, w watch.Interface, err error) error {
	if w != nil {
		defer w.Stop()
	}
	switch {
	case c.taken > 1:
		return errSeveral
	case err != nil:
		return fmt.Errorf("%w: %w", errAltered, err)
	case s == nil:
		return nil
	}
	k, err := s.checkWatch(r.ctx, w)
	if err == nil {
		r.setKinds(true, k)
	}
	return err
}

// below is a request's path below the server's address.
func (r *rawSource) below(req *http.Request) string {
	return belowBase(req.URL.Path, r.informer.engine.base)
}

func (r *rawSource) kindsOf(watch bool) *kinds {
	r.mu.Lock()
	defer r.mu.Unlock()
	if watch {
		return r.watched
	}
	return r.listed
}

func (r *rawSource) setKinds(watch bool, k kinds) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if watch {
		r.watched = &k
	} else {
		r.listed = &k
	}
}

// handover is an answer that another Reflector can use, if it asks for the same first.
type handover struct {
	list  runtime.Object
	watch watch.Interface
	err   error
	with  metav1.ListOptions
}

// before is a ListerWatcher that begins with what was handed over.
func (h handover) before(lw cache.ListerWatcher) cache.ListerWatcher {
	if h.list == nil && h.watch == nil && h.err == nil {
		return lw
	}
	return &continued{ListerWatcherWithContext: cache.ToListerWatcherWithContext(lw), of: lw, hand: &h}
}

// drop ends a watch that nobody wants.
func (h handover) drop() {
	if h.watch != nil {
		h.watch.Stop()
	}
}

// continued answers once with what it was handed over. One goroutine calls it at a time.
type continued struct {
	cache.ListerWatcherWithContext
	of   cache.ListerWatcher
	hand *handover
}

// IsWatchListSemanticsUnSupported is what the ListerWatcher says of itself.
func (c *continued) IsWatchListSemanticsUnSupported() bool { return unsupportedWatchList(c.of) }

// List implements cache.Lister.
func (c *continued) List(o metav1.ListOptions) (runtime.Object, error) {
	return c.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher.
func (c *continued) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return c.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWithContext.
func (c *continued) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if h := c.take(o); h.list != nil || h.err != nil {
		return h.list, h.err
	}
	return c.ListerWatcherWithContext.ListWithContext(ctx, o)
}

// WatchWithContext implements cache.WatcherWithContext.
func (c *continued) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if h := c.take(o); h.watch != nil || h.err != nil {
		return h.watch, h.err
	}
	return c.ListerWatcherWithContext.WatchWithContext(ctx, o)
}

// take returns what was handed over, once, if it answers what is asked now. A watch that nobody wants ends.
func (c *continued) take(o metav1.ListOptions) handover {
	h := c.hand
	if h == nil {
		return handover{}
	}
	same := h.with.ResourceVersion == o.ResourceVersion && h.with.Limit == o.Limit && h.with.Continue == o.Continue &&
		(h.with.SendInitialEvents == nil) == (o.SendInitialEvents == nil) && h.with.AllowWatchBookmarks == o.AllowWatchBookmarks
	if h.list != nil && !same && o.SendInitialEvents != nil {
		return handover{} // a streaming list, which may be refused: then it is asked for what there is
	}
	c.hand = nil
	if !same {
		h.drop()
		return handover{}
	}
	return *h
}
