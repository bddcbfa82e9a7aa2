package reflector

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unauthorized answers with 401.
func (q *request) unauthorized() { q.refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized) }

// TestRotatedToken: after the first 401 client-go reads the token again, so the next request normally works.
func TestRotatedToken(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		r.next("stream").unauthorized()
		if m := r.state(); m.Err == nil || m.Refused() {
			r.Errorf("after one: %+v", m)
		}
		q := r.within(time.Second, 2*time.Second, "stream").accept().send(end("7"))
		r.pass(time.Minute)
		q.finish()
		r.next("watch 7").unauthorized()
		r.within(time.Second, 2*time.Second, "probe").list("7", "")
		r.next("watch 7").accept()
		r.want("nothing is lost", "begin", "begin", "page 7", "live 7")
		if m := r.state(); m.Err != nil {
			r.Errorf("it is over: %+v", m)
		}
	})
}

// TestUnauthorizedForLong: after several in a row, a user has to act. Any other response ends the row.
func TestUnauthorizedForLong(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := r.next("stream")
		for d := time.Second; d <= 4*time.Second; d *= 2 {
			q.unauthorized()
			if m := r.state(); m.Refused() {
				r.Errorf("too early: %+v", m)
			}
			q = r.within(d, 2*d, "stream")
		}
		q.unauthorized()
		if m := r.state(); !m.Refused() {
			r.Errorf("after the fourth: %+v", m)
		}
		q = r.within(time.Minute, 76*time.Second, "stream")
		q.refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		if m := r.state(); m.Refused() {
			r.Errorf("after another failure: %+v", m)
		}
		q = r.next("stream")
		q.unauthorized()
		q = r.within(time.Second, 2*time.Second, "stream")
		q.accept().send(end("7"))
		if m := r.state(); m.Paged || m.Refused() {
			r.Errorf("401 is not about the form: %+v", m)
		}
	})
}

// TestUnauthorizedWatches: 401s lose no history, because the version is not to blame.
func TestUnauthorizedWatches(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		for range 7 {
			r.next("probe").list("7", "")
			r.next("watch 7").unauthorized()
		}
		if m := r.state(); !m.Refused() {
			r.Errorf("after seven: %+v", m)
		}
		r.next("probe").list("7", "")
		r.next("watch 7").accept().send(modified("a", "8"))
		r.want("no list, and no gap", "modified a@8")
	})
}

// TestUnauthorizedVerification: a token that is rotated during verification proves nothing about the loaded
// state.
func TestUnauthorizedVerification(t *testing.T) {
	resumed(t, func(r *rig, verified *int) {
		r.next("probe").list("7", "")
		r.within(time.Second, 2*time.Second, "probe").list("7", "")
		r.next("watch 7").accept()
		r.want("no list", "caught up 7")
	}, refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, 0))
}
