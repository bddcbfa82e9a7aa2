package informertest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// onNode sets a pod's node by default, like the form of an upgraded server.
func onNode(name string) func(map[string]any) {
	return func(pod map[string]any) {
		spec, _ := pod["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		if spec["nodeName"] == nil {
			spec["nodeName"] = name
		}
		pod["spec"] = spec
	}
}

// TestChangeForm: objects written before and after are served in the new form, at their versions, by every kind
// of read.
func TestChangeForm(t *testing.T) {
	generated := func(i int) runtime.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("g", i)}}
	}
	for _, c := range []struct {
		why string
		put func(*informertest.Server)
	}{
		{"fields", func(s *informertest.Server) { s.Put(pods, "n", "p", nil) }},
		{"a Go type", func(s *informertest.Server) {
			s.PutObject(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}})
		}},
		{"generated", func(s *informertest.Server) { s.ServeGenerated(pods, "Pod", 2, generated) }},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := two()
				c.put(s)
				backup, was := s.Snapshot(), s.Version()
				for _, uri := range []string{"/api/v1/pods", "/api/v1/namespaces/n/pods/a"} {
					if got := get(t, s, uri); strings.Contains(got, "nodeName") {
						t.Errorf("before: %s", got)
					}
				}
				first := get(t, s, "/api/v1/pods?limit=1")
				s.ChangeForm(pods, onNode("node-1"))
				s.ChangeForm(pods, onNode("node-2")) // has no effect after the other
				defaulted := func(why, uri string, n int) {
					t.Helper()
					if got := get(t, s, uri); strings.Count(got, `"spec":{"nodeName":"node-1"`)+strings.Count(got, `"nodeName":"node-1"}`) < n || strings.Contains(got, "node-2") {
						t.Errorf("%s: %s", why, got)
					}
				}
				if s.Version() != was {
					t.Errorf("version %s, want %s", s.Version(), was)
				}
				defaulted("an object", "/api/v1/namespaces/n/pods/a", 1)
				defaulted("a list", "/api/v1/pods", 2)
				defaulted("a page of an earlier list", "/api/v1/pods?limit=1&continue=list-1-1", 1)
				if !strings.Contains(first, "list-1-1") {
					t.Errorf("no token: %s", first)
				}
				s.Put(pods, "n", "new", nil)
				defaulted("a written object", "/api/v1/namespaces/n/pods/new", 1)
				s.Restore(backup)
				defaulted("a backup", "/api/v1/namespaces/n/pods/a", 1)
			})
		})
	}
}

// TestChangeFormInWatches: the history in a watch has the new form, and an open watch receives nothing.
func TestChangeFormInWatches(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		const uri = "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion="
		open := make(chan string)
		go func() { open <- events(t, s, uri+"1002", accept) }()
		synctest.Wait()
		s.ChangeForm(pods, onNode("node-1"))
		check(t, "an open watch", <-open, "")
		check(t, "a watch", events(t, s, uri+"1000", accept), "A a 1001, A b 1002")
		resp, err := ask(t, s, uri+"1000", accept)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, _ := resp.body.Read(b) // both events arrive together
		if got := strings.Count(string(b[:n]), "node-1"); got != 2 {
			t.Errorf("%d of 2 events have the new form: %q", got, b[:n])
		}
	})
}

// TestOpenAPIIndex: only the hash of the group and version changes whose kinds changed form.
func TestOpenAPIIndex(t *testing.T) {
	s := two()
	index := func() map[string]string {
		body, _ := strings.CutPrefix(get(t, s, "/openapi/v3"), "OK ")
		var d struct {
			Paths map[string]struct{ ServerRelativeURL string }
		}
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		urls := map[string]string{}
		for name, p := range d.Paths {
			urls[name] = p.ServerRelativeURL
			if !strings.HasPrefix(p.ServerRelativeURL, "/openapi/v3/"+name+"?hash=") {
				t.Errorf("%s is at %s", name, p.ServerRelativeURL)
			}
		}
		return urls
	}
	const core, custom = "api/v1", "apis/example.com/v1"
	before := index()
	if len(before) != 2 || before[core] == "" || before[custom] == "" {
		t.Fatalf("index: %v", before)
	}
	s.Put(widgets, "n", "w", nil)
	if after := index(); after[custom] != before[custom] {
		t.Error("a write changed the hash")
	}
	s.ChangeForm(widgets, func(o map[string]any) { o["spec"] = map[string]any{"size": 1} })
	after := index()
	if after[custom] == before[custom] || after[core] != before[core] {
		t.Errorf("hashes were %v, and are %v", before, after)
	}
	if got, want := get(t, s, after[custom]), `"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Widget","version":"v1"}]`; !strings.Contains(got, want) {
		t.Errorf("document: %s", got)
	}
	if got := get(t, s, "/openapi/v3/apis/none/v1"); !strings.HasPrefix(got, "Not Found") {
		t.Errorf("a group that is not served: %s", got)
	}
	s.Misbehave(fault{On: informertest.Discovery, Code: 503})
	if got := get(t, s, "/openapi/v3"); !strings.HasPrefix(got, "Service Unavailable") {
		t.Errorf("with a fault: %s", got)
	}
}
