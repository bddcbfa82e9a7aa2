package reflector

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAwaitServed: AwaitServed looks for the kind at growing intervals, whatever the server answers, until it
// is served.
func TestAwaitServed(t *testing.T) {
	for name, last := range map[string]func(*request){
		"empty":                        func(q *request) { q.list("7", "") },
		"in another history than ours": func(q *request) { q.list("5", "", object("a", "4")) },
	} {
		t.Run(name, func(t *testing.T) {
			parked(t, func(r *rig, over <-chan error, _ func()) {
				r.taken()
				reports := r.sink.reports
				for i, d := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
					q := r.within(d, d+d/4+time.Millisecond, "probe")
					if i%2 == 0 {
						q.refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
					} else {
						q.accept().cut()
					}
				}
				last(r.within(5*time.Minute, 6*time.Minute+16*time.Second, "probe"))
				if err := <-over; err != nil {
					r.Error(err)
				}
				r.want("the sink does not see it")
				if m := r.state(); m.State != Parked || r.sink.reports != reports || len(r.on.Lists) != 0 {
					r.Errorf("%+v, after %d reports", m, r.sink.reports-reports)
				}
			})
		})
	}
}

// TestAwaitServedEnds with its context, during a delay or a request.
func TestAwaitServedEnds(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		parked(t, func(r *rig, over <-chan error, stop func()) {
			if hangs {
				r.next("probe")
			}
			stop()
			if err := <-over; !errors.Is(err, context.Canceled) {
				r.Error(err)
			}
		})
	}
}

// parked runs a test of a stream that is parked at version 7 and waits until its kind is served or ctx ends.
func parked(t *testing.T, test func(r *rig, over <-chan error, stop func())) {
	t.Helper()
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		r.next("probe").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		r.within(4*time.Second, 5*time.Second+time.Millisecond, "probe").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		synctest.Wait()
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		over := make(chan error, 1)
		go func() { over <- r.on.AwaitServed(ctx) }()
		test(r, over, stop)
	})
}
