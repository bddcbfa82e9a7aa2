package clientgo

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// collection is what a ListerWatcher asks the API server for.
type collection struct {
	path     string     // below the server's address
	query    url.Values // selectors and the like
	protobuf bool
	metadata bool
	kind     schema.GroupVersionKind // what its objects say that they are; empty: nothing
}

// probeTimeout bounds the two calls, which need no server where they are captured.
const probeTimeout = 10 * time.Second

// steering are the parameters that say how to list or watch, not what.
var steering = []string{
	"allowWatchBookmarks", "continue", "limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
	"timeout", "timeoutSeconds", "watch",
}

// probe finds out what a ListerWatcher asks for, by asking it under a marked context. False is
// returned where its requests do not come by our client, where it makes several, or where what it
// hands on is not what it gets: its objects can only be had from itself.
func (e *Engine) probe(ctx context.Context, lw cache.ListerWatcher, example any) (collection, bool) {
	body := probeList(example)
	if e.http == nil || e.opts.decoded(example) || body == nil {
		return collection{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	both := cache.ToListerWatcherWithContext(lw)
	c := &capture{answer: body}
	list, err := both.ListWithContext(c.mark(ctx), metav1.ListOptions{Limit: 1})
	listed, ok := c.only()
	if err != nil || !ok {
		return collection{}, false
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) != 1 || !isProbe(items[0], example) {
		return collection{}, false
	}
	// Only now, since to whoever is not captured another watch may be one too many.
	if watched, ok := probeWatch(ctx, both); !ok || watched.url.Path != listed.url.Path {
		return collection{}, false
	}
	return e.collectionOf(listed, kindOf(items[0]))
}

func probeWatch(ctx context.Context, lw cache.ListerWatcherWithContext) (captured, bool) {
	c := &capture{}
	w, err := lw.WatchWithContext(c.mark(ctx), metav1.ListOptions{})
	if err == nil && w != nil {
		w.Stop()
		readToEnd(ctx, w)
	}
	return c.only()
}

// readToEnd waits until whoever reads the answer has seen its end.
func readToEnd(ctx context.Context, w watch.Interface) {
	for {
		select {
		case _, ok := <-w.ResultChan():
			if !ok {
				return
			}
		case <-ctx.Done(): // not everybody closes the channel
			return
		}
	}
}

// collectionOf reads a request for a list, whose object said that it is of a kind: the answer did not.
func (e *Engine) collectionOf(r captured, kind schema.GroupVersionKind) (collection, bool) {
	_, base := e.client.HTTP()
	path, ok := strings.CutPrefix(r.url.Path, strings.TrimSuffix(base.Path, "/"))
	if !ok || r.url.Host != base.Host || r.url.Scheme != base.Scheme {
		return collection{}, false
	}
	q := r.url.Query()
	for _, k := range steering {
		q.Del(k)
	}
	return collection{
		path:     path,
		query:    q,
		protobuf: strings.Contains(r.accept, "application/vnd.kubernetes.protobuf"),
		metadata: strings.Contains(r.accept, "as=PartialObjectMetadata"),
		kind:     kind,
	}, true
}

// What the probe's only object is called.
const (
	probeName = "tattler-probe"
	probeUID  = "7461-7474-6c65"
)

// probeList is a list of one object, such as the client of an example's type understands it; nil is that
// there is none.
func probeList(example any) []byte {
	kind := ""
	switch example.(type) {
	case nil:
		return nil
	case *unstructured.Unstructured:
		kind = `"apiVersion":"tattler.dev/v1","kind":"ProbeList",`
	case *metav1.PartialObjectMetadata:
		kind = `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList",`
	default:
		if _, ok := example.(metav1.Object); !ok {
			return nil
		}
	}
	return fmt.Appendf(nil, `{%s"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":%q,"namespace":%q,`+
		`"uid":%q,"resourceVersion":"1","labels":{"probe":"yes"},"annotations":{"probe":"yes"}}}]}`,
		kind, probeName, probeName, probeUID)
}

// isProbe tells whether an object is the probe's, as it was sent, but for its kind.
func isProbe(got, example any) bool {
	m, err := meta.Accessor(got)
	if err != nil || reflect.TypeOf(got) != reflect.TypeOf(example) {
		return false
	}
	return m.GetName() == probeName && m.GetNamespace() == probeName && m.GetUID() == probeUID && m.GetResourceVersion() == "1" &&
		reflect.DeepEqual(m.GetLabels(), map[string]string{"probe": "yes"}) &&
		reflect.DeepEqual(m.GetAnnotations(), map[string]string{"probe": "yes"}) && len(m.GetManagedFields()) == 0
}
