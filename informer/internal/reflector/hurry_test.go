package reflector

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHurry: after a refusal, Hurry ends the wait of a minute; after another failure, it does nothing.
func TestHurry(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		r.on.Hurry() // nothing waits yet
		synced(r).cut()
		r.next("probe").refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		r.taken()
		r.pass(30 * time.Second)
		r.on.Hurry()
		r.within(0, time.Millisecond, "probe").refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		r.within(time.Minute, 75*time.Second+time.Millisecond, "probe").refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		r.taken()
		r.on.Hurry() // not a refusal
		r.within(time.Millisecond, 75*time.Second, "probe")
	})
}
