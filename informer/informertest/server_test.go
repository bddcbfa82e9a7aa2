package informertest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// get returns the status and the body, or the error that ended it.
func get(t *testing.T, s *informertest.Server, uri string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Config().Transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.Status + " " + string(b) + " " + err.Error()
	}
	return resp.Status + " " + string(b)
}

// TestWire holds the fake to what a real API server sends.
func TestWire(t *testing.T) {
	object := func(name, uid, rv, kind string) string {
		return kind + `"metadata":{"name":"` + name + `","namespace":"n","resourceVersion":"` + rv + `","uid":"` + uid + `"}}`
	}
	const typed = `{"apiVersion":"v1","kind":"Pod",`
	for _, c := range []struct {
		name string
		do   func(*informertest.Server)
		uri  string
		want string
	}{
		{"a page of a built-in kind has bare items", nil, "/api/v1/pods?limit=1",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002","continue":"token-1002-2"},"items":[` + object("a", "uid-1", "1001", "{") + `]}`},
		{"one namespace", nil, "/api/v1/namespaces/other/pods",
			`OK {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1002"},"items":[]}`},
		{"an unknown token", nil, "/api/v1/pods?continue=x", `Gone {"kind":"Status"`},
		{"an unknown kind", nil, "/api/v1/nodes", `Not Found {"kind":"Status"`},
		{"one object", nil, "/api/v1/namespaces/n/pods/a", `OK ` + object("a", "uid-1", "1001", typed)},
		{"an object that does not exist", nil, "/api/v1/namespaces/n/pods/x", `Not Found {"kind":"Status"`},
		{"a subresource", nil, "/api/v1/namespaces/n/pods/a/log", `Not Found {"kind":"Status"`},
		{"discovery of the core group", nil, "/api", `OK {"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},` +
			`"versions":[{"version":"v1","resources":[{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced",` +
			`"singularResource":"pod","verbs":["get","list","watch"]}],"freshness":"Current"}]}]}`},
		{"a kind that moved is in its new version only", func(s *informertest.Server) { s.Move(pods, "v2") }, "/api/v1/pods", `Not Found {"kind":"Status"`},
		{"with the objects as they were", func(s *informertest.Server) { s.Move(pods, "v2") }, "/api/v2/namespaces/n/pods/a",
			`OK ` + object("a", "uid-1", "1001", `{"apiVersion":"v2","kind":"Pod",`)},
		{"a bad selector", nil, "/api/v1/pods?labelSelector=(", `Bad Request {"kind":"Status"`},
		{"a watch resumes behind its version and ends with a bookmark", nil,
			"/api/v1/pods?watch=true&resourceVersion=1001&timeoutSeconds=5&allowWatchBookmarks=true",
			`OK {"type":"ADDED","object":` + object("b", "uid-2", "1002", typed) + "}\n" +
				`{"type":"BOOKMARK","object":{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":null,"resourceVersion":"1002"}}}`},
		{"a deletion carries the old object and the new version", func(s *informertest.Server) { s.Delete(pods, "n", "b") },
			"/api/v1/pods?watch=true&resourceVersion=1002&timeoutSeconds=5",
			`OK {"type":"DELETED","object":` + object("b", "uid-2", "1003", typed) + "}\n"},
		{"a version that was compacted is 410 within the stream", (*informertest.Server).Compact,
			"/api/v1/pods?watch=true&resourceVersion=1001", `OK {"type":"ERROR","object":{"kind":"Status"`},
		{"a version from the future is accepted and delivers nothing", nil,
			"/api/v1/pods?watch=true&resourceVersion=2000&timeoutSeconds=5&allowWatchBookmarks=true", `OK `},
		{"a server that is down", func(s *informertest.Server) { s.SetDown(true) }, "/api/v1/pods", "dial tcp: connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := informertest.NewServer()
				s.Serve(pods, "Pod")
				s.Put(pods, "n", "a", nil)
				s.Put(pods, "n", "b", nil)
				if c.do != nil {
					c.do(s)
				}
				got := get(t, s, c.uri)
				if !strings.HasPrefix(got, c.want) || c.want == "OK " && got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}

func TestBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := informertest.NewServer()
		s.Serve(pods, "Pod")
		time.AfterFunc(time.Second, s.Cut)
		if got, want := get(t, s, "/api/v1/pods?watch=true&resourceVersion=1000"), "OK  unexpected EOF"; got != want {
			t.Errorf("a cut: %q, want %q", got, want)
		}
		time.AfterFunc(time.Second, s.CloseWatches)
		if got, want := get(t, s, "/api/v1/pods?watch=true&resourceVersion=1000"), "OK "; got != want {
			t.Errorf("a clean close: %q, want %q", got, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/api/v1/pods?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Config().Transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("an ended context does not end the body")
		}
	})
}
