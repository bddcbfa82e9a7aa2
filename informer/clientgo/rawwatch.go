package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// eventBuffer is the number of events that may be cut out before the Reflector takes them. Waking it for each event
// costs more than cutting one.
const eventBuffer = 128

// rawWatch is a StreamWatcher (apimachinery) with a buffer. It ends with the program's own watch, which has no
// events.
type rawWatch struct {
	decoder *rawDecoder
	program watch.Interface
	events  chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

// newRawWatch reads a watch until it ends or is stopped, or until the program's watch ends.
func newRawWatch(ctx context.Context, d *rawDecoder, program watch.Interface) *rawWatch {
	w := &rawWatch{decoder: d, program: program, events: make(chan watch.Event, eventBuffer), stopped: make(chan struct{})}
	go w.run(ctx)
	return w
}

// ResultChan implements watch.Interface.
func (w *rawWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *rawWatch) Stop() {
	w.once.Do(func() {
		close(w.stopped)
		w.program.Stop()
		w.decoder.Close()
	})
}

func (w *rawWatch) run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer close(w.events)
	var bound sync.WaitGroup
	unexpected := make(chan watch.Event, 1)
	bound.Go(func() { w.follow(unexpected) })
	defer bound.Wait()
	defer w.Stop()
	for {
		typ, obj, err := w.decoder.Decode()
		ev := watch.Event{Type: typ, Object: obj}
		if err != nil {
			select {
			case <-w.stopped: // the program's watch has ended, or the Reflector has stopped ours
				w.report(unexpected)
				return
			default:
			}
			if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) {
				klog.FromContext(ctx).V(5).Info("A watch has ended", "error", err)
				return
			}
			err = fmt.Errorf("unable to decode an event from the watch stream: %w", err)
			ev = watch.Event{Type: watch.Error, Object: decoding.AsObject(err)}
		}
		select {
		case w.events <- ev:
		case <-w.stopped:
			w.report(unexpected)
			return
		}
		if err != nil {
			return
		}
	}
}

// follow ends the watch when the program's watch ends or has an event.
func (w *rawWatch) follow(unexpected chan<- watch.Event) {
	defer w.Stop()
	select {
	case <-w.stopped:
	case ev, ok := <-w.program.ResultChan():
		if !ok {
			return
		}
		if ev.Type != watch.Error {
			ev = watch.Event{Type: watch.Error, Object: decoding.AsObject(errAltered)}
		}
		unexpected <- ev
	}
}

// report passes on the event that ended the program's watch, if the Reflector still listens.
func (w *rawWatch) report(unexpected <-chan watch.Event) {
	select {
	case ev := <-unexpected:
		select {
		case w.events <- ev:
		default:
		}
	default:
	}
}

// decoding marks an error as unreadable server data, as client-go's clients do.
var decoding = apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
