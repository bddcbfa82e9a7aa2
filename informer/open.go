package informer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tattler-dev/tattler/informer/internal/reflector"
	"github.com/tattler-dev/tattler/informer/internal/request"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// open requests the collection, in protobuf if the source wants it and the server supports it.
func (s *stream) open(ctx context.Context, watch bool, q url.Values) (io.ReadCloser, wire.Format, error) {
	client := s.source.cluster.client
	path := request.Path(s.source.served(), s.id.Namespace, "")
	want := request.Want{
		Protobuf: s.source.format() == Protobuf,
		Metadata: s.source.opts.MetadataOnly,
		Watch:    watch,
	}
	body, f, err := client.Open(ctx, path, q, want)
	sure, maybe := refusesFormat(err)
	if !want.Protobuf || !sure && !maybe {
		s.jsonInstead = time.Time{}
		return body, f, err
	}
	want.Protobuf = false
	body, f, plainErr := client.Open(ctx, path, q, want)
	if plainErr != nil {
		return nil, 0, err // the format was not the problem
	}
	now := time.Now()
	switch {
	case sure:
		s.source.jsonUntil.Store(now.Add(jsonAfterRefusal).UnixNano())
	case now.Sub(s.jsonInstead) < repeatWindow:
		s.source.jsonUntil.Store(now.Add(jsonAfterErrors).UnixNano())
	}
	s.jsonInstead = now
	return body, f, nil
}

// A server that refuses protobuf may support it after an upgrade; a 500 may have had another cause.
const (
	jsonAfterRefusal = time.Hour
	jsonAfterErrors  = 10 * time.Minute
	// repeatWindow is the time within which a second 500, on a stream's next request, is no coincidence.
	repeatWindow = time.Minute
)

// refusesFormat reports whether an error is surely, or maybe, due to protobuf: aggregated API servers without it answer
// 406 or 500, even if JSON is accepted, too (kubernetes/kubernetes#86253). But so does a server that has just lost its
// etcd.
func refusesFormat(err error) (sure, maybe bool) {
	var st apierrors.APIStatus
	if !errors.As(err, &st) {
		return false, false
	}
	switch st.Status().Code {
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return true, false
	case http.StatusInternalServerError:
		return false, true
	}
	return false, false
}

// noted implements reflector.Reflector.Observe.
func (s *stream) noted(n reflector.Note) {
	h := s.hooks()
	switch n.Kind {
	case reflector.NotedListBegan:
		s.update(func(st *Status) { st.Lists++ })
	case reflector.NotedWatchOpened:
		s.update(func(st *Status) { st.Watches++ })
	case reflector.NotedListEnded:
		if h.List != nil {
			h.List(ListInfo{Stream: s.id, Streaming: n.Streaming, Protobuf: n.Format == wire.Protobuf, Duration: n.Took,
				Objects: int64(n.Objects), Bytes: n.Bytes, Err: n.Err})
		}
	case reflector.NotedWatchClosed:
		if h.Watch != nil {
			h.Watch(WatchInfo{Stream: s.id, Protobuf: n.Format == wire.Protobuf, Duration: n.Took,
				Events: int64(n.Objects), Bytes: n.Bytes, Err: n.Err})
		}
	case reflector.NotedExpired:
		if h.Expired != nil {
			h.Expired(s.id)
		}
	}
}
