package informertest

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	optionsscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errNotServed is answered with a line of text: up to Kubernetes 1.36 there is no Status for it.
var errNotServed = errors.New("not served")

// call is one parsed request.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	at    path
	kind  *kind
	class Requests
	media media
	opts  internalversion.ListOptions
	code  int    // of the response; 0: 200
	cut   uint64 // as it was when the request was parsed
}

var _ http.Handler = (*Server)(nil)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, request{r.Method, r.URL.RequestURI(), r.Header.Get("Accept"), r.Proto})
	hook, down := s.hook, s.down
	s.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	if hook != nil && hook(w, r) {
		return
	}
	w.Header().Set("Audit-Id", "informertest") // on every response, as from an API server
	c := &call{s: s, w: w, r: r}
	if err := c.understand(); err != nil {
		c.refuse(err)
		return
	}
	if f := c.hit(Reject); f != nil {
		c.reject(f)
		return
	}
	if c.hit(Hang) != nil {
		c.hang()
		return
	}
	switch c.class {
	case Discovery:
		switch {
		case strings.HasPrefix(c.r.URL.Path, openAPIPath):
			c.openAPI()
		case !groupVersionAt(c.r.URL.Path).Empty():
			c.discoverVersion()
		default:
			c.discover()
		}
	case Gets:
		c.get()
	case Lists:
		c.list()
	case Writes:
		c.write()
	default:
		c.watch()
	}
}

// broken reports whether the connection was cut since the request was parsed; s.mu is held.
func (c *call) broken() bool { return c.s.cut != c.cut || c.s.down }

// understand parses the request: its target and the accepted encodings.
func (c *call) understand() error {
	c.s.mu.Lock()
	c.cut = c.s.cut // a hook may have cut the other connections
	c.s.mu.Unlock()
	if p := c.r.URL.Path; p == "/api" || p == "/apis" || !groupVersionAt(p).Empty() || p == openAPIPath || strings.HasPrefix(p, openAPIPath+"/") {
		c.class = Discovery
		return nil
	}
	at, ok := parsePath(c.r.URL.Path)
	c.s.mu.Lock()
	res := c.s.resources[at.gvr]
	if ok = ok && res != nil && res.served && (at.sub == "" || at.sub == "status" && res.kind.status); ok {
		c.at, c.kind = at, res.kind
	}
	c.s.mu.Unlock()
	if !ok {
		return errNotServed
	}
	if c.class = Writes; c.r.Method != http.MethodGet && !c.writes() {
		return apierrors.NewMethodNotSupported(at.gvr.GroupResource(), strings.ToLower(c.r.Method))
	}
	if c.media, ok = negotiate(c.r.Header.Get("Accept"), c.kind.new != nil); !ok {
		return c.notAcceptable()
	}
	if c.r.Method != http.MethodGet {
		return nil
	}
	return c.options()
}

// options parses and checks the query as API servers do.
func (c *call) options() error {
	c.class = Gets
	if c.at.name != "" {
		if c.media.list {
			return refusal(http.StatusNotAcceptable, "NotAcceptable", "you requested PartialObjectMetadataList, but the requested object is not a list")
		}
		return nil
	}
	if err := optionsscheme.ParameterCodec.DecodeParameters(c.r.URL.Query(), metav1.SchemeGroupVersion, &c.opts); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateListOptions(&c.opts, true); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if _, err := c.version(); err != nil {
		return apierrors.NewBadRequest("Invalid value for resourceVersion: " + c.opts.ResourceVersion)
	}
	switch c.class = Lists; {
	case c.streams():
		c.class = StreamingLists
	case c.opts.Watch:
		c.class = Watches
	}
	if c.media.partial != "" && c.media.list != (c.class == Lists) {
		return refusal(http.StatusNotAcceptable, "NotAcceptable", "you requested PartialObjectMetadata of a list, or its list of a watch")
	}
	return c.checkSelector()
}

// streams reports whether the request is a streaming list.
func (c *call) streams() bool {
	return c.opts.Watch && c.opts.SendInitialEvents != nil && *c.opts.SendInitialEvents
}

// version returns the requested resource version, or 0.
func (c *call) version() (uint64, error) {
	if c.opts.ResourceVersion == "" {
		return 0, nil
	}
	return strconv.ParseUint(c.opts.ResourceVersion, 10, 64)
}

// path names a collection, one of its objects, or a subresource of an object.
type path struct {
	gvr schema.GroupVersionResource
	key
	sub string
}

func parsePath(p string) (path, bool) {
	parts := strings.Split(strings.Trim(p, "/"), "/")
	var at path
	switch {
	case len(parts) > 2 && parts[0] == "api":
		at.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		at.gvr.Group, at.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return at, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && (len(parts) > 3 || parts[2] != "status") {
		at.namespace, parts = parts[1], parts[2:]
	}
	at.gvr.Resource = parts[0]
	if len(parts) > 1 {
		at.name = parts[1]
	}
	if len(parts) > 2 {
		at.sub = parts[2]
	}
	return at, len(parts) <= 3
}

// Refuse answers with a Status in JSON.
func Refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	answerStatus(w, media{}, refusal(code, reason, message).Status())
}

func answerStatus(w http.ResponseWriter, m media, st metav1.Status) {
	w.Header().Set("Content-Type", m.contentType())
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(st.Code))
	_, _ = w.Write(m.status(nil, st))
}

func refusal(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func (c *call) notAcceptable() error {
	types := []string{jsonType}
	if c.kind.new != nil {
		types = append(types, protobufType)
	}
	return refusal(http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: "+strings.Join(types, ", "))
}

// refuse answers with the Status of an error.
func (c *call) refuse(err error) {
	if errors.Is(err, errNotServed) {
		http.NotFound(c.w, c.r)
		return
	}
	answerStatus(c.w, forError(c.r.Header.Get("Accept")), statusOf(err))
}

func statusOf(err error) metav1.Status {
	var st apierrors.APIStatus
	if !errors.As(err, &st) {
		return apierrors.NewInternalError(err).Status()
	}
	return st.Status()
}

// reject answers as the fault specifies.
func (c *call) reject(f *Fault) {
	seconds := f.seconds()
	if f.Code == http.StatusTooManyRequests { // like priority and fairness
		if seconds > 0 {
			c.w.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
		http.Error(c.w, "Too many requests, please try again later.", f.Code)
		return
	}
	err := c.failure(f.Code, seconds)
	if f.Protobuf { // from a server that has no protobuf
		answerStatus(c.w, media{}, err.Status())
		return
	}
	c.refuse(err)
}

// failure returns an error with a test's code.
func (c *call) failure(code, retryAfter int) *apierrors.StatusError {
	if code == http.StatusGone {
		return apierrors.NewResourceExpired("too old resource version: requested by a test")
	}
	return apierrors.NewGenericServerResponse(code, "get", c.at.gvr.GroupResource(), c.at.name, "requested by a test", retryAfter, false)
}
