package request

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// ask sends one request to a handler.
func ask(t *testing.T, cfg *rest.Config, h http.HandlerFunc) ([]byte, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	cfg.Host = srv.URL + cfg.Host
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	return c.Get(t.Context(), "/api/v1/pods", map[string][]string{"limit": {"1"}}, 1000)
}

func TestRequest(t *testing.T) {
	var got *http.Request
	answer := func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, "{}")
	}
	cfg := &rest.Config{Host: "/k8s/clusters/c-1", Timeout: time.Nanosecond, BearerToken: "t"}
	if b, err := ask(t, cfg, answer); err != nil || string(b) != "{}" {
		t.Fatalf("%q, %v", b, err)
	}
	if uri := got.URL.RequestURI(); uri != "/k8s/clusters/c-1/api/v1/pods?limit=1" {
		t.Errorf("asked for %s: a server behind a path keeps the path", uri)
	}
	for header, want := range map[string]string{
		"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": DefaultUserAgent, "Authorization": "Bearer t",
	} {
		if v := got.Header.Get(header); v != want {
			t.Errorf("%s: %q, want %q", header, v, want)
		}
	}
	if cfg.Timeout != time.Nanosecond {
		t.Error("the caller's configuration was changed")
	}
}

func TestUserAgent(t *testing.T) {
	for in, want := range map[string]string{
		"":            DefaultUserAgent,
		"mine/1":      "mine/1",
		"curl/8":      DefaultUserAgent + " curl/8",
		"Mozilla/5.0": DefaultUserAgent + " Mozilla/5.0",
	} {
		if got := userAgent(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestNotFound distinguishes an API server that does not serve a kind from anything in between.
func TestNotFound(t *testing.T) {
	for _, c := range []struct {
		name, body, audit string
		stranger          bool
	}{
		{"a Status", `{"kind":"Status","code":404,"reason":"NotFound"}`, "", false},
		{"an API server's line of text", "404 page not found\n", "d3a6c0f1", false},
		{"a load balancer's", "404 page not found\n", "", true},
		{"a load balancer's page", "<html>", "", true},
		{"nothing", "", "", true},
	} {
		_, err := ask(t, &rest.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			if c.audit != "" {
				w.Header().Set("Audit-ID", c.audit)
			}
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, c.body)
		})
		if !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) != c.stranger {
			t.Errorf("%s: %#v", c.name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, body, after string
		code              int
		is                func(error) bool
		seconds           int
	}{
		{"a Status", `{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}`, "", 403, apierrors.IsForbidden, 0},
		{"a Status without a delay, and a header with one",
			`{"kind":"Status","code":429,"reason":"TooManyRequests"}`, "7", 429, apierrors.IsTooManyRequests, 7},
		{"a Status in protobuf", protobufStatus(403, "Status"), "", 403, apierrors.IsForbidden, 0},
		{"a Status in protobuf, and a header", protobufStatus(429, "Status"), "7", 429, apierrors.IsTooManyRequests, 7},
		{"protobuf that is not a Status", protobufStatus(404, "Pod"), "", 410, apierrors.IsGone, 0},
		{"cut protobuf", protobufStatus(404, "Status")[:30], "", 410, apierrors.IsGone, 0},
		{"a proxy's page", `<html>`, "", 401, apierrors.IsUnauthorized, 0},
		{"a proxy that is overloaded", `busy`, "3", 503, apierrors.IsServiceUnavailable, 3},
		{"nothing", ``, "", 404, apierrors.IsNotFound, 0},
		{"JSON that is not a Status", `{"kind":"Pod"}`, "", 410, apierrors.IsGone, 0},
		{"a negative delay", `busy`, "-5", 503, apierrors.IsServiceUnavailable, 0},
		{"a huge delay", `busy`, "99999999", 503, apierrors.IsServiceUnavailable, 3600},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ask(t, &rest.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			if !c.is(err) {
				t.Fatalf("%v", err)
			}
			if s, _ := apierrors.SuggestsClientDelay(err); s != c.seconds {
				t.Errorf("delay of %d s, want %d", s, c.seconds)
			}
		})
	}
}

// protobufStatus is a Status as an API server sends it to a client that prefers protobuf.
func protobufStatus(code int32, kind string) string {
	reason := map[int32]metav1.StatusReason{403: metav1.StatusReasonForbidden, 429: metav1.StatusReasonTooManyRequests}[code]
	raw, err := (&metav1.Status{Status: "Failure", Code: code, Reason: reason, Message: "no"}).Marshal()
	if err != nil {
		panic(err)
	}
	b, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		panic(err)
	}
	return "k8s\x00" + string(b)
}

func TestRefusalMayBeCompressed(t *testing.T) {
	_, err := ask(t, &rest.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(zip(t, `{"kind":"Status","code":403,"reason":"Forbidden","message":"by gzip"}`))
	})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "by gzip") {
		t.Errorf("%v", err)
	}
}

func TestAccept(t *testing.T) {
	const pb = "application/vnd.kubernetes.protobuf"
	const js = "application/json"
	for w, want := range map[Want]string{
		{}:                            js,
		{Protobuf: true}:              pb + "," + js,
		{Watch: true}:                 js + ";stream=watch," + js,
		{Protobuf: true, Watch: true}: pb + ";stream=watch," + js + ";stream=watch," + js,
		{Metadata: true}:              js + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + js,
		{Protobuf: true, Metadata: true}: pb + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
			js + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + js,
		{Protobuf: true, Metadata: true, Watch: true}: pb + ";stream=watch;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
			js + ";stream=watch;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + js,
	} {
		if got := w.accept(); got != want {
			t.Errorf("%+v: %s, want %s", w, got, want)
		}
	}
}

func TestAnswersSayTheirFormat(t *testing.T) {
	for _, c := range []struct {
		contentType string
		want        Want
		format      wire.Format
		err         string
	}{
		{"application/json", Want{Protobuf: true}, wire.JSON, ""},
		{"application/json; charset=utf-8", Want{}, wire.JSON, ""},
		{"application/json;stream=watch", Want{Watch: true}, wire.JSON, ""},
		{"", Want{Protobuf: true}, wire.JSON, ""}, // some aggregated API servers
		{"application/vnd.kubernetes.protobuf", Want{Protobuf: true}, wire.Protobuf, ""},
		{"application/vnd.kubernetes.protobuf;stream=watch", Want{Protobuf: true, Watch: true}, wire.Protobuf, ""},
		{"application/vnd.kubernetes.protobuf", Want{}, 0, "instead of JSON"},
		{"text/html", Want{Protobuf: true}, 0, "instead of protobuf or JSON"},
		{"application/cbor", Want{}, 0, "application/cbor"},
		{";", Want{}, 0, "instead of JSON"},
	} {
		cl := serve(t, false, &rest.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{c.contentType}
			_, _ = io.WriteString(w, "body")
		})
		body, f, err := cl.Open(t.Context(), "/api", nil, c.want)
		if f != c.format || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %s, %v", c.contentType, f, err)
		}
		if err == nil {
			if b, err := io.ReadAll(body); err != nil || string(b) != "body" {
				t.Errorf("%q: %q, %v", c.contentType, b, err)
			}
			body.Close()
		}
	}
}

func TestRetryAfterAsADate(t *testing.T) {
	in := time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat)
	if n := retryAfter(in); n < 25*60 || n > 30*60+1 { // the machine may take its time
		t.Errorf("%d seconds until %s", n, in)
	}
}

func TestAnswersThatCannotBeUsed(t *testing.T) {
	_, err := ask(t, &rest.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Repeat(" ", 1001))
	})
	if !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than the bound: %v", err)
	}
	_, err = ask(t, &rest.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
	})
	if err == nil || !strings.Contains(err.Error(), "text/html") {
		t.Errorf("a page: %v", err)
	}
}

func TestContextEndsARequest(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer srv.Close()
	c, err := New(&rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, _, err := c.Open(ctx, "/api", nil, Want{}); !errors.Is(err, why) {
		t.Errorf("%v, want the cause", err)
	}
}

func TestPath(t *testing.T) {
	core := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	apps := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for _, c := range []struct {
		gvr             schema.GroupVersionResource
		namespace, name string
		want            string
	}{
		{core, "", "", "/api/v1/pods"},
		{core, "n", "p", "/api/v1/namespaces/n/pods/p"},
		{apps, "n", "", "/apis/apps/v1/namespaces/n/deployments"},
		{apps, "", "d", "/apis/apps/v1/deployments/d"},
	} {
		if got := Path(c.gvr, c.namespace, c.name); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestBadConfiguration(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{
		"address": {Host: "http://a b/"},
		"auth":    {Host: "http://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
