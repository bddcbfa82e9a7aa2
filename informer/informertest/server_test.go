package informertest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// two returns a server with the pods a at 1001 and b at 1002, and no widget.
func two() *informertest.Server {
	s := informertest.NewServer()
	s.Serve(pods, "Pod")
	s.Serve(widgets, "Widget")
	s.Put(pods, "n", "a", nil)
	s.Put(pods, "n", "b", nil)
	return s
}

func request(t *testing.T, uri string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// reply is a received response.
type reply struct {
	code   int
	header http.Header
	body   io.Reader // closed at the end of the test
}

func newReply(t *testing.T, r *http.Response) reply {
	t.Helper()
	t.Cleanup(func() { _ = r.Body.Close() })
	return reply{r.StatusCode, r.Header, r.Body}
}

// ask sends a request in memory.
func ask(t *testing.T, s *informertest.Server, uri, accept string) (reply, error) {
	t.Helper()
	req := request(t, uri)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := s.Config().Transport.RoundTrip(req) //nolint:bodyclose // newReply closes it
	if err != nil {
		return reply{}, err
	}
	return newReply(t, resp), nil
}

// get returns the status text and the body, or the error that ended it.
func get(t *testing.T, s *informertest.Server, uri string) string {
	t.Helper()
	resp, err := ask(t, s, uri, "")
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(resp.body)
	if err != nil {
		return http.StatusText(resp.code) + " " + string(b) + " " + err.Error()
	}
	return http.StatusText(resp.code) + " " + string(b)
}

// wireCase is a request and the real API server's response, or its beginning.
type wireCase struct {
	name string
	do   func(*testing.T, *informertest.Server)
	uri  string
	want string // the whole response if it ends with a newline
}

func run(t *testing.T, cases []wireCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := two()
				if c.do != nil {
					c.do(t, s)
				}
				got := get(t, s, c.uri)
				if !strings.HasPrefix(got, c.want) || got != c.want && (strings.HasSuffix(c.want, "\n") || c.want == "OK ") {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}

func object(name, uid, rv, kind string) string {
	return kind + `"metadata":{"name":"` + name + `","namespace":"n","resourceVersion":"` + rv + `","uid":"` + uid + `"}}`
}

const (
	typed  = `{"kind":"Pod","apiVersion":"v1",`
	custom = `{"apiVersion":"example.com/v1","kind":"Widget",`
)

// TestLists compares lists and single objects with those of a real API server.
func TestLists(t *testing.T) {
	widget := func(_ *testing.T, s *informertest.Server) { s.Put(widgets, "n", "w", nil) }
	paged := func(t *testing.T, s *informertest.Server) { get(t, s, "/api/v1/pods?limit=1") }
	run(t, []wireCase{
		{"a page of a built-in kind has bare items", nil, "/api/v1/pods?limit=1",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002","continue":"list-1-1","remainingItemCount":1},"items":[` + object("a", "uid-1", "1001", "{") + "]}\n"},
		{"the next page is of the same time", func(t *testing.T, s *informertest.Server) { paged(t, s); s.Put(pods, "n", "c", nil) },
			"/api/v1/pods?limit=1&continue=list-1-1",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002"},"items":[` + object("b", "uid-2", "1002", "{") + "]}\n"},
		{"an invalid token", nil, "/api/v1/pods?continue=x", `Bad Request {"kind":"Status"`},
		{"a token and a version", paged, "/api/v1/pods?continue=list-1-1&resourceVersion=1001", `Bad Request {"kind":"Status"`},
		{"a token of a list that was compacted", func(t *testing.T, s *informertest.Server) { paged(t, s); s.Compact() },
			"/api/v1/pods?limit=1&continue=list-1-1", `Gone {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"The provided continue`},
		{"a filtered page does not count the remaining items", nil, "/api/v1/pods?limit=1&fieldSelector=metadata.namespace%3Dn",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002","continue":"list-1-1"},"items":[`},
		{"a watch cache has no pages", nil, "/api/v1/pods?limit=1&resourceVersion=0",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002"},"items":[` + object("a", "uid-1", "1001", "{") + `,`},
		{"an empty namespace", nil, "/api/v1/namespaces/other/pods",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002"},"items":[]}` + "\n"},
		{"by field", nil, "/api/v1/pods?fieldSelector=metadata.name!%3Da",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002"},"items":[` + object("b", "uid-2", "1002", "{") + "]}\n"},
		{"an unsupported field selector", nil, "/api/v1/pods?fieldSelector=spec.nodeName%3Dx", `Bad Request {"kind":"Status"`},
		{"a bad selector", nil, "/api/v1/pods?labelSelector=(", `Bad Request {"kind":"Status"`},
		{"custom resources have sorted keys and typed items", widget, "/apis/example.com/v1/widgets",
			`OK {"apiVersion":"example.com/v1","items":[` + object("w", "uid-3", "1003", custom) + `],"kind":"WidgetList","metadata":{"resourceVersion":"1003"}}` + "\n"},
		{"no custom resources", nil, "/apis/example.com/v1/widgets",
			`OK {"apiVersion":"example.com/v1","items":[],"kind":"WidgetList","metadata":{"resourceVersion":"1002"}}` + "\n"},
		{"labels", func(_ *testing.T, s *informertest.Server) {
			s.Put(pods, "n", "c", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}})
		}, "/api/v1/pods?labelSelector=app!%3Dweb,!x",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1003"},"items":[` + object("a", "uid-1", "1001", "{") + `,` + object("b", "uid-2", "1002", "{") + "]}\n"},
		{"a list at an old version", func(_ *testing.T, s *informertest.Server) { s.Delete(pods, "n", "a"); s.Put(pods, "n", "c", nil) },
			"/api/v1/pods?resourceVersion=1001&resourceVersionMatch=Exact",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1001"},"items":[` + object("a", "uid-1", "1001", "{") + "]}\n"},
		{"a list at a compacted version", func(_ *testing.T, s *informertest.Server) { s.Compact() },
			"/api/v1/pods?resourceVersion=1001&resourceVersionMatch=Exact", `Gone {"kind":"Status"`},
		{"a list at a future version", nil, "/api/v1/pods?resourceVersion=1003", `Gateway Timeout {"kind":"Status","apiVersion":"v1","metadata":{},` +
			`"status":"Failure","message":"Timeout: Too large resource version: 1003, current: 1002","reason":"Timeout",` +
			`"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}`},
		{"a version that is not a number", nil, "/api/v1/pods?resourceVersion=x", `Bad Request {"kind":"Status"`},
		{"a streaming list that is not a watch", nil, "/api/v1/pods?sendInitialEvents=true", `Unprocessable Entity {"kind":"Status"`},
		{"one object", nil, "/api/v1/namespaces/n/pods/a", `OK ` + object("a", "uid-1", "1001", typed) + "\n"},
		{"one custom resource", widget, "/apis/example.com/v1/namespaces/n/widgets/w", `OK ` + object("w", "uid-3", "1003", custom) + "\n"},
		{"an object that does not exist", nil, "/api/v1/namespaces/n/pods/x", `Not Found {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" not found"`},
		{"the cluster's identity", func(_ *testing.T, s *informertest.Server) {
			s.Serve(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace")
			s.Put(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "kube-system", nil)
		}, "/api/v1/namespaces/kube-system", `OK {"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","resourceVersion":"1003","uid":"uid-3"}}` + "\n"},
		{"an unknown kind", nil, "/api/v1/nodes", "Not Found 404 page not found"},
		{"a subresource", nil, "/api/v1/namespaces/n/pods/a/log", "Not Found 404 page not found"},
		{"discovery of the core group", nil, "/api", `OK {"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},` +
			`"versions":[{"version":"v1","resources":[{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced",` +
			`"singularResource":"pod","verbs":["create","delete","get","list","patch","update","watch"],"subresources":[{"subresource":"status","responseKind":{"group":"","version":"v1","kind":"Pod"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]}]}`},
		{"a moved kind is served only in its new version", func(_ *testing.T, s *informertest.Server) { s.Move(pods, "v2") }, "/api/v1/pods", "Not Found 404 page not found"},
		{"with the same objects", func(_ *testing.T, s *informertest.Server) { s.Move(pods, "v2") }, "/api/v2/namespaces/n/pods/a",
			`OK ` + object("a", "uid-1", "1001", `{"apiVersion":"v2","kind":"Pod",`) + "\n"},
		{"a server that is down", func(_ *testing.T, s *informertest.Server) { s.SetDown(true) }, "/api/v1/pods", "dial tcp: connection refused"},
	})
}

// TestWatches compares watches with those of a real API server.
func TestWatches(t *testing.T) {
	run(t, []wireCase{
		{"a watch resumes after its version and ends with a bookmark", nil,
			"/api/v1/pods?watch=true&resourceVersion=1001&timeoutSeconds=5&allowWatchBookmarks=true",
			`OK {"type":"ADDED","object":` + object("b", "uid-2", "1002", typed) + "}\n" +
				`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1002"},"spec":{"containers":null},"status":{}}}` + "\n"},
		{"a bookmark of custom resources", nil, "/apis/example.com/v1/widgets?watch=1&resourceVersion=1002&timeoutSeconds=5&allowWatchBookmarks=1",
			`OK {"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"1002"}}}` + "\n"},
		{"without a version it begins with the state, in no order", nil, "/api/v1/pods?watch=1&timeoutSeconds=5",
			`OK {"type":"ADDED","object":` + object("b", "uid-2", "1002", typed) + "}\n" + `{"type":"ADDED","object":` + object("a", "uid-1", "1001", typed) + "}\n"},
		{"unless the state is not wanted", nil, "/api/v1/pods?watch=1&timeoutSeconds=5&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "OK "},
		{"a deletion carries the old object and the new version", func(_ *testing.T, s *informertest.Server) { s.Delete(pods, "n", "b") },
			"/api/v1/pods?watch=true&resourceVersion=1002&timeoutSeconds=5",
			`OK {"type":"DELETED","object":` + object("b", "uid-2", "1003", typed) + "}\n"},
		{"a version that was compacted is 410 within the stream", func(_ *testing.T, s *informertest.Server) { s.Compact() },
			"/api/v1/pods?watch=true&resourceVersion=1001", `OK {"type":"ERROR","object":{"kind":"Status"`},
		{"a version from the future is accepted and delivers nothing", nil,
			"/api/v1/pods?watch=true&resourceVersion=2000&timeoutSeconds=5&allowWatchBookmarks=true", `OK `},
	})
}

// TestUnserve: a removed kind ends its watches, is not found, and returns with its objects.
func TestUnserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		time.AfterFunc(time.Second, func() { s.Unserve(pods) })
		if got := get(t, s, "/api/v1/pods?watch=true&resourceVersion=1002"); got != "OK " {
			t.Errorf("its watch: %q", got)
		}
		if got := get(t, s, "/api/v1/pods"); !strings.HasPrefix(got, "Not Found") {
			t.Errorf("its list: %q", got)
		}
		if got := get(t, s, "/api"); strings.Contains(got, "pods") {
			t.Errorf("discovery: %q", got)
		}
		s.Serve(pods, "Pod")
		if got := get(t, s, "/api/v1/namespaces/n/pods/a"); !strings.HasPrefix(got, "OK ") {
			t.Errorf("an object: %q", got)
		}
	})
}

func TestBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		time.AfterFunc(time.Second, s.Cut)
		if got, want := get(t, s, "/api/v1/pods?watch=true&resourceVersion=1002"), "OK  unexpected EOF"; got != want {
			t.Errorf("a cut: %q, want %q", got, want)
		}
		time.AfterFunc(time.Second, s.CloseWatches)
		if got, want := get(t, s, "/api/v1/pods?watch=true&resourceVersion=1002"), "OK "; got != want {
			t.Errorf("a clean close: %q, want %q", got, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp, err := s.Config().Transport.RoundTrip(request(t, "/api/v1/pods?watch=true").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("an ended context does not end the body")
		}
	})
}

// TestCutList: a cut breaks a list in the middle of its body, too.
func TestCutList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		s.Put(pods, "n", "big", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": strings.Repeat("x", 3<<20)}}})
		s.Put(pods, "n", "c", nil)
		resp, err := ask(t, s, "/api/v1/pods", "")
		if err != nil {
			t.Fatal(err)
		}
		s.Cut()
		b, err := io.ReadAll(resp.body)
		if err == nil || len(b) == 0 || strings.HasSuffix(string(b), "}\n") {
			t.Errorf("%d bytes, error %v: want a part, and an error", len(b), err)
		}
	})
}
