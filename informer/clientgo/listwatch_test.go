package clientgo

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// podClient is a server behind a typed client.
type podClient struct {
	*server
	last metav1.ListOptions
}

func (c *podClient) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	c.last = o
	l, err := c.server.List(o)
	if err != nil {
		return nil, err
	}
	return l.(*corev1.PodList), nil
}

func (c *podClient) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return c.server.Watch(o)
}

func TestGeneratedListersWorkOnTheIndexer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &podClient{server: newServer(pod("a/one", "1", "n1"), pod("b/two", "2", "n1"))}
		lw := ListWatch(c, func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })
		i := NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		start(t, i)
		if c.last.LabelSelector != "app=web" {
			t.Errorf("the client got %+v", c.last)
		}
		l := corelisters.NewPodLister(i.GetIndexer())
		all, err := l.List(labels.Everything())
		if err != nil || len(all) != 2 {
			t.Errorf("%d pods, %v", len(all), err)
		}
		some, err := l.Pods("b").List(labels.SelectorFromSet(labels.Set{"app": "web"}))
		if err != nil || len(some) != 1 || some[0].Name != "two" {
			t.Errorf("in namespace b: %v, %v", some, err)
		}
		if p, err := l.Pods("a").Get("one"); err != nil || p.UID != "1" {
			t.Errorf("got %v, %v", p, err)
		}
	})
}

func TestTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(pod("a/one", "1", "n1"))
		i := NewTypedSharedIndexInformer(s, &corev1.Pod{}, 0, cache.TypedIndexers[*corev1.Pod]{
			"node": func(p *corev1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
		})
		var gone []string
		if _, err := i.AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
			DeleteFunc: func(d cache.DeletedObject[*corev1.Pod]) { gone = append(gone, d.GetKey()) },
		}); err != nil {
			t.Fatal(err)
		}
		start(t, i)
		pods, err := i.GetTypedIndexer().ByTypedIndex("node", "n1")
		if err != nil || len(pods) != 1 || pods[0].Name != "one" {
			t.Errorf("on n1: %v, %v", pods, err)
		}
		s.lose("a/one")
		s.relist()
		expect(t, "a missed deletion", gone, "a/one")
	})
}
