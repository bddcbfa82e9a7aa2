package reflector

import (
	"context"
	"errors"
	"testing"
)

// TestHistoryCheck: a pending history check ends once the watch has delivered everything that the server had
// when it began.
func TestHistoryCheck(t *testing.T) {
	type verdict struct {
		pending bool
		err     error
	}
	for _, tc := range []struct {
		why     string
		verdict verdict
		play    func(*rig)
	}{
		{"none", verdict{}, func(r *rig) {
			r.next("watch 7").accept().send(bookmark("9"))
			r.want("", "bookmark 9")
		}},
		{"it failed", verdict{err: errors.New("forbidden")}, func(r *rig) {
			r.next("watch 7").accept().send(bookmark("9"))
			r.want("", "bookmark 9")
		}},
		{"a sign", verdict{err: ErrReplaced}, func(r *rig) {
			r.next("stream").accept().send(end("9"))
			r.want("", "missed history-changed", "begin epoch", "page 9", "live 9")
		}},
		{"without cause", verdict{pending: true}, func(r *rig) {
			r.next("probe").list("10", "")
			r.next("watch 7").accept().send(bookmark("9"), modified("a", "10"), modified("a", "11"))
			r.want("", "bookmark 9", "modified a@10", "history checked", "modified a@11")
		}},
		{"with cause", verdict{pending: true}, func(r *rig) {
			r.sink.refuse = "history checked"
			r.next("probe").list("10", "")
			r.next("watch 7").accept().send(bookmark("10"))
			r.next("stream").accept().send(end("11"))
			r.want("", "bookmark 10", "history checked", "missed history-changed", "begin epoch", "page 11", "live 11")
		}},
		{"the connection breaks again", verdict{pending: true}, func(r *rig) {
			r.next("probe").list("10", "")
			r.next("watch 7").accept().send(bookmark("9")).cut()
			r.next("probe").list("20", "")
			r.next("probe").list("21", "")
			r.next("watch 9").accept().send(bookmark("20"), bookmark("21"))
			r.want("", "bookmark 9", "bookmark 20", "bookmark 21", "history checked")
		}},
		{"before the server's version is known", verdict{pending: true}, func(r *rig) {
			r.next("probe").refuse(500, "InternalError")
			r.next("probe").list("9", "")
			r.next("probe").list("9", "")
			r.next("watch 7").accept().send(bookmark("9"))
			r.want("", "bookmark 9", "history checked")
		}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			pending := func(r *rig) {
				r.on.CheckHistory = func(context.Context) (bool, error) { return tc.verdict.pending, tc.verdict.err }
			}
			scripted(t, pending, func(r *rig) {
				synced(r).cut()
				r.next("probe").list("9", "")
				tc.play(r)
			})
		})
	}
}
