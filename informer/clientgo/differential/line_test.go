package differential

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
)

// line is the connection of one informer to the common source: it copies every object, as a network would, and can be
// made to fail.
type line struct {
	source  *fcache.FakeControllerSource
	example runtime.Object
	// streams means that lists can be streamed.
	streams bool

	mu       sync.Mutex
	listErr  error
	watchErr error // error of the next watch
	open     []*stream
	lists    int // successful ones, streamed or not
}

var _ cache.ListerWatcher = (*line)(nil)

// IsWatchListSemanticsUnSupported is called by client-go before it streams a list.
func (l *line) IsWatchListSemanticsUnSupported() bool { return !l.streams }

// List lists in the order of the keys.
func (l *line) List(o metav1.ListOptions) (runtime.Object, error) {
	l.mu.Lock()
	err := l.listErr
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	list, items, err := l.objects(o)
	if err != nil {
		return nil, err
	}
	return list, meta.SetList(list, items)
}

// objects returns the source's objects, copied and sorted, and their list.
func (l *line) objects(o metav1.ListOptions) (runtime.Object, []runtime.Object, error) {
	list, err := l.source.List(o)
	if err != nil {
		return nil, nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(items, func(a, b runtime.Object) int { return strings.Compare(keyOf(a), keyOf(b)) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists++
	return list, items, nil
}

// Watch follows the source, after a streamed list if requested.
func (l *line) Watch(o metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	err := l.watchErr
	l.watchErr = nil
	if err == nil && o.SendInitialEvents != nil {
		err = l.listErr
	}
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var first []watch.Event
	if o.SendInitialEvents != nil {
		if !l.streams {
			return nil, errors.New("streamed lists are not served")
		}
		if first, err = l.initial(&o); err != nil {
			return nil, err
		}
	}
	up, err := l.source.Watch(o)
	if err != nil {
		return nil, err
	}
	s := &stream{up: up, out: make(chan watch.Event), inject: make(chan watch.Event), stopped: make(chan struct{})}
	l.mu.Lock()
	l.open = append(l.open, s)
	l.mu.Unlock()
	go s.run(first)
	return s, nil
}

// initial returns the events at the start of a streamed list, and sets o to continue after them.
func (l *line) initial(o *metav1.ListOptions) ([]watch.Event, error) {
	list, items, err := l.objects(*o)
	if err != nil {
		return nil, err
	}
	var out []watch.Event
	for _, item := range items {
		out = append(out, watch.Event{Type: watch.Added, Object: item})
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	o.ResourceVersion = m.GetResourceVersion()
	return append(out, l.bookmark(o.ResourceVersion, map[string]string{metav1.InitialEventsAnnotationKey: "true"})), nil
}

func (l *line) bookmark(version string, annotations map[string]string) watch.Event {
	o := l.example.DeepCopyObject()
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err) // the examples are ours
	}
	m.SetResourceVersion(version)
	m.SetAnnotations(annotations)
	return watch.Event{Type: watch.Bookmark, Object: o}
}

// refuse makes lists fail with err; nil ends that.
func (l *line) refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listErr = err
}

// refuseNext makes the next watch fail to start.
func (l *line) refuseNext(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchErr = err
}

// each calls f with every open watch.
func (l *line) each(do func(*stream)) {
	l.mu.Lock()
	l.open = slices.DeleteFunc(l.open, (*stream).over)
	open := slices.Clone(l.open)
	l.mu.Unlock()
	for _, s := range open {
		do(s)
	}
}

// cut ends every watch, like a restarting server.
func (l *line) cut() { l.each((*stream).Stop) }

// send sends an event on every watch.
func (l *line) send(e watch.Event) {
	l.each(func(s *stream) {
		select {
		case s.inject <- e:
		case <-s.stopped:
		}
	})
}

// following reports whether a watch is open.
func (l *line) following() bool {
	n := 0
	l.each(func(*stream) { n++ })
	return n > 0
}

// listed returns the number of lists since the last call.
func (l *line) listed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.lists
	l.lists = 0
	return n
}

// stream is one watch.
type stream struct {
	up      watch.Interface
	out     chan watch.Event
	inject  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func (s *stream) ResultChan() <-chan watch.Event { return s.out }

func (s *stream) Stop() { s.once.Do(func() { close(s.stopped) }) }

func (s *stream) over() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

func (s *stream) run(first []watch.Event) {
	defer close(s.out)
	defer s.Stop()
	defer s.up.Stop()
	for _, e := range first {
		if !s.pass(e) {
			return
		}
	}
	for {
		select {
		case e, ok := <-s.up.ResultChan():
			if !ok || !s.pass(watch.Event{Type: e.Type, Object: e.Object.DeepCopyObject()}) {
				return
			}
		case e := <-s.inject:
			if !s.pass(e) || e.Type == watch.Error {
				return
			}
		case <-s.stopped:
			return
		}
	}
}

func (s *stream) pass(e watch.Event) bool {
	select {
	case s.out <- e:
		return true
	case <-s.stopped:
		return false
	}
}

func keyOf(o any) string {
	k, err := cache.MetaNamespaceKeyFunc(o)
	if err != nil {
		panic(err) // the objects are ours
	}
	return k
}
