package informer_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

func labelled(v string) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": v}}}
}

func TestSelection(t *testing.T) {
	before := func(s *informertest.Server) {
		s.Put(widgets, "n1", "a", labelled("x"))
		s.Put(widgets, "n2", "b", labelled("x"))
		s.Put(widgets, "n1", "c", labelled("y"))
		s.Put(widgets, "n3", "d", labelled("x"))
	}
	for _, c := range []struct {
		name string
		sel  informer.Selection
		want string
	}{
		{"by label", informer.Selection{Labels: "app=x"}, "+ a 1001 initial\n+ b 1002 initial\n+ d 1004 initial\n= 1004 epoch 1"},
		{"one object, so that rights by name suffice", informer.Selection{Fields: "metadata.name=b"}, "+ b 1002 initial\n= 1004 epoch 1"},
		{"by a function",
			informer.Selection{Keep: func(ns, _ string) bool { return ns != "n1" }}, "+ b 1002 initial\n+ d 1004 initial\n= 1004 epoch 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, informer.SourceOptions{Selection: c.sel}, before, func(r *rig) { r.want("the first list", c.want) })
		})
	}
	t.Run("namespaces have a stream each", func(t *testing.T) {
		o := informer.SourceOptions{Selection: informer.Selection{Namespaces: []string{"n2", "n1", "n2"}}}
		scenario(t, o, before, func(r *rig) {
			got := r.feed.take()
			for _, want := range []string{"+ a 1001 initial", "+ b 1002 initial", "+ c 1003 initial"} {
				if strings.Count(got, want) != 1 {
					r.Errorf("%s is not there once:\n%s", want, got)
				}
			}
			if st := r.source.Status(); len(st) != 2 || st[0].Stream.Namespace != "n1" || st[0].Objects != 2 || st[1].Objects != 1 {
				r.Errorf("status: %+v", st)
			}
		})
	})
}

func TestLeavesTheSelection(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(widgets, "n", "a", labelled("x")) }
	scenario(t, informer.SourceOptions{Selection: informer.Selection{Labels: "app=x"}}, before, func(r *rig) {
		r.want("the first list", "+ a 1001 initial\n= 1001 epoch 1")
		r.server.Put(widgets, "n", "a", labelled("y"))
		r.want("leaving is a deletion", "- a 1001 final 1002\n= 1002 epoch 1")
		r.server.Put(widgets, "n", "a", labelled("x"))
		r.want("entering is an addition", "+ a 1003\n= 1003 epoch 1")
	})
}

func TestTransform(t *testing.T) {
	wants := func(raw []byte) bool { return !strings.Contains(string(raw), "untouched") }
	apply := func(u *unstructured.Unstructured) error {
		v, _, _ := unstructured.NestedString(u.Object, "spec", "v")
		switch v {
		case "fail":
			return errors.New("no")
		case "panic":
			panic("no")
		}
		return unstructured.SetNestedField(u.Object, "hidden", "spec", "v")
	}
	rewrite := func(raw []byte) ([]byte, error) {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(raw); err != nil || !wants(raw) {
			return raw, err
		}
		if err := apply(&u); err != nil {
			return nil, err
		}
		return u.MarshalJSON()
	}
	t.Run("an object", func(t *testing.T) {
		testTransform(t, &informer.Transform{Name: "test", Wants: wants, Apply: apply})
	})
	t.Run("its bytes", func(t *testing.T) {
		testTransform(t, &informer.Transform{Name: "test", Rewrite: rewrite})
	})
}

// testTransform hides spec.v of all objects but one by a transform.
func testTransform(t *testing.T, transform *informer.Transform) {
	before := func(s *informertest.Server) {
		s.Put(widgets, "n", "a", spec("secret"))
		s.Put(widgets, "n", "b", spec("fail"))
		s.Put(widgets, "n", "untouched", spec("seen"))
	}
	scenario(t, informer.SourceOptions{Transform: transform}, before, func(r *rig) {
		f, err := feed.Join(r.source, "second", 0)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		r.want("a failed transform is a gap", "! transform ..1003\n+ a 1001 initial\n+ untouched 1003 initial\n= 1003 epoch 1")
		seen := map[string]any{}
		for len(seen) < 2 {
			b, err := f.Next(r.Context())
			if err != nil {
				r.Fatal(err)
			}
			for _, d := range b.Deltas {
				o, err := d.New.Object()
				if err != nil {
					r.Fatal(err)
				}
				seen[d.Key.Name] = o["spec"].(map[string]any)["v"]
			}
		}
		if seen["a"] != "hidden" || seen["untouched"] != "seen" {
			r.Errorf("transformed: %v", seen)
		}
		r.server.Put(widgets, "n", "a", spec("panic"))
		r.want("a panic is a gap, too", "! transform 1003..1004\n= 1004 epoch 1")
		r.server.Put(widgets, "n", "a", spec("other secret"))
		r.want("a version that looks the same is still a version", "~ a 1001>1005\n= 1005 epoch 1")
		r.server.Put(widgets, "n", "a", spec("fail"))
		r.want("lost", "! transform 1005..1006\n= 1006 epoch 1")
		r.server.Delete(widgets, "n", "a")
		got := r.feed.take()
		if !strings.Contains(got, "- a 1005") {
			r.Errorf("a deletion is delivered even if its last object cannot be: %s", got)
		}
		if d := r.source.Status()[0].Dropped; d.Transform != 4 || d.LastErr == nil {
			r.Errorf("counted %+v", d)
		}
	})
}

func TestLateFeedAndSlowFeed(t *testing.T) {
	scenario(t, informer.SourceOptions{}, two, func(r *rig) {
		r.want("the first list", twoListed)
		slow, err := feed.Join(r.source, "slow", 1)
		if err != nil {
			r.Fatal(err)
		}
		defer slow.Close()
		first, err := slow.Next(r.Context())
		if err != nil || len(first.Deltas) != 2 || !first.Deltas[0].Initial || first.Phase != feed.Live {
			r.Fatalf("a late feed starts with the state: %q, %v", describe(first), err)
		}
		for i := range 5 {
			r.server.Put(widgets, "n", "a", spec(i+2))
		}
		r.feed.take()
		next, err := slow.Next(r.Context())
		if got := strings.Join(describe(next), "; "); err != nil || got != "! slow consumer 1002..1007; ~ a 1001>1007; = 1007 epoch 1" {
			r.Errorf("a slow feed: %s, %v", got, err)
		}
	})
}

func TestLargeObject(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(widgets, "n", "big", spec(strings.Repeat("x", 3<<20))) }
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		r.want("listed", "+ big 1001 initial\n= 1001 epoch 1")
		r.server.Put(widgets, "n", "big", spec(strings.Repeat("y", 3<<20)))
		r.want("watched", "~ big 1001>1002\n= 1002 epoch 1")
	})
}

func TestBuiltInKindsHaveTheirType(t *testing.T) {
	before := func(s *informertest.Server) { s.Put(pods, "n", "p", nil) }
	scenario(t, informer.SourceOptions{}, before, func(r *rig) {
		s, err := r.cluster.Source(pods, informer.SourceOptions{})
		if err != nil {
			r.Fatal(err)
		}
		f, err := feed.Join(s, "test", 0)
		if err != nil {
			r.Fatal(err)
		}
		if err := s.Wait(r.Context()); err != nil {
			r.Fatal(err)
		}
		b, err := f.Next(r.Context())
		if err != nil || len(b.Deltas) != 1 {
			r.Fatalf("%+v, %v", b, err)
		}
		o, err := b.Deltas[0].New.Object()
		if err != nil || o["kind"] != "Pod" || o["apiVersion"] != "v1" {
			r.Errorf("%v, %v", o, err)
		}
	})
}

func TestBadSources(t *testing.T) {
	c, err := informer.NewCluster(informertest.NewServer().Config(), informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]informer.SourceOptions{
		"label selector":             {Selection: informer.Selection{Labels: "a in ("}},
		"field selector":             {Selection: informer.Selection{Fields: "a"}},
		`invalid namespace "Shop"`:   {Selection: informer.Selection{Namespaces: []string{"Shop"}}},
		`invalid namespace "kube-*"`: {Selection: informer.Selection{Namespaces: []string{"kube-*"}}},
		"unknown storage 9":          {Storage: 9},
		"unknown format 9":           {Format: 9},
		"decoded objects is neg":     {Hot: -1},
	} {
		if _, err := c.Source(widgets, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		set := func(v *informer.ViewOptions) { v.SourceOptions = o }
		if _, err := informer.Unstructured(c, widgets, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a view, %s: %v", want, err)
		}
	}
	for _, gvr := range []schema.GroupVersionResource{
		{Group: "example.com", Version: "v1"}, {Group: "example.com", Resource: "widgets"}, {Group: "example.com", Version: "v1", Resource: "Widget"},
		{Group: "example.com", Version: "v1", Resource: "widgets/status"}, {Group: "Example", Version: "v1", Resource: "widgets"},
		{Group: "example.com/v1", Version: "v1", Resource: "widgets"},
	} {
		if _, err := c.Source(gvr, informer.SourceOptions{}); err == nil || !strings.HasPrefix(err.Error(), "open source: ") {
			t.Errorf("%q: %v", gvr, err)
		}
	}
	all := must(informer.Unstructured(c, widgets))(t)
	for want, subscribe := range map[string]func() error{
		"needs a name":            func() error { _, err := all.Subscribe("", informer.SubscribeOptions{}); return err },
		"test: unknown mode 9":    func() error { _, err := all.Subscribe("test", informer.SubscribeOptions{Mode: 9}); return err },
		"test: the budget is neg": func() error { _, err := all.Subscribe("test", informer.SubscribeOptions{Budget: -1}); return err },
		"feed: the budget is neg": func() error { _, err := feed.Join(all.Source(), "feed", -1); return err },
	} {
		if err := subscribe(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := c.Run(ctx); err == nil {
		t.Error("a cluster runs twice")
	}
	if _, err := c.Source(widgets, informer.SourceOptions{}); !errors.Is(err, informer.ErrClosed) {
		t.Errorf("a source of a closed cluster: %v", err)
	}
}

// TestSocket uses real connections: a hundred streams, and a limit on concurrent lists.
func TestSocket(t *testing.T) {
	s := informertest.NewServer()
	s.Serve(widgets, "Widget")
	var namespaces []string
	for i := range 100 {
		ns := "n" + strconv.Itoa(i)
		namespaces = append(namespaces, ns)
		s.Put(widgets, ns, "a", spec(i))
	}
	hs := httptest.NewServer(s)
	defer hs.Close()
	var mu sync.Mutex
	agents := map[string]bool{}
	s.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		agents[r.UserAgent()+" "+r.Header.Get("Accept")] = true
		return false
	})
	c, err := informer.NewCluster(&rest.Config{Host: hs.URL, Timeout: time.Nanosecond, UserAgent: "curl/8"}, informer.Options{MaxLists: 2})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	source, err := c.Source(widgets, informer.SourceOptions{Selection: informer.Selection{Namespaces: namespaces}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := feed.Join(source, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	waitCtx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	if err := source.Wait(waitCtx); err != nil {
		t.Fatal(err)
	}
	s.Put(widgets, "n7", "a", spec("changed"))
	added, updated := 0, 0
	for updated == 0 || added < 100 {
		b, err := f.Next(waitCtx)
		if err != nil {
			t.Fatalf("after %d added, %d updated: %v", added, updated, err)
		}
		for _, d := range b.Deltas {
			switch d.Op {
			case informer.Added:
				added++
			case informer.Updated:
				updated++
			}
		}
	}
	if added != 100 || updated != 1 {
		t.Errorf("%d added, %d updated", added, updated)
	}
	if _, err := c.Get(ctx, c.ResourcePath(widgets, "n1", "nothing"), nil); !apierrors.IsNotFound(err) || !errors.Is(err, informer.ErrNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	if raw, err := c.Get(ctx, c.ResourcePath(widgets, "n1", ""), nil); err != nil || !strings.Contains(string(raw), `"WidgetList"`) {
		t.Errorf("Get: %s, %v", raw, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	for _, st := range source.Status() {
		if st.State != informer.Stopped {
			t.Errorf("stream %v outlives Run", st.Stream)
		}
	}
	for a := range agents {
		if strings.HasPrefix(a, "curl") || !strings.Contains(a, " application/json") || strings.Contains(a, "protobuf") {
			t.Errorf("asked as %q", a)
		}
	}
}
