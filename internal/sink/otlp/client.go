package otlp

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Client posts requests of another signal, such as traces, over HTTP. Address, headers, credentials, TLS, errors and their
// masks are as in a sink with Protocol HTTP.
type Client struct {
	s    *Sink
	http *httpTransport
}

// NewClient returns a client. It reads the TLS files, and connects with the first request. The path of the endpoint must be
// that of the signal. Body and MaxBatchBytes have no effect.
func NewClient(agent string, o Options) (*Client, error) {
	o.Protocol = HTTP
	s, err := build(agent, o)
	if err != nil {
		return nil, err
	}
	http, _ := s.transport.(*httpTransport) // by the protocol
	return &Client{s: s, http: http}, nil
}

// Export sends one request within the timeout. Its errors are those of sink.Sink: a *sink.PermanentError or a
// *sink.TooLargeError concerns this request, all others are temporary. After a partial success, rejected is the number of
// parts that the receiver did not take, and said its reason.
func (c *Client) Export(ctx context.Context, request proto.Message) (rejected int64, said string, err error) {
	a, err := c.s.within(ctx, func(ctx context.Context) (answer, error) { return c.http.post(ctx, request) })
	return a.rejected, a.said, err
}

// String returns the destination without credentials.
func (c *Client) String() string { return c.s.place }

// Close closes idle connections.
func (c *Client) Close() { c.http.close() }
