package inclustertest

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Forward answers a request to forward ports as a kubelet does. It returns when the connection has ended.
func Forward(w http.ResponseWriter, r *http.Request, dial func(ctx context.Context, port string) (net.Conn, error)) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return // it has answered
	}
	var (
		mu      sync.Mutex
		failing = map[string]httpstream.Stream{} // the streams for errors, by request
		all     sync.WaitGroup
	)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		id := s.Headers().Get(core.PortForwardRequestIDHeader)
		mu.Lock()
		defer mu.Unlock()
		if s.Headers().Get(core.StreamType) == core.StreamTypeError {
			failing[id] = s
			return nil
		}
		failed := failing[id]
		all.Go(func() { pass(r.Context(), s, failed, dial) })
		return nil
	})
	if conn == nil {
		return
	}
	<-conn.CloseChan()
	all.Wait()
}

// pass connects a pair of streams to a port.
func pass(ctx context.Context, data, failed httpstream.Stream, dial func(ctx context.Context, port string) (net.Conn, error)) {
	defer failed.Close()
	defer data.Reset()
	conn, err := dial(ctx, data.Headers().Get(core.PortHeader))
	if err != nil {
		_, _ = io.WriteString(failed, err.Error())
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, data)
		_ = conn.Close()
	})
	both.Go(func() {
		_, _ = io.Copy(data, conn)
		_ = data.Close()
		_ = data.Reset()
	})
	both.Wait()
}
