// Package request sends GETs to an API server, for JSON or protobuf, and turns error responses into errors of
// k8s.io/apimachinery/pkg/api/errors.
//
// client-go provides authentication, TLS, proxies and exec plugins; the requests themselves are plain net/http.
// Requests have no timeout: the caller's context ends them.
package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// DefaultUserAgent is used if the configuration sets none.
const DefaultUserAgent = "tattler/dev"

// maxStatus bounds the body of an error response, in bytes.
const maxStatus = 1 << 20

// auditID is a header that API servers set on every response. Up to Kubernetes 1.36, the response for a kind
// that is not served has no Status, only a line of text, which a load balancer may also send.
//
// Source: k8s.io/apiserver/pkg/util/notfoundhandler, and endpoints/filters/audit_init.go.
const auditID = "Audit-Id"

// Client sends requests to one API server. It is safe for concurrent use.
type Client struct {
	http *http.Client
	base *url.URL
	// encoding is the accepted compression. It is always set: otherwise net/http would request gzip and
	// uncompress responses itself (see unzipped).
	encoding string
}

// New prepares a client; it does not talk to the server. cfg is copied.
func New(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = 0 // it would end every watch
	cfg.UserAgent = userAgent(cfg.UserAgent)
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("read server address: %w", err)
	}
	client, err := connect(cfg)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", server.Host, err)
	}
	encoding := "gzip"
	if cfg.DisableCompression {
		encoding = "identity"
	}
	return &Client{http: client, base: server, encoding: encoding}, nil
}

// HTTP returns the client's http.Client and the server's address; both are shared.
func (c *Client) HTTP() (*http.Client, *url.URL) { return c.http, c.base }

// userAgent returns the configured User-Agent unless it resembles a browser or curl, for which API servers
// indent their JSON.
func userAgent(configured string) string {
	switch {
	case configured == "":
		return DefaultUserAgent
	case strings.HasPrefix(configured, "curl"), strings.HasPrefix(configured, "Mozilla"):
		return DefaultUserAgent + " " + configured
	}
	return configured
}

// CloseIdle closes idle connections. http.Client.CloseIdleConnections cannot see through client-go's wrappers.
func (c *Client) CloseIdle() {
	rt := c.http.Transport
	for {
		if t, ok := rt.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
			return
		}
		w, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		rt = w.WrappedRoundTripper()
	}
}

// Open sends a GET and returns the uncompressed body of a successful response, which the caller closes, and its
// format. An error response is an apierrors.APIStatus; apierrors.IsUnexpectedServerError reports that it may
// come from something between client and API server. A server without protobuf may refuse the request (406,
// 415, 500); retrying with JSON is up to the caller.
func (c *Client) Open(ctx context.Context, resource string, query url.Values, w Want) (io.ReadCloser, wire.Format, error) {
	u := *c.base
	u.Path = path.Join("/", u.Path, resource)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", w.accept())
	req.Header.Set("Accept-Encoding", c.encoding)
	resp, err := c.http.Do(req) //nolint:bodyclose // the caller closes the reader around it
	if err != nil {
		return nil, 0, fmt.Errorf("ask server: %w", cause(ctx, err))
	}
	body := resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		body = unzip(body)
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = body.Close() }()
		return nil, 0, refusal(resp, body, resource)
	}
	t := resp.Header.Get("Content-Type")
	f := formatOf(t)
	if f == 0 || f == wire.Protobuf && !w.Protobuf {
		_ = body.Close()
		return nil, 0, fmt.Errorf("ask server: %s sent %q instead of %s", u.Host, t, w)
	}
	return body, f, nil
}

// Ping returns nil once the server has answered a small request, with any status.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Get(ctx, "/version", nil, maxStatus)
	var answered apierrors.APIStatus
	if errors.As(err, &answered) || errors.Is(err, ErrTooLarge) {
		return nil
	}
	return err
}

// cause prefers the cause of the context's end to its plain error.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// refusal reads the Status of an error response, or makes one from the HTTP status.
func refusal(resp *http.Response, body io.Reader, resource string) error {
	b, _ := io.ReadAll(io.LimitReader(body, maxStatus)) // a partial body suffices
	after := retryAfter(resp.Header.Get("Retry-After"))
	st, err := statusIn(b)
	if err != nil || st.Code == 0 {
		gr := schema.GroupResource{Resource: path.Base(resource)}
		text := strings.ToValidUTF8(string(b[:min(len(b), 512)]), "")
		stranger := resp.StatusCode != http.StatusNotFound || resp.Header.Get(auditID) == ""
		return apierrors.NewGenericServerResponse(resp.StatusCode, "get", gr, "", text, after, stranger)
	}
	if after > 0 {
		if st.Details == nil {
			st.Details = &metav1.StatusDetails{}
		}
		st.Details.RetryAfterSeconds = int32(after)
	}
	return &apierrors.StatusError{ErrStatus: *st}
}

// statusIn decodes a Status; its first bytes show the format.
func statusIn(body []byte) (*metav1.Status, error) {
	if !wire.IsProtobuf(body) {
		return wire.DecodeStatus(wire.JSON, body)
	}
	raw, kind, err := wire.Unwrap(body)
	if err != nil {
		return nil, err
	}
	if kind != "Status" {
		return nil, fmt.Errorf("want a Status, not kind %q", kind)
	}
	return wire.DecodeStatus(wire.Protobuf, raw)
}

// retryAfter reads the header's seconds, or the seconds until its date; at most an hour.
func retryAfter(header string) int {
	n, err := strconv.Atoi(header)
	if err != nil {
		at, err := http.ParseTime(header)
		if err != nil {
			return 0
		}
		n = int(time.Until(at).Seconds()) + 1
	}
	return max(0, min(n, 3600))
}

// ErrTooLarge reports that a response exceeds the limit.
var ErrTooLarge = errors.New("answer too large")

// Get returns a whole JSON response of at most limit bytes.
func (c *Client) Get(ctx context.Context, resource string, query url.Values, limit int64) ([]byte, error) {
	body, _, err := c.Open(ctx, resource, query, Want{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read response: %w", cause(ctx, err))
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("read response of %s: %w: more than %d bytes", resource, ErrTooLarge, limit)
	}
	return b, nil
}

// GroupVersionPath returns the path of a group and version, at which discovery lists its resources.
func GroupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// Path returns the path of a collection, or of one object if name is set. An empty namespace means the whole
// cluster, or a resource without namespaces.
func Path(gvr schema.GroupVersionResource, namespace, name string) string {
	p := GroupVersionPath(gvr.GroupVersion())
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	p += "/" + gvr.Resource
	if name != "" {
		p += "/" + name
	}
	return p
}
