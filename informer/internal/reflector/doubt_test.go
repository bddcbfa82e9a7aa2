package reflector

import (
	"context"
	"errors"
	"testing"
)

// TestDoubtOnTheWay: a doubt is settled once the watch has told all that the server had after it arose.
func TestDoubtOnTheWay(t *testing.T) {
	type verdict struct {
		doubt bool
		err   error
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
		{"it could not look", verdict{err: errors.New("forbidden")}, func(r *rig) {
			r.next("watch 7").accept().send(bookmark("9"))
			r.want("", "bookmark 9")
		}},
		{"a sign", verdict{err: ErrRewritten}, func(r *rig) {
			r.next("stream").accept().send(end("9"))
			r.want("", "missed history-changed", "begin epoch", "page 9", "live 9")
		}},
		{"without cause", verdict{doubt: true}, func(r *rig) {
			r.next("probe").list("10", "")
			r.next("watch 7").accept().send(bookmark("9"), modified("a", "10"), modified("a", "11"))
			r.want("", "bookmark 9", "modified a@10", "settled", "modified a@11")
		}},
		{"with cause", verdict{doubt: true}, func(r *rig) {
			r.sink.refuse = "settled"
			r.next("probe").list("10", "")
			r.next("watch 7").accept().send(bookmark("10"))
			r.next("stream").accept().send(end("11"))
			r.want("", "bookmark 10", "settled", "missed history-changed", "begin epoch", "page 11", "live 11")
		}},
		{"the server goes away again", verdict{doubt: true}, func(r *rig) {
			r.next("probe").list("10", "")
			r.next("watch 7").accept().send(bookmark("9")).cut()
			r.next("probe").list("20", "")
			r.next("probe").list("21", "")
			r.next("watch 9").accept().send(bookmark("20"), bookmark("21"))
			r.want("", "bookmark 9", "bookmark 20", "bookmark 21", "settled")
		}},
		{"before it can say where it is", verdict{doubt: true}, func(r *rig) {
			r.next("probe").refuse(500, "InternalError")
			r.next("probe").list("9", "")
			r.next("probe").list("9", "")
			r.next("watch 7").accept().send(bookmark("9"))
			r.want("", "bookmark 9", "settled")
		}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			doubt := func(r *rig) {
				r.on.Doubt = func(context.Context) (bool, error) { return tc.verdict.doubt, tc.verdict.err }
			}
			scripted(t, doubt, func(r *rig) {
				synced(r).cut()
				r.next("probe").list("9", "")
				tc.play(r)
			})
		})
	}
}
