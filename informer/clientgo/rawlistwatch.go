package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rawListerWatcher lets an informer's ListerWatcher form the requests, intercepts the responses, and returns
// rawObjects. The ListerWatcher itself gets an empty list, or a watch without events that lasts as long as the
// server's. If it returns anything else, that is an error.
type rawListerWatcher struct{ *rawSource }

var _ cache.ListerWatcherWithContext = rawListerWatcher{}

var (
	errElsewhere = errors.New("the request was not sent by Engine.HTTPClient with the context of the call: " +
		"make the client with Engine.HTTPClient, or set Options.Decoded")
	errSeveral = errors.New("the ListerWatcher sent several requests at once: set Options.Decoded")
	errAltered = errors.New("the ListerWatcher returned objects that the server did not send: set Options.Decoded")
)

// IsWatchListSemanticsUnSupported returns the ListerWatcher's own answer.
func (r rawListerWatcher) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(r.informer.lw)
}

// List implements cache.Lister.
func (r rawListerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher.
func (r rawListerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWithContext: it reads a page.
func (r rawListerWatcher) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	var got page
	t := newTap(o, false)
	t.read = func(body io.Reader, f wire.Format) ([]byte, error) {
		p, err := r.readPage(body, f)
		if err != nil {
			return nil, err
		}
		return p.empty(), t.record(func() { got = p })
	}
	l, err := r.lw.ListWithContext(t.mark(ctx), o)
	c := t.end()
	switch {
	case err != nil:
		return nil, err
	case c.taken > 1:
		return nil, errSeveral
	case got.items == nil:
		return nil, c.reason()
	case meta.LenList(l) > 0:
		return nil, errAltered
	}
	list := &internalversion.List{Items: got.items}
	list.ResourceVersion, list.Continue = got.meta.ResourceVersion, got.meta.Continue
	return list, nil
}

// WatchWithContext implements cache.WatcherWithContext.
func (r rawListerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	t := newTap(o, true)
	w, err := r.lw.WatchWithContext(t.mark(ctx), o)
	c := t.end()
	if c.taken == 1 && err == nil && w != nil {
		d := &rawDecoder{
			rawSource: r.rawSource, body: c.body, frames: wire.NewWatch(c.format, c.body),
			initial: o.SendInitialEvents != nil && *o.SendInitialEvents,
		}
		return newRawWatch(ctx, d, w), nil
	}
	c.drop()
	switch {
	case err != nil:
		return nil, err
	case c.broken && c.taken == 0 && w != nil: // client-go's clients return an empty watch in this case
		return w, nil
	case w != nil:
		w.Stop()
	}
	if c.taken > 1 {
		return nil, errSeveral
	}
	return nil, c.reason()
}

// page is a page of a list. items is nil if it was not read to its end.
type page struct {
	items            []runtime.Object
	meta             wire.ListMeta
	apiVersion, kind string
}

// empty is the JSON of the list without its items.
func (p *page) empty() []byte {
	return fmt.Appendf(nil, `{"apiVersion":%s,"kind":%s,"metadata":{"resourceVersion":%s,"continue":%s},"items":[]}`,
		quoted(p.apiVersion), quoted(p.kind), quoted(p.meta.ResourceVersion), quoted(p.meta.Continue))
}

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return b
}
