package reflector

import (
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listed is next for a list, which must ask for one that is not older than a version; empty: for the newest.
func (r *rig) listed(want, notOlderThan string) *request {
	r.Helper()
	q := r.next(want)
	match := ""
	if notOlderThan != "" || want == "stream" {
		match = "NotOlderThan"
	}
	if get := q.query.Get; get("resourceVersion") != notOlderThan || get("resourceVersionMatch") != match {
		r.Errorf("%s: not older than %q (%s), want %q", q, get("resourceVersion"), get("resourceVersionMatch"), notOlderThan)
	}
	return q
}

// tooLarge is the refusal of a version that the server has not reached.
func tooLarge() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}}}
}

// tooLargeFrame is the same in a stream.
const tooLargeFrame = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}}` + "\n"

const expired = metav1.StatusReasonExpired

// TestNotOlderThan: a list that replaces a state of the same epoch asks for one that is not older than what was seen.
func TestNotOlderThan(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := r.listed("stream", "").accept().send(added("a", "5"), end("7"))
		q.send(modified("a", "12"), failure(http.StatusGone, expired))
		r.listed("stream", "12").accept().send(added("a", "12"), end("12"), bookmark("20")).finish()
		r.next("watch 20").accept().send(bookmark("21"))
		r.pass(lasting)
		r.want("two lists", "begin", "a@5", "page 7", "live 7", "modified a@12", "missed expired", "begin", "a@12", "page 12", "live 12", "bookmark 20", "bookmark 21")
	})
	scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
		r.listed("list", "").list("7", "", object("a", "5"))
		r.next("watch 7").accept().send(bookmark("9"), failure(http.StatusGone, expired))
		r.listed("list", "9").list("9", "x", object("a", "5"))
		q := r.next("list x")
		if q.query.Has("resourceVersion") || q.query.Has("resourceVersionMatch") {
			r.Errorf("a token has its version: %v", q.query)
		}
		q.list("9", "")
		r.next("watch 9")
	})
}

// TestNotOlderThanBrokenList: the objects of a list that broke off stay. The next list must not be older than they are: it would
// delete them.
func TestNotOlderThanBrokenList(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).send(bookmark("9"), failure(http.StatusGone, expired))
		r.listed("stream", "9").accept().send(added("a", "5"), added("new", "15")).cut()
		r.listed("stream", "15").accept().send(added("a", "5"), added("new", "15"), end("16"))
		r.want("two lists", "bookmark 9", "missed expired", "begin", "a@5", "new@15", "begin", "a@5", "new@15", "page 16", "live 16")
	})
}

// TestOlderThanAsked: a server that refuses the version, or sends an older list, is asked for the newest one. Only that one
// can prove another history, and an old watch cache never moves the stream backwards.
func TestOlderThanAsked(t *testing.T) {
	for name, answer := range map[string]func(q *request){
		"its cache is behind, in the stream":  func(q *request) { q.accept().send(tooLargeFrame) },
		"its cache is behind":                 func(q *request) { q.answer <- answer{err: tooLarge()} },
		"it takes no version":                 func(q *request) { q.refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest) },
		"it takes no version in this form":    func(q *request) { q.refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid) },
		"it takes the version for a watch's":  func(q *request) { q.accept().send(failure(http.StatusGone, expired)) },
		"it sends an older list nevertheless": func(q *request) { q.accept().send(added("a", "5"), end("8")) },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				synced(r).send(modified("a", "9"), failure(http.StatusGone, expired))
				r.taken()
				answer(r.listed("stream", "9"))
				r.listed("stream", "").accept().send(added("a", "9"), end("10"))
				if m := r.state(); m.State != Watching || m.Paged {
					r.Errorf("after the newest list: %+v", m)
				}
				if got := r.sink.Version(); got != "10" {
					r.Errorf("the stream is at %s: %s", got, r.taken())
				}
			})
		})
	}
}

// TestRestoredBehind: a server that was restored to an older state refuses the version; its newest list proves it.
func TestRestoredBehind(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).send(bookmark("100"), failure(http.StatusGone, expired))
		r.taken()
		r.listed("stream", "100").accept().send(tooLargeFrame)
		r.listed("stream", "").accept().send(added("a", "5"), end("8"))
		r.listed("stream", "").accept().send(added("a", "5"), end("8"), bookmark("9"), failure(http.StatusGone, expired))
		r.want("a new epoch", "begin", "a@5", "missed history-changed", "begin epoch", "a@5", "page 8", "live 8", "bookmark 9", "missed expired")
	})
}

// TestNewest: no version is named where it proves nothing: in the first list, while the history is uncertain until a list is
// complete, for versions that are not ordered, and by a second list in a row.
func TestNewest(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).send(bookmark("9"), failure(http.StatusGone, expired))
		r.listed("stream", "9").accept().send(added("a", "5"), end("9"), failure(http.StatusGone, expired))
		r.listed("stream", "")
	})
	scripted(t, nil, func(r *rig) {
		r.sink.reject("modified a@9")
		synced(r).send(modified("a", "9"))
		r.listed("stream", "").accept().cut()
		r.listed("stream", "")
	})
	scripted(t, nil, func(r *rig) {
		r.next("stream").accept().send(added("a", "v5"), end("v7"), failure(http.StatusGone, expired))
		r.listed("stream", "")
	})
}
