package reflector

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// broken is the error event of a server that cannot serve a watch.
var broken = failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)

// TestOverload: overload loses no history, however long it lasts, because the version is not to blame.
func TestOverload(t *testing.T) {
	for name, end := range map[string]func(*request){
		"502":               func(q *request) { q.refuse(502, metav1.StatusReasonUnknown) },
		"503":               func(q *request) { q.refuse(503, metav1.StatusReasonServiceUnavailable) },
		"504":               func(q *request) { q.refuse(504, metav1.StatusReasonTimeout) },
		"503 in the stream": func(q *request) { q.accept().send(failure(503, metav1.StatusReasonServiceUnavailable)) },
		"no answer":         func(*request) {},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				synced(r).cut()
				for range 12 {
					r.next("probe").list("7", "")
					end(r.next("watch 7"))
				}
				r.next("probe").list("7", "")
				r.next("watch 7").accept().send(modified("a", "8"))
				r.want("no list, and no gap", "modified a@8")
			})
		})
	}
}

// TestThrottled: while the server answers watches with 429, each attempt is one request.
func TestThrottled(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		r.next("probe").list("7", "")
		for range 12 {
			r.next("watch 7").refuse(429, metav1.StatusReasonTooManyRequests)
		}
		q := r.next("watch 7").accept()
		r.next("probe").list("8", "") // once it is accepted: what is late?
		q.send(modified("a", "8"))
		r.want("no list, and no gap", "modified a@8")
		if got := fmt.Sprint(r.sink.behind); got != "[7 8]" {
			r.Errorf("late changes are those up to %s", got)
		}
		q.cut()
		r.next("probe") // another failure
	})
}

// TestOverloadWaits: after overload the delay is the one that the server requests, or else grows.
func TestOverloadWaits(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		r.next("probe").list("7", "")
		r.next("watch 7").answer <- answer{err: refusal(429, metav1.StatusReasonTooManyRequests, 20)}
		r.within(20*time.Second, 26*time.Second, "watch 7").refuse(429, metav1.StatusReasonTooManyRequests)
		for d := 4 * first; d < 30*time.Second; d *= 2 {
			r.within(d, 2*d, "watch 7").refuse(429, metav1.StatusReasonTooManyRequests)
		}
	})
}

// TestNoWatchWorks: if watches at the server's own version fail too, ours is not to blame.
func TestNoWatchWorks(t *testing.T) {
	for name, try := range map[string]func(*request){
		"refused":            func(q *request) { q.refuse(500, metav1.StatusReasonInternalError) },
		"an error at once":   func(q *request) { q.accept().send(broken) },
		"cut off":            func(q *request) { q.accept().cut() },
		"not even found":     func(q *request) { q.refuse(404, metav1.StatusReasonNotFound) },
		"its version is old": func(q *request) { q.refuse(410, metav1.StatusReasonExpired) },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				synced(r).cut()
				r.next("probe").list("9", "")
				r.next("watch 7").accept().send(broken)
				r.next("probe").list("9", "")
				r.next("watch 7").accept().send(broken)
				for range 10 {
					r.next("probe").list("9", "")
					try(r.next("watch 9 for 1s"))
				}
				r.next("probe").list("9", "")
				r.next("watch 9 for 1s").accept().finish()
				r.next("watch 7").accept().send(modified("a", "8"))
				r.want("no list, and no gap", "modified a@8")
			})
		})
	}
}

// TestVersionIsRejected: if watches of the server's version work and ours has failed three times, the stream
// lists. The cause may be an object of which the server cannot read a version.
func TestVersionIsRejected(t *testing.T) {
	for name, try := range map[string]func(*rig, *request){
		"it lasts":               func(r *rig, q *request) { q.accept(); r.pass(short - time.Millisecond) },
		"the server ends it":     func(_ *rig, q *request) { q.accept().finish() },
		"it sends a frame":       func(_ *rig, q *request) { q.accept().send(modified("b", "10")) },
		"even an unreadable one": func(_ *rig, q *request) { q.accept().send(garbage) },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				synced(r).send(broken)
				r.next("probe").list("9", "")
				q := r.next("watch 7").accept()
				for range maxRejected {
					q.send(broken)
					r.next("probe").list("9", "")
					try(r, r.next("watch 9 for 1s"))
					r.want("the sink does not see the trial")
					q = r.next("watch 7").accept()
				}
				q.send(broken)
				q = r.next("stream").accept().send(end("9"), modified("a", "10"))
				r.want("a list, after a gap", "missed watch-failed", "begin", "page 9", "live 9", "modified a@10")
				q.cut()
				r.next("probe").list("10", "")
				r.next("watch 10") // the version is no longer suspect
			})
		})
	}
}

// TestOverloadBetweenRejections: only consecutive rejections count.
func TestOverloadBetweenRejections(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).send(broken)
		r.next("probe").list("7", "")
		q := r.next("watch 7").accept()
		reject := func() {
			q.send(broken)
			r.next("probe").list("7", "")
			r.next("watch 7 for 1s").accept().finish()
			q = r.next("watch 7").accept()
		}
		for range 3 {
			reject()
			reject()
			q.send(failure(503, metav1.StatusReasonServiceUnavailable))
			r.next("probe").list("7", "")
			q = r.next("watch 7").accept()
		}
		r.want("no list")
	})
}
