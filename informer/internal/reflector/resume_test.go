package reflector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resumed runs a test of a reflector whose sink has loaded version 7. verified counts the calls of Verify,
// which returns errs in order, then nil.
func resumed(t *testing.T, test func(r *rig, verified *int), errs ...error) {
	t.Helper()
	verified := 0
	scripted(t, func(r *rig) {
		r.sink.load("7")
		r.on.Resume = true
		r.on.Verify = func(context.Context) (bool, error) {
			verified++
			if verified <= len(errs) {
				return false, errs[verified-1]
			}
			return false, nil
		}
	}, func(r *rig) { test(r, &verified) })
}

// caughtUp checks that the loaded state counts as a list.
func (r *rig) caughtUp() {
	r.Helper()
	if m := r.state(); !m.Synced || m.Resuming || m.State != Watching {
		r.Errorf("caught up: %+v", m)
	}
}

// behind checks that it does not yet.
func (r *rig) behind() {
	r.Helper()
	if m := r.state(); m.Synced || !m.Resuming {
		r.Errorf("not caught up: %+v", m)
	}
}

func TestCaughtUpAtOnce(t *testing.T) {
	resumed(t, func(r *rig, verified *int) {
		q := r.next("probe")
		if *verified != 0 {
			r.Error("verified before the probe")
		}
		q.list("7", "", object("a", "5"))
		r.next("watch 7").accept().send(modified("a", "8"))
		r.want("no list, and caught up once", "caught up 7", "modified a@8")
		r.caughtUp()
		if *verified != 1 {
			r.Errorf("verified %d times", *verified)
		}
	})
}

// TestCaughtUpByBookmark: a list's version is that of the whole cluster, which the watch of a quiet kind only
// reaches by a bookmark.
func TestCaughtUpByBookmark(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		r.next("probe").list("9", "")
		q := r.next("watch 7 for 3s").accept().send(bookmark("8"))
		r.want("not yet", "bookmark 8")
		r.behind()
		q.send(bookmark("9"))
		r.want("now", "bookmark 9", "caught up 9")
		r.caughtUp()
		r.pass(2 * time.Second)
		q.finish()
		r.next("watch 9")
	})
}

func TestCaughtUpByEvent(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		r.next("probe").list("9", "")
		r.next("watch 7 for 3s").accept().send(modified("a", "8"), modified("b", "10"), modified("c", "11"))
		r.want("at an event beyond the goal", "modified a@8", "modified b@10", "caught up 10", "modified c@11")
		r.caughtUp()
	})
}

// TestCaughtUpLater: the goal stays at the version of the first probe, or a busy cluster would move it away
// forever.
func TestCaughtUpLater(t *testing.T) {
	resumed(t, func(r *rig, verified *int) {
		r.next("probe").list("9", "")
		q := r.next("watch 7 for 3s").accept().send(bookmark("8"))
		r.pass(2 * time.Second)
		q.finish()
		r.next("probe").list("20", "")
		r.next("watch 8 for 8s").accept().send(bookmark("9"))
		r.want("in the second watch", "bookmark 8", "bookmark 9", "caught up 9")
		r.caughtUp()
		if *verified != 1 {
			r.Errorf("verified %d times", *verified)
		}
	})
}

// TestBookmarkTooLate: a server under load may begin a watch so late that it omits the early bookmark. That is
// not a sign of another history.
func TestBookmarkTooLate(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		r.next("probe").list("9", "")
		q := r.next("watch 7 for 3s").accept()
		r.pass(3*time.Second - time.Millisecond)
		q.finish()
		r.next("probe").list("9", "")
		r.next("watch 7 for 8s").accept().send(bookmark("9"))
		r.want("only its position", "bookmark 9", "caught up 9")
		r.caughtUp()
	})
}

// TestNeverCaughtUp: a quiet stream without bookmarks proves nothing, and neither do bookmarks that do not
// advance. A comparison would, but here it is missing, or the watch does not deliver the differences.
func TestNeverCaughtUp(t *testing.T) {
	lap := func(r *rig, watch string, life time.Duration, frames ...string) {
		q := r.next(watch).accept().send(frames...)
		r.pass(life - time.Millisecond)
		q.finish()
	}
	for name, c := range map[string]struct {
		play func(*rig)
		log  []string
	}{
		"no bookmarks, as of Events": {func(r *rig) {
			lap(r, "watch 7 for 3s", 3*time.Second)
			r.next("probe").list("9", "")
			lap(r, "watch 7 for 8s", 8*time.Second)
			r.next("probe").list("9", "")
			lap(r, "watch 7", 13*time.Second)
		}, nil},
		"bookmarks that are behind": {func(r *rig) {
			lap(r, "watch 7 for 3s", 3*time.Second, bookmark("8"))
			r.next("probe").list("9", "")
			lap(r, "watch 8 for 8s", 8*time.Second, bookmark("8"))
			r.next("probe").list("9", "")
			lap(r, "watch 8", 13*time.Second)
		}, []string{"bookmark 8", "bookmark 8"}},
		"no watch that lasts": {func(r *rig) {
			for range maxShort {
				r.next("watch 7 for 3s").accept().finish()
				r.next("probe").list("9", "")
			}
			r.next("watch 7 for 3s").accept().finish()
			r.next("probe").list("9", "")
			r.next("watch 7 for 8s").accept().finish()
			r.next("probe").list("9", "")
			r.next("watch 7").accept().finish()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			resumed(t, func(r *rig, _ *int) {
				r.next("probe").list("9", "")
				c.play(r)
				r.behind()
				r.current(0)
				r.next("stream").accept().send(added("a", "5"), end("9"))
				r.want("a list, by content", append(c.log, "missed unverified", "begin by content", "a@5", "page 9", "live 9")...)
				r.caughtUp()
			})
		})
	}
}

// TestCompared: without a bookmark, a comparison with a full list shows that a quiet stream is current.
func TestCompared(t *testing.T) {
	for name, c := range map[string]struct {
		same bool
		err  error
		then func(*rig)
	}{
		"nothing differs": {true, nil, func(r *rig) {
			r.next("watch 7").accept()
			r.want("it is current", "caught up 12")
			r.caughtUp()
		}},
		"something differs, and the watch delivers it": {false, nil, func(r *rig) {
			r.next("watch 7").accept().send(modified("a", "10"))
			r.want("it is current", "modified a@10", "caught up 10")
			r.caughtUp()
		}},
		"something differs that a watch cannot deliver": {false, ErrMissed, func(r *rig) {
			r.next("stream").accept().send(end("12"))
			r.want("a list, by content", "missed missed", "begin by content", "page 12", "live 12")
		}},
		"it is of another history": {false, ErrReplaced, func(r *rig) {
			r.next("stream").accept().send(end("12"))
			r.want("another history", "missed history-changed", "begin epoch", "page 12", "live 12")
		}},
		"the server fails": {false, errors.New("broken"), func(r *rig) {
			r.behind()
			r.next("probe").list("9", "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			resumed(t, func(r *rig, _ *int) {
				r.on.Compare = func(context.Context) (string, bool, error) { return "12", c.same, c.err }
				r.next("probe").list("9", "")
				for _, watch := range []string{"watch 7 for 3s", "watch 7 for 8s"} {
					q := r.next(watch).accept()
					r.pass(2 * time.Second)
					q.finish()
					r.next("probe").list("9", "")
				}
				c.then(r)
			})
		})
	}
}

// TestResumeTooLate: an expired version causes a gap, but the history is the same.
func TestResumeTooLate(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		r.next("probe").list("9", "")
		r.next("watch 7 for 3s").accept().send(failure(http.StatusGone, metav1.StatusReasonExpired))
		r.next("stream").accept().send(end("9"))
		r.want("a list against the loaded state", "missed expired", "begin", "page 9", "live 9")
		r.caughtUp()
	})
}

// TestAnotherHistory: etcd was restored, or the cluster is another one.
func TestAnotherHistory(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		play func(*rig)
		log  []string
	}{
		"its version is behind ours": {nil, func(r *rig) {
			r.next("probe").list("6", "")
		}, nil},
		"the caller sees that it is another cluster": {fmt.Errorf("identity: %w", ErrReplaced), func(r *rig) {
			r.next("probe").list("9", "")
		}, nil},
		"an expected deletion did not arrive": {nil, func(r *rig) {
			r.sink.reject("caught up 9")
			r.next("probe").list("9", "")
			r.next("watch 7 for 3s").accept().send(bookmark("9"))
		}, []string{"bookmark 9", "caught up 9"}},
		"an expected deletion did not arrive, and the version is reached at once": {nil, func(r *rig) {
			r.sink.reject("caught up 7")
			r.next("probe").list("7", "")
		}, []string{"caught up 7"}},
		"an event is older than the state": {nil, func(r *rig) {
			r.sink.reject("modified a@8")
			r.next("probe").list("9", "")
			r.next("watch 7 for 3s").accept().send(modified("a", "8"))
		}, []string{"modified a@8"}},
		"a bookmark is older than the state": {nil, func(r *rig) {
			r.sink.reject("bookmark 8")
			r.next("probe").list("9", "")
			r.next("watch 7 for 3s").accept().send(bookmark("8"))
		}, []string{"bookmark 8"}},
		"the server's version goes back during the catch-up": {nil, func(r *rig) {
			r.next("probe").list("9", "")
			r.next("watch 7 for 3s").accept().cut()
			r.next("probe").list("8", "")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			resumed(t, func(r *rig, _ *int) {
				c.play(r)
				r.want("a new epoch", append(c.log, "missed history-changed", "begin epoch")...)
				r.behind()
				r.sink.reject("")
				r.next("stream").accept().send(added("a", "5"), end("6"), bookmark("8")).cut()
				r.next("probe").list("8", "")
				r.next("watch 8").accept()
				r.want("the earlier goal does not count", "a@5", "page 6", "live 6", "bookmark 8")
				r.caughtUp()
			}, c.err)
		})
	}
}

// TestUnverified: a state that cannot be verified is listed and compared by content.
func TestUnverified(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs string
		err          error
	}{
		"no right to ask":                    {"7", "9", refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0)},
		"the object is not found":            {"7", "9", refusal(http.StatusNotFound, metav1.StatusReasonNotFound, 0)},
		"the object is gone":                 {"7", "9", refusal(http.StatusGone, metav1.StatusReasonExpired, 0)},
		"versions that have no order":        {"7", "x9", nil},
		"the loaded state has no version":    {"", "9", nil},
		"the server's list has no version":   {"7", "", nil},
		"neither has a version":              {"", "", nil},
		"0, which is not a version":          {"0", "0", nil},
		"versions of another kind of server": {"0xa", "0xb", nil},
	} {
		t.Run(name, func(t *testing.T) {
			resumed(t, func(r *rig, _ *int) {
				q := r.next("probe")
				r.sink.load(c.ours)
				q.list(c.theirs, "")
				r.next("stream").accept().send(end("9"))
				r.want("a list, by content", "missed unverified", "begin by content", "page 9", "live 9")
				r.caughtUp()
			}, c.err)
		})
	}
}

// TestUnorderedButEqual: equal versions prove that nothing happened, whatever their form.
func TestUnorderedButEqual(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		q := r.next("probe")
		r.sink.load("0xa")
		q.list("0xa", "")
		r.next("watch 0xa")
		r.want("no list", "caught up 0xa")
	})
}

// TestVerifyLater: a temporary failure to ask the server proves nothing about its history.
func TestVerifyLater(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		after time.Duration
	}{
		"it is overloaded": {refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 3), 3 * time.Second},
		"it failed":        {apierrors.NewInternalError(errTest), first},
		"it is away":       {errors.New("connection refused"), first},
	} {
		t.Run(name, func(t *testing.T) {
			resumed(t, func(r *rig, verified *int) {
				r.next("probe").list("7", "")
				r.behind()
				r.within(c.after, 2*c.after, "probe").list("7", "")
				r.next("watch 7")
				r.want("no list", "caught up 7")
				if *verified != 2 {
					r.Errorf("verified %d times", *verified)
				}
			}, c.err)
		})
	}
}

// TestVerifyHangs: a server that does not answer does not hang the stream.
func TestVerifyHangs(t *testing.T) {
	scripted(t, func(r *rig) {
		r.sink.load("7")
		r.on.Resume = true
		r.on.Verify = func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}
	}, func(r *rig) {
		r.next("probe").list("7", "")
		q := r.within(answerTimeout, answerTimeout+time.Second, "probe")
		if !errors.Is(r.state().Err, errNoAnswer) {
			r.Errorf("the error is %v", r.state().Err)
		}
		q.refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		r.next("probe")
		r.want("nothing is listed")
	})
}

// TestProbeFails: the loaded state survives a failed probe.
func TestProbeFails(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		r.next("probe").refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		r.within(first, 2*first, "probe").refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		r.within(time.Minute, 76*time.Second, "probe").list("9", "")
		r.next("watch 7 for 3s").accept().cut()
		r.next("probe").list("9", "")
		r.want("nothing is listed")
		r.behind()
		r.next("watch 7 for 3s").accept().send(bookmark("9"))
		r.caughtUp()
	})
}

// TestResumedKindThatIsGone parks at the second 404.
func TestResumedKindThatIsGone(t *testing.T) {
	resumed(t, func(r *rig, _ *int) {
		r.next("probe").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		r.next("probe").refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		r.pass(20 * time.Second)
		r.want("no events are invented")
		if r.state().State != Parked {
			r.Errorf("%+v", r.state())
		}
	})
}

// TestVerifiedPending: an object missing on the server may have been deleted after the probe, so the goal is
// the server's version after the check.
func TestVerifiedPending(t *testing.T) {
	scripted(t, func(r *rig) {
		r.sink.load("7")
		r.on.Resume = true
		r.on.Verify = func(context.Context) (bool, error) { return true, nil }
	}, func(r *rig) {
		r.next("probe").list("7", "")
		r.next("probe").refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		r.next("probe").list("7", "")
		r.next("probe").list("8", "")
		r.next("watch 7 for 3s").accept().send(deleted("a", "8"))
		r.want("at the deletion", "deleted a@8", "caught up 8")
		r.caughtUp()
	})
}
