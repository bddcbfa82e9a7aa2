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

// ahead is how many events may be cut out before the Reflector takes them: to wake it for each costs more than to
// cut one.
const ahead = 128

// rawWatch is apimachinery's StreamWatcher but for that.
type rawWatch struct {
	decoder *rawDecoder
	events  chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

// newRawWatch reads a watch until it ends or is stopped.
func newRawWatch(ctx context.Context, d *rawDecoder) *rawWatch {
	w := &rawWatch{decoder: d, events: make(chan watch.Event, ahead), stopped: make(chan struct{})}
	go w.run(ctx)
	return w
}

// ResultChan implements watch.Interface.
func (w *rawWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *rawWatch) Stop() {
	w.once.Do(func() {
		close(w.stopped)
		w.decoder.Close()
	})
}

func (w *rawWatch) run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer close(w.events)
	defer w.Stop()
	for {
		typ, obj, err := w.decoder.Decode()
		ev := watch.Event{Type: typ, Object: obj}
		if err != nil {
			if errors.Is(err, io.EOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) {
				klog.FromContext(ctx).V(5).Info("A watch has ended", "err", err)
				return
			}
			err = fmt.Errorf("unable to decode an event from the watch stream: %w", err)
			ev = watch.Event{Type: watch.Error, Object: decoding.AsObject(err)}
		}
		select {
		case w.events <- ev:
		case <-w.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}

// decoding says of an error that what the server sent cannot be read, as client-go's clients do.
var decoding = apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
