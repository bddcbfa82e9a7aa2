package informer_test

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestAllNamespaces: an empty name means all namespaces, as in client-go, and excludes other names.
func TestAllNamespaces(t *testing.T) {
	bubble(t, informer.Options{}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		all := must(informer.For[*corev1.Pod](c, informer.InNamespaces("")))(t)
		synced(t, c)
		if _, err := all.Get("a", "one"); err != nil || keys(all.List("a", nil)) != "a/one a/two" || len(all.Source().Status()) != 1 {
			t.Errorf("Get %v, List %s", err, keys(all.List("a", nil)))
		}
		for _, names := range [][]string{{"", "a"}, {"a/b"}} {
			if i, err := informer.For[*corev1.Pod](c, informer.InNamespaces(names...)); err == nil {
				t.Errorf("%q is accepted: %v", names, i.Source().Status())
			}
		}
	})
}

// TestTransformNeedsJSON: a view requests a format that its transform can read, and a source refuses one that it cannot.
func TestTransformNeedsJSON(t *testing.T) {
	relabel := func(u *unstructured.Unstructured) error {
		u.SetLabels(map[string]string{"seen": "yes"})
		return nil
	}
	rewrite := func(raw []byte) ([]byte, error) {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		u.SetLabels(map[string]string{"seen": "yes"})
		return u.MarshalJSON()
	}
	for why, transform := range map[string]*informer.Transform{
		"Transform.Apply":      {Name: "t", Apply: relabel},
		"Transform.Rewrite":    {Name: "t", Rewrite: rewrite},
		"the Transform's type": informer.TransformOf("t", 1, relabel),
	} {
		bubble(t, informer.Options{}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
			o := informer.SourceOptions{Format: informer.Protobuf, Transform: transform}
			if _, err := c.Source(pods, o); err == nil || !strings.Contains(err.Error(), why+" needs JSON") {
				t.Errorf("protobuf: %v", err)
			}
			all := must(informer.For[*corev1.Pod](c, func(o *informer.ViewOptions) { o.Transform = transform }))(t)
			synced(t, c)
			if p, err := all.Get("a", "one"); err != nil || p.Labels["seen"] != "yes" {
				t.Errorf("%s: %v, %+v", why, err, p)
			}
		})
	}
}

// TestViewOfAnotherVersion: objects of one API version are not read as a type of another.
func TestViewOfAnotherVersion(t *testing.T) {
	bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		v2 := widgets.GroupResource().WithVersion("v2")
		later := must(c.Source(v2, informer.SourceOptions{}))(t)
		if _, err := informer.For[*widget](c, informer.On(later)); err == nil || !strings.Contains(err.Error(), "version v2") {
			t.Errorf("For: %v", err)
		}
		must(informer.Unstructured(c, widgets, informer.On(later)))(t)
		later.Close()

		source := must(c.Source(widgets, informer.SourceOptions{}))(t)
		typed := must(informer.For[*widget](c, informer.On(source)))(t)
		synced(t, c)
		server.Move(widgets, "v2")
		untilParked(t, source)
		must(feed.Join(source, "retries", 0))(t).Retry("v2")
		untilParked(t, source)
		for _, asked := range server.Requests() {
			if strings.Contains(asked, "/v2/namespaces") {
				t.Errorf("asked for another version than the view's: %s", asked)
			}
		}
		if w, err := typed.Get("a", "one"); err != nil || w.Spec.V != 1 {
			t.Errorf("the old objects are still cached: %+v", w)
		}
	})
}

// untilParked waits until a source is parked.
func untilParked(t *testing.T, s *informer.Source) {
	t.Helper()
	pass(10)
	if st := s.Status()[0]; st.State != informer.Parked {
		t.Fatalf("it is not parked: %+v", st)
	}
	synctest.Wait()
}

// TestEqualSelectionsShare: views of the same objects share one copy, however their selectors are spelled; views with
// user functions never do.
func TestEqualSelectionsShare(t *testing.T) {
	in := informer.InNamespaces
	twice := func(o *informer.ViewOptions) {
		in("c")(o)
		in("b", "a")(o)
	}
	keep := func(o *informer.ViewOptions) { o.Selection.Keep = func(string, string) bool { return true } }
	onState := func(o *informer.ViewOptions) { o.OnState = func(informer.Status) {} }
	hide := func(o *informer.ViewOptions) { o.DropManagedFields = true }
	live := informer.WithStorage(informer.LiveStorage)
	bubble(t, informer.Options{Scheme: widgetTypes()}, func(t *testing.T, _ *informertest.Server, c *informer.Cluster) {
		open := func(opts ...informer.Option) *informer.Source {
			t.Helper()
			return must(informer.For[*corev1.Pod](c, opts...))(t).Source()
		}
		for _, same := range []struct {
			why   string
			views [][]informer.Option
		}{
			{"the whole cluster", [][]informer.Option{{}, {in()}, {in("")}, {in([]string{}...)}, {in("a"), in("")}}},
			{"namespaces", [][]informer.Option{{in("a", "b")}, {in("b", "a")}, {in("a", "b", "a")}, {twice}}},
			{"labels", [][]informer.Option{{informer.WithLabels("app=one,tier in (x, y)")}, {informer.WithLabels("tier in (y,x),app==one")}}},
			{"fields", [][]informer.Option{{informer.WithFields("spec.nodeName=n,status.phase!=Running")}, {informer.WithFields("status.phase!=Running,spec.nodeName==n")}}},
			{"other options", [][]informer.Option{{live, hide}, {hide, live}}},
		} {
			first := open(same.views[0]...)
			for i, opts := range same.views {
				if open(opts...) != first {
					t.Errorf("%s, view %d has a source of its own", same.why, i)
				}
			}
		}
		seen := map[*informer.Source]string{}
		for why, opts := range map[string][]informer.Option{
			"everything": {}, "a": {in("a")}, "a and b": {in("a", "b")}, "labels": {informer.WithLabels("app=one")},
			"fields": {informer.WithFields("app=one")}, "a, with labels": {in("a"), informer.WithLabels("app=one")},
			"live": {live}, "without managed fields": {hide}, "live without": {live, hide},
			"Keep": {keep}, "Keep, again": {keep}, "OnState": {onState}, "OnState, again": {onState},
			"Transform": {hiding("hide", 1)}, "Transform, again": {hiding("hide", 1)},
		} {
			s := open(opts...)
			if other, is := seen[s]; is {
				t.Errorf("%s and %s share a source", why, other)
			}
			seen[s] = why
		}
		source := must(c.Source(pods, informer.SourceOptions{}))(t)
		if open(informer.On(source), in("")) != source {
			t.Error("selecting the whole cluster counts as an option")
		}
		maps := must(informer.Unstructured(c, widgets, live))(t)
		typed := must(informer.For[*widget](c, live))(t)
		if maps.Source() == typed.Source() {
			t.Error("live storage keeps the objects of one Go type")
		}
	})
}

// TestDefaultStorage: the zero value is CompactStorage, also for views that share a source.
func TestDefaultStorage(t *testing.T) {
	c := must(informer.NewCluster(informertest.NewServer().Config(), informer.Options{}))(t)
	plain := must(informer.Unstructured(c, pods))(t)
	compact := must(informer.Unstructured(c, pods, informer.WithStorage(informer.CompactStorage)))(t)
	auto := must(informer.Unstructured(c, pods, informer.WithStorage(informer.AutoStorage)))(t)
	if plain.Source() != compact.Source() || plain.Source() == auto.Source() {
		t.Error("the zero value is not CompactStorage")
	}
}
