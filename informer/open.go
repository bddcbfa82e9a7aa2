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

// open asks for the collection, in protobuf where that is wanted and had.
func (s *stream) open(ctx context.Context, watch bool, q url.Values) (io.ReadCloser, wire.Format, error) {
	client := s.source.cluster.client
	path := request.Path(s.source.served(), s.id.Namespace, "")
	want := request.Want{
		Protobuf: s.source.wants() == Protobuf,
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
		return nil, 0, err // it was not the format
	}
	now := time.Now()
	switch {
	case sure:
		s.source.plain.Store(now.Add(plainSure).UnixNano())
	case now.Sub(s.jsonInstead) < inARow:
		s.source.plain.Store(now.Add(plainMaybe).UnixNano())
	}
	s.jsonInstead = now
	return body, f, nil
}

// A server that refuses protobuf may have it after an upgrade; one that answered 500 may have had other troubles.
const (
	plainSure  = time.Hour
	plainMaybe = 10 * time.Minute
	// inARow is how long after a 500 another one, to the next request of a stream, is no coincidence.
	inARow = time.Minute
)

// refusesFormat tells an answer that is due to protobuf, or may be: aggregated API servers without it
// say 406 or 500, even where JSON is accepted, too (kubernetes/kubernetes#86253). But so does one
// that has just lost its etcd.
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
