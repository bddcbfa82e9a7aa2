package differential

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var things = schema.GroupResource{Group: "example.com", Resource: "things"}

// begin adds handlers and indexers and starts both informers.
func (w *world) begin() {
	for range w.rng.IntN(12) {
		w.change(false)
	}
	if w.rng.IntN(3) == 0 {
		w.both("AddIndexers", func(s *side) error { return s.informer.AddIndexers(w.kind.indexers("managed")) })
	}
	w.both("SetTransform", func(s *side) error {
		if f := transforms[w.transform]; f != nil {
			return s.informer.SetTransform(f)
		}
		return nil
	})
	w.both("SetWatchErrorHandlerWithContext", func(s *side) error { return s.informer.SetWatchErrorHandlerWithContext(s.onWatchError) })
	for range w.rng.IntN(4) {
		w.register()
	}
	w.read() // nothing yet
	refused := w.faulty && w.rng.IntN(4) == 0
	if refused {
		w.refuse(errors.New("no lists yet"))
	}
	for _, s := range []*side{w.theirs, w.ours} {
		s.start()
	}
	w.sleep(tick / 2) // from now on nothing coincides with a resync
	if refused {
		w.note("lists are refused at first")
		w.sleep(20 * time.Second)
		w.compare(true)
		w.register()
		w.refuse(nil)
		w.resyncsDiffer = w.resync > 0
		w.recover(true)
	}
	w.waitForBoth()
	w.compare(true)
}

// step performs one random step and compares the results.
func (w *world) step() {
	faults := 0
	if w.faulty {
		faults = 6
	}
	switch n := w.rng.IntN(20 + faults); n {
	case 0, 1, 2, 3, 4, 5, 6:
		for range 1 + w.rng.IntN(4) {
			w.change(false)
		}
	case 7:
		w.change(true)
	case 8, 9:
		w.register()
	case 10:
		w.unregister()
	case 11, 12, 13:
		d := time.Duration(1+w.rng.IntN(200)) * tick
		w.note("%v pass", d)
		w.sleep(d)
	case 14:
		if w.writes {
			w.write()
		}
	case 15:
		w.bookmark()
	case 16:
		name := []string{"managed", "twice", "labels"}[w.rng.IntN(3)]
		w.note("AddIndexers %s", name)
		w.both("AddIndexers "+name, func(s *side) error { return s.informer.AddIndexers(w.kind.indexers(name)) })
	case 17:
		w.late()
	case 18, 19:
		w.waitForBoth()
		w.compare(true)
		return
	default:
		w.fault(n - 20)
		return
	}
	w.waitForBoth()
	w.compare(false)
}

// change adds, updates, deletes or replaces an object; hidden means without a watch event.
func (w *world) change(hidden bool) {
	namespace, name := fmt.Sprintf("n%d", w.rng.IntN(3)), fmt.Sprintf("o%d", w.rng.IntN(6))
	if namespace == "n0" {
		namespace = "" // cluster-scoped
	}
	key := keyOf(w.kind.object(namespace, name, "", 0, w.rng))
	w.made++
	old, exists := w.objects[key]
	uid := ""
	if w.uids {
		uid = "u" + strconv.Itoa(w.made)
	}
	what := w.rng.IntN(6)
	if !exists {
		what = 6
	}
	add, modify, remove := w.source.Add, w.source.Modify, w.source.Delete
	if hidden {
		add, modify, remove = w.source.AddDropWatch, w.source.ModifyDropWatch, w.source.DeleteDropWatch
	}
	w.note("change %s, %d, hidden %t", key, what, hidden)
	switch {
	case what < 3:
		w.objects[key] = w.kind.object(namespace, name, string(accessor(old).GetUID()), w.made, w.rng)
		modify(w.objects[key].DeepCopyObject())
	case what == 3: // replaced: two events
		remove(old.DeepCopyObject())
		w.objects[key] = w.kind.object(namespace, name, uid, w.made, w.rng)
		add(w.objects[key].DeepCopyObject())
	case what < 6:
		delete(w.objects, key)
		remove(old.DeepCopyObject())
	default:
		w.objects[key] = w.kind.object(namespace, name, uid, w.made, w.rng)
		add(w.objects[key].DeepCopyObject())
	}
}

func (w *world) register() {
	n, f := w.registered, w.form()
	w.registered++
	w.note("handler %d comes: %+v", n, f)
	w.both("AddEventHandler", func(s *side) error { return s.add(n, f, w.resync) })
}

// unregister removes a handler, sometimes one that was removed already or belongs to the other side.
func (w *world) unregister() {
	numbers := w.theirs.numbers()
	if len(numbers) == 0 {
		return
	}
	n := numbers[w.rng.IntN(len(numbers))]
	wait := w.rng.IntN(2) == 0 && !w.theirs.handlers[n].removed
	w.note("handler %d goes, waiting %t", n, wait)
	w.both("RemoveEventHandler", func(s *side) error { return s.remove(n, wait) })
}

// write changes the store directly, as tests with fakes do. Handlers are not notified.
func (w *world) write() {
	w.made++
	o := w.kind.object("n1", fmt.Sprintf("o%d", w.rng.IntN(9)), "", w.made, w.rng)
	accessor(o).SetResourceVersion("7" + strconv.Itoa(w.made))
	what := w.rng.IntN(8)
	w.note("write %s into the store: %d", keyOf(o), what)
	w.both("write", func(s *side) error {
		store, mine := s.informer.GetStore(), o.DeepCopyObject()
		switch what {
		case 0, 1:
			return store.Add(mine)
		case 2, 3:
			return store.Update(mine)
		case 4, 5:
			return store.Delete(mine)
		case 6:
			return store.Resync()
		default:
			store.Bookmark("12345")
			return store.Replace([]any{mine, w.kind.object("n2", "replaced", "", 1, rand.New(rand.NewPCG(1, 1)))}, "54321")
		}
	})
	w.waitForBoth()
	w.read()
}

func (w *world) bookmark() {
	w.note("bookmark")
	list, err := w.source.List(metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	version := list.(metav1.ListInterface).GetResourceVersion()
	for _, s := range []*side{w.theirs, w.ours} {
		s.line.send(s.line.bookmark(version, nil))
	}
}

// late calls the methods that must be called before the start.
func (w *world) late() {
	w.note("calls that come too late")
	w.both("SetTransform", func(s *side) error { return s.informer.SetTransform(transforms["a copy"]) })
	w.both("SetWatchErrorHandler", func(s *side) error {
		return s.informer.SetWatchErrorHandler(func(*cache.Reflector, error) {})
	})
	w.both("SetWatchErrorHandlerWithContext", func(s *side) error { return s.informer.SetWatchErrorHandlerWithContext(s.onWatchError) })
	w.both("RemoveEventHandler of another", func(s *side) error {
		if s.informer.RemoveEventHandler(stranger{}) == nil {
			return nil
		}
		return errors.New("refused")
	})
	w.both("Run again", func(s *side) error { s.informer.RunWithContext(w.Context()); return nil })
}

// stranger is a registration of neither informer.
type stranger struct {
	cache.ResourceEventHandlerRegistration
}

// fault makes lists or watches of both sides fail.
func (w *world) fault(n int) {
	w.resyncsDiffer = w.resync > 0
	reported := w.rng.IntN(4) > 0 // whether the watch error handler must be called: for a shorter watch, only if the list fails, too
	if reported {
		w.sleep(long)
	}
	switch n {
	case 0: // a new list has the missed change
		w.change(true)
		w.note("reset")
		w.source.ResetWatch()
	case 1:
		w.note("cut")
		w.each((*line).cut)
		reported = false
	case 2:
		w.errorEvent()
		reported = false
	case 3:
		reported = w.refuseWatch() && reported
	case 4:
		w.note("lists are refused for a while")
		w.refuse(apierrors.NewForbidden(things, "", errors.New("not now")))
		w.change(true)
		w.source.ResetWatch()
		w.change(false)
		w.sleep(time.Duration(w.rng.IntN(90)) * time.Second)
		w.refuse(nil)
	case 5:
		w.change(true)
		w.note("reset, and a change at once")
		w.source.ResetWatch()
		w.change(false)
		w.change(false)
	}
	w.recover(reported)
}

// recover waits until both have recovered from a failure.
func (w *world) recover(reported bool) {
	w.Helper()
	w.waitForBoth()
	w.sleep(long)
	a, b := w.theirs.failures(), w.ours.failures()
	if reported && a > 0 && b == 0 {
		w.fail("the watch error handler was called %d times by client-go, never by ours", a)
	}
	// Each was down for a different time, in which it did not resync.
	w.unlike.repeats = w.resync > 0
	w.compare(true)
}

// long is how long a watch must last for client-go to continue after its end without a list.
const long = 1200 * time.Millisecond

// errorEvent ends the watches with an error event.
func (w *world) errorEvent() {
	events := []apierrors.APIStatus{
		apierrors.NewResourceExpired("too old"),
		apierrors.NewInternalError(errors.New("broken")),
		apierrors.NewTooManyRequests("busy", 1),
		apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "watch", things, "", "away", 0, true),
	}
	status := events[w.rng.IntN(len(events))].Status()
	w.note("error event: %s", status.Reason)
	w.each(func(l *line) { l.send(watch.Event{Type: watch.Error, Object: status.DeepCopy()}) })
}

// refuseWatch cuts the watches and refuses the next one. It reports whether that calls the watch error handler.
func (w *world) refuseWatch() bool {
	errs := []error{
		apierrors.NewResourceExpired("too old"),
		apierrors.NewTooManyRequests("busy", 1),
		fmt.Errorf("dial: %w", syscall.ECONNREFUSED),
		apierrors.NewInternalError(errors.New("broken")),
	}
	n := w.rng.IntN(len(errs))
	w.note("cut, and the next watch: %v", errs[n])
	w.each(func(l *line) {
		l.refuseNext(errs[n])
		l.cut()
	})
	return n == 0 || n == 3
}

func (w *world) each(do func(*line)) {
	do(w.theirs.line)
	do(w.ours.line)
}

func (w *world) refuse(err error) { w.each(func(l *line) { l.refuse(err) }) }
