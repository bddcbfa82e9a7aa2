package reflector

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestParkedLooks: a parked stream looks for its kind at growing intervals, whatever the server answers, and lists
// once the kind is served.
func TestParkedLooks(t *testing.T) {
	for name, last := range map[string]func(*request){
		"empty":                        func(q *request) { q.list("7", "") },
		"in another history than ours": func(q *request) { q.list("5", "", object("a", "4")) },
	} {
		t.Run(name, func(t *testing.T) {
			parked(t, func(r *rig) {
				for i, d := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute} {
					q := r.within(d, d+d/4+time.Millisecond, "probe")
					if i%2 == 0 {
						q.refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
					} else {
						q.accept().cut()
					}
					if m := r.state(); m.State != Parked || m.Err == nil || len(r.on.Lists) != 0 {
						r.Errorf("%+v", m)
					}
				}
				r.want("the sink does not see it")
				last(r.within(5*time.Minute, 6*time.Minute+16*time.Second, "probe"))
				r.next("stream")
				r.want("a gap before the list", "missed not served", "begin")
				if m := r.state(); m.State != Listing || m.Err != nil || !m.Synced {
					r.Errorf("%+v", m)
				}
			})
		})
	}
}

// TestParkedRequests: Retry and Retire take effect at once, during a delay or a request, Retire first.
func TestParkedRequests(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		parked(t, func(r *rig) {
			if hangs {
				r.next("probe")
			}
			r.on.Retire()
			r.want("its objects are gone", "missed not served", "retire")
			if m := r.state(); m.State != Parked {
				r.Errorf("%+v", m)
			}
			if hangs {
				r.next("probe")
			}
			r.on.Retry()
			r.on.Retire()
			r.within(0, time.Millisecond, "stream").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
			r.want("both, in order", "missed not served", "retire", "missed not served", "begin")
			r.on.Retry() // too late: it is not parked
			r.within(4*time.Second, 5*time.Second+time.Millisecond, "stream").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
			r.pass(20 * time.Second)
		})
	}
}

// TestParkedEnds with its context, during a delay or a request.
func TestParkedEnds(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		parked(t, func(r *rig) {
			if hangs {
				r.next("probe")
			}
		})
	}
}

// parked runs a test of a stream that is parked at version 7.
func parked(t *testing.T, test func(r *rig)) {
	t.Helper()
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		r.next("probe").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		r.within(4*time.Second, 5*time.Second+time.Millisecond, "probe").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		r.taken()
		test(r)
	})
}
