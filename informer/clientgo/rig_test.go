package clientgo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// maker is cache.NewSharedIndexInformer, or ours.
type maker func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// pass advances the bubble's clock.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func engine(o Options) maker { return newEngine(o).NewInformer }

// eachMaker runs a contract test with our informer and with client-go's, which verifies the test itself.
func eachMaker(t *testing.T, f func(t *testing.T, m maker)) {
	t.Helper()
	for _, tc := range []struct {
		name string
		m    maker
	}{
		{"client-go", cache.NewSharedIndexInformer},
		{"auto", NewSharedIndexInformer},
		{"compact", engine(Options{Storage: Compact, Hot: 1})},
		{"live", engine(Options{Storage: Live})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, tc.m) })
		})
	}
}

// server is a ListerWatcher that the test controls.
type server struct {
	mu      sync.Mutex
	version int
	objs    map[string]*corev1.Pod
	watches []*watch.FakeWatcher
	lists   int
	fail    error // error of the next list
}

func newServer(pods ...*corev1.Pod) *server {
	s := &server{version: 100, objs: map[string]*corev1.Pod{}}
	for _, p := range pods {
		s.set(p)
	}
	return s
}

func podKey(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// set stores a pod without an event.
func (s *server) set(p *corev1.Pod) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p = p.DeepCopy()
	p.ResourceVersion = fmt.Sprint(s.version)
	s.objs[podKey(p)] = p
	return p
}

// lose deletes a pod without an event.
func (s *server) lose(key string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p := s.objs[key].DeepCopy()
	p.ResourceVersion = fmt.Sprint(s.version)
	delete(s.objs, key)
	return p
}

func (s *server) notify(typ watch.EventType, p runtime.Object) {
	s.mu.Lock()
	s.watches = slices.DeleteFunc(s.watches, (*watch.FakeWatcher).IsStopped)
	watches := slices.Clone(s.watches)
	s.mu.Unlock()
	for _, w := range watches {
		w.Action(typ, p.DeepCopyObject())
	}
}

func (s *server) add(p *corev1.Pod)    { s.notify(watch.Added, s.set(p)) }
func (s *server) modify(p *corev1.Pod) { s.notify(watch.Modified, s.set(p)) }
func (s *server) remove(key string)    { s.notify(watch.Deleted, s.lose(key)) }

// relist ends the watches so that the informer lists again, and waits for that.
func (s *server) relist() {
	gone := apierrors.NewResourceExpired("too old")
	s.mu.Lock()
	watches := s.watches
	s.watches = nil
	s.mu.Unlock()
	for _, w := range watches {
		w.Error(&gone.ErrStatus)
	}
	pass(5 * time.Second) // the reflector backs off
}

func (s *server) List(metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if err := s.fail; err != nil {
		s.fail = nil
		return nil, err
	}
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.version)}}
	var keys []string
	for k := range s.objs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		l.Items = append(l.Items, *s.objs[k].DeepCopy())
	}
	return l, nil
}

func (s *server) Watch(metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watch.NewFakeWithChanSize(1000, false)
	s.watches = append(s.watches, w)
	return w, nil
}

// IsWatchListSemanticsUnSupported makes reflectors list and then watch.
func (s *server) IsWatchListSemanticsUnSupported() bool { return true }

// pod makes a pod with this UID; node is the field that changes.
func pod(key, uid, node string) *corev1.Pod {
	namespace, name, _ := strings.Cut(key, "/")
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
}

// log is a handler that records its notifications.
type log struct {
	mu    sync.Mutex
	lines []string
	gate  chan struct{} // if set, each call waits for a token
}

func (l *log) add(format string, args ...any) {
	if l.gate != nil {
		<-l.gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// take returns the notifications since the last call.
func (l *log) take() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func show(obj any) string {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Sprintf("%T", obj)
	}
	return fmt.Sprintf("%s(%s on %s)", podKey(p), p.UID, p.Spec.NodeName)
}

func (l *log) OnAdd(obj any, initial bool) {
	if initial {
		l.add("initial %s", show(obj))
	} else {
		l.add("add %s", show(obj))
	}
}

func (l *log) OnUpdate(old, obj any) {
	if old == obj {
		l.add("same %s", show(obj))
		return
	}
	l.add("update %s -> %s", show(old), show(obj))
}

func (l *log) OnDelete(obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		l.add("missed %s %s", d.Key, show(d.Obj))
		return
	}
	l.add("delete %s", show(obj))
}

// start runs an informer until the test ends.
func start(t *testing.T, i cache.SharedIndexInformer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(stop)
	synctest.Wait()
	return stop
}

func handle(t *testing.T, i cache.SharedIndexInformer, h cache.ResourceEventHandler) cache.ResourceEventHandlerRegistration {
	t.Helper()
	r, err := i.AddEventHandler(h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %s\n want %s", what, strings.Join(got, "\n      "), strings.Join(want, "\n      "))
	}
}
