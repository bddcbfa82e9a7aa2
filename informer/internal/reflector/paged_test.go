package reflector

import "testing"

// TestPagedListWatchesFromItsFirstVersion: a later page may be of a later version. What happened in between to
// the objects of earlier pages arrives only by the watch.
func TestPagedListWatchesFromItsFirstVersion(t *testing.T) {
	scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
		r.next("list").list("7", "more", object("a", "5"))
		r.next("list more").list("9", "", object("b", "9"))
		r.want("both pages", "begin", "a@5", "page 7", "b@9", "page 9", "live 7")
		q := r.next("watch 7").accept().send(modified("a", "8"), added("b", "9"), modified("b", "10"))
		r.want("the watch repeats", "modified a@8", "added b@9", "modified b@10")
		q.finish()
		r.next("watch 10")
	})
}
