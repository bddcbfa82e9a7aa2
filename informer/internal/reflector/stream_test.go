package reflector

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// synced leads the rig through a streaming list of one object. The response is then the watch.
func synced(r *rig) *request {
	r.Helper()
	q := r.next("stream").accept().send(added("a", "5"), end("7"))
	r.want("a streaming list", "begin", "a@5", "page 7", "live 7")
	if m := r.state(); m.State != Watching || !m.Synced || m.Paged {
		r.Fatalf("after the list: %+v", m)
	}
	return q
}

func TestStreamingList(t *testing.T) {
	scripted(t, func(r *rig) { r.on.Query = map[string][]string{"labelSelector": {"a=b"}} }, func(r *rig) {
		q := r.next("stream")
		if got := q.query.Encode(); !strings.HasPrefix(got, "allowWatchBookmarks=true&labelSelector=a%3Db&"+
			"resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=") || !strings.HasSuffix(got, "&watch=true") {
			r.Errorf("query %s", got)
		}
		q.accept().send(added("a", "5"), bookmark("6"))
		r.want("a bookmark before the end means nothing", "begin", "a@5")
		if r.state().Synced || len(r.on.Lists) != 1 {
			r.Errorf("synced %v, with %d lists, before the end", r.state().Synced, len(r.on.Lists))
		}
		q.send(end("7"))
		r.want("the end", "page 7", "live 7")
		if !r.state().Synced || len(r.on.Lists) != 0 {
			r.Errorf("synced %v, with %d lists, after the end", r.state().Synced, len(r.on.Lists))
		}
		q.send(modified("a", "8"), deleted("a", "9"), bookmark("12"))
		r.want("the same response is the watch", "modified a@8", "deleted a@9", "bookmark 12")
		q.finish()
		r.next("watch 12")
	})
}

// TestChangesBeforeTheEnd: the initial objects are not of a single version.
func TestChangesBeforeTheEnd(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := r.next("stream").accept()
		q.send(added("a", "5"), added("b", "3"), modified("a", "8"), deleted("b", "9"), added("b", "10"), end("10"))
		r.want("the list", "begin", "a@5", "b@3", "a@8", "-b@9", "b@10", "page 10", "live 10")
	})
}

// TestNoEnd: a server that does not know streaming lists treats the request as a plain watch, or never sends
// the bookmark (kubernetes#140890).
func TestNoEnd(t *testing.T) {
	for name, frames := range map[string]string{
		"of objects":                    added("a", "5"),
		"of an empty collection":        "",
		"but bookmarks without an end":  added("a", "5") + bookmark("7"),
		"of objects that keep changing": added("a", "5") + modified("a", "6"),
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				q := r.next("stream").accept()
				if frames != "" {
					q.send(frames)
				}
				r.within(quiet, quiet+time.Second, "list").list("7", "", object("a", "5"))
				r.next("watch 7").accept().send(failure(http.StatusGone, metav1.StatusReasonExpired))
				r.next("list").list("9", "")
				if m := r.state(); !m.Paged || !m.Synced {
					r.Errorf("it is remembered: %+v", m)
				}
				r.next("watch 9")
			})
		})
	}
}

// TestBusyWithoutEnd: a plain watch of a busy collection is never quiet.
func TestBusyWithoutEnd(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := r.next("stream").accept()
		began := time.Now()
		for time.Since(began) < patience {
			q.send(modified("a", "5"))
			r.pass(11 * time.Second)
		}
		q.send(modified("a", "5"))
		r.within(0, time.Second, "list")
	})
}

// TestSlowList: a long list may take any time while objects keep coming.
func TestSlowList(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := r.next("stream").accept()
		large := strings.Repeat(" ", 6*pace)
		for range 5 {
			q.send(large, added("a", "5"))
			r.pass(10 * time.Second)
		}
		q.send(end("7"), added("b", "8"))
		if !r.state().Synced || r.sink.Version() != "8" {
			r.Errorf("%+v, version %s", r.state(), r.sink.Version())
		}
	})
}

// TestEndThatComesTooLate: the request was already canceled, so its response cannot become the watch.
func TestEndThatComesTooLate(t *testing.T) {
	for name, frames := range map[string]string{
		"after the slow object": added("a", "5") + end("7") + modified("a", "8"),
		"after one more":        added("a", "5") + added("b", "6") + end("7") + modified("a", "8"),
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(r *rig) { r.sink.slow = "a@5" }, func(r *rig) {
				r.next("stream").accept().send(frames)
				r.next("list").list("8", "")
				r.next("watch 8")
				r.want("only its objects count", "begin", "a@5", "begin", "page 8", "live 8")
			})
		})
	}
}

// TestStreamRefused: refusals of servers that do not know or do not allow the parameters.
func TestStreamRefused(t *testing.T) {
	for name, reply := range map[string]func(*request){
		"400, of old servers": func(q *request) { q.refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest) },
		"422, where the feature is off": func(q *request) {
			q.refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		},
		"405, where nothing can be watched":            func(q *request) { q.refuse(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed) },
		"406, to the format of a watch":                func(q *request) { q.refuse(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable) },
		"403, with the right to list but not to watch": func(q *request) { q.refuse(http.StatusForbidden, metav1.StatusReasonForbidden) },
		"within the stream, before anything came":      func(q *request) { q.accept().send(failure(400, metav1.StatusReasonBadRequest)) },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				reply(r.next("stream"))
				r.within(0, time.Millisecond, "list").list("7", "", object("a", "5"))
				r.next("watch 7").accept().send(failure(410, metav1.StatusReasonExpired))
				r.next("list").list("9", "", object("a", "5"))
				r.next("watch 9")
				r.want("the sink does not see it", "begin", "begin", "a@5", "page 7", "live 7", "missed expired", "begin", "a@5", "page 9", "live 9")
			})
		})
	}
}

// TestAllRefused: without rights, a stream learns nothing about streaming lists.
func TestAllRefused(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		r.next("stream").refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		r.next("list").refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
		q := r.within(time.Minute, 76*time.Second, "stream")
		if m := r.state(); m.Err != nil && !IsRefusal(m.Err) || m.Paged {
			r.Errorf("while it is refused: %+v", m)
		}
		q.accept().send(end("7"))
		if !r.state().Synced {
			r.Errorf("once it is allowed: %+v", r.state())
		}
	})
}

// TestStreamFails: after broken connections and overload, a streaming list is tried once more; then pages are,
// for that list only.
func TestStreamFails(t *testing.T) {
	for name, reply := range map[string]func(*request){
		"half-way":                       func(q *request) { q.accept().send(added("a", "5")).cut() },
		"half-way in a frame":            func(q *request) { q.accept().send(added("a", "5")[:20]).finish() },
		"closed before the end":          func(q *request) { q.accept().send(added("a", "5")).finish() },
		"at once":                        func(q *request) { q.answer <- answer{err: errors.New("connection refused")} },
		"503":                            func(q *request) { q.refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable) },
		"429":                            func(q *request) { q.refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests) },
		"410 in the stream":              func(q *request) { q.accept().send(added("a", "5"), failure(410, metav1.StatusReasonExpired)) },
		"500 in the stream: no progress": func(q *request) { q.accept().send(failure(500, metav1.StatusReasonInternalError)) },
		"an unreadable frame":            func(q *request) { q.accept().send("{\"type\":7}\n") },
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, nil, func(r *rig) {
				reply(r.next("stream"))
				reply(r.within(first, 2*first, "stream"))
				r.within(2*first, 4*first, "list").list("7", "", object("a", "5"))
				q := r.next("watch 7").accept()
				if log := r.taken(); strings.Contains(log, "missed") || strings.Contains(log, "epoch") || strings.Count(log, "begin") != 3 {
					r.Errorf("known objects stay: %s", log)
				}
				q.send(failure(410, metav1.StatusReasonExpired))
				r.next("stream")
			})
		})
	}
}

// TestStreamHangs: the response never comes.
func TestStreamHangs(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		r.next("stream")
		r.within(answerTimeout, answerTimeout+time.Second, "stream")
	})
}

// TestStreamFromThePast: the version at the end is behind ours.
func TestStreamFromThePast(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).send(bookmark("100"), failure(410, metav1.StatusReasonExpired))
		r.want("the watch", "bookmark 100", "missed expired", "begin")
		r.listed("stream", "100").accept().send(added("a", "5"), end("50"))
		r.want("it is older than asked for: an old watch cache has it", "a@5", "begin")
		r.listed("stream", "").accept().send(added("a", "5"), end("50"))
		r.want("the newest list cannot be of the same history", "a@5", "missed history-changed", "begin epoch")
		q := r.next("stream").accept().send(added("a", "5"), end("50"), modified("a", "51"))
		r.want("under a new epoch", "a@5", "page 50", "live 50", "modified a@51")
		q.finish()
		r.next("watch 51")
	})
}

// TestItemFromThePast: the sink knows a later version of an object.
func TestItemFromThePast(t *testing.T) {
	scripted(t, func(r *rig) { r.sink.reject("b@6") }, func(r *rig) {
		r.next("stream").accept().send(added("a", "5"), added("b", "6"))
		r.want("the list cannot be of the same history", "begin", "a@5", "b@6", "missed history-changed", "begin epoch")
		r.sink.reject("")
		r.next("stream").accept().send(added("b", "6"), end("7"))
		r.want("under a new epoch", "b@6", "page 7", "live 7")
	})
}

// TestUnreadableInAStream: one unreadable object is not a reason to stop using streaming lists.
func TestUnreadableInAStream(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		r.next("stream").accept().send(added("a", "5"), unread("b", "6"), deleted("a", "7"),
			`{"type":"DELETED","object":{"metadata":{"name":"b","uid":7}}}`, unread("b", "8"), end("9"))
		r.want("it is named", "begin", "a@5", "unreadable b", "-a@7", "-b@", "unreadable b", "page 9", "live 9")
		if n := r.notes[1]; n.Kind != NotedUnreadable || r.state().Paged {
			r.Errorf("%+v, %+v", r.notes, r.state())
		}
	})
}

// TestListFromThePast: if a list shows at its start that it is of another history, the sink receives nothing of
// it under the current one. A version sent at its end comes too late for that.
func TestListFromThePast(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		log  []string
	}{
		"metadata first": {page("5", "", object("a", "4")), nil},
		"metadata last":  {`{"items":[` + object("a", "4") + `],"metadata":{"resourceVersion":"5"}}`, []string{"a@4"}},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
				r.next("list").list("7", "", object("a", "6"))
				r.next("watch 7").accept().send(failure(http.StatusGone, metav1.StatusReasonExpired))
				r.taken()
				r.listed("list", "7").accept().send(c.body).finish()
				r.want("it is older than asked for", append(slices.Clone(c.log), "begin")...)
				r.listed("list", "").accept().send(c.body).finish()
				r.want("another history", append(c.log, "missed history-changed", "begin epoch")...)
				r.next("list").list("5", "", object("a", "4"))
				r.want("the list", "a@4", "page 5", "live 5")
			})
		})
	}
}

// TestEmptyAnswer: a list without a version is invalid if the server's lists have versions. Otherwise an empty
// response from anything in between would empty the cache.
func TestEmptyAnswer(t *testing.T) {
	for _, body := range []string{`{"kind":"PodList"}`, `{"items":null}`, page("", "x"), page("", "", object("a", "5"))} {
		scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
			r.next("list").list("7", "", object("a", "5"))
			r.next("watch 7").accept().send(failure(http.StatusGone, metav1.StatusReasonExpired))
			r.listed("list", "7").list("5", "", object("a", "4"))
			r.listed("list", "").list("5", "", object("a", "4"))
			r.taken()
			r.next("list").accept().send(body).finish()
			if log := r.taken(); strings.Contains(log, "page") || strings.Contains(log, "live") {
				r.Errorf("%s is accepted as a list: %s", body, log)
			}
			if m := r.state(); m.State != Waiting || !errors.Is(m.Err, errNoVersion) {
				r.Errorf("%s: %+v", body, m)
			}
			r.within(first, 2*first, "list").accept().send(body).finish() // although nothing is known of the new epoch yet
			r.within(2*first, 4*first, "list").list("5", "")
			r.next("watch 5")
		})
	}
}

// TestNoVersions: a server whose lists never had versions works without them.
func TestNoVersions(t *testing.T) {
	scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
		r.next("list").list("", "")
		r.next("watch ")
	})
}

// TestSamePageForEver: a server that repeats its continue token is not asked forever.
func TestSamePageForEver(t *testing.T) {
	scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
		r.next("list").list("7", "x")
		r.next("list x").list("7", "y")
		r.next("list y").list("7", "y")
		if m := r.state(); m.State != Waiting || !errors.Is(m.Err, errLoop) || len(r.on.Lists) != 0 {
			r.Errorf("%+v, with %d lists", m, len(r.on.Lists))
		}
		r.within(first, 2*first, "list").list("7", "")
		r.next("watch 7")
	})
}

// TestPaged: the caller can disable streaming lists.
func TestPaged(t *testing.T) {
	scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
		r.next("list").list("7", "x", object("a", "5"))
		r.next("list x").refuse(http.StatusGone, metav1.StatusReasonExpired)
		r.next("list whole").list("9", "", object("a", "5"), `{"metadata":{}}`)
		r.next("watch 9")
		if n := r.notes[len(r.notes)-2]; n.Kind != NotedUnreadable || n.Err == nil {
			r.Errorf("the object without a name is not noted: %+v", r.notes)
		}
		r.want("the pages", "begin", "a@5", "page 7", "begin", "a@5", "unreadable ", "page 9", "live 9")
	})
}

// TestNotes: an observer receives a note for each request, with the number of bytes.
func TestNotes(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		one, two, three := added("a", "5"), end("7"), modified("a", "8")
		q := r.next("stream").accept()
		r.pass(time.Second)
		q.send(one, two)
		r.pass(2 * time.Second)
		q.send(three, "garbage\n")
		r.next("watch 8").accept().send(failure(410, metav1.StatusReasonExpired))
		r.listed("stream", "8").refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		r.listed("stream", "").refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)
		r.next("list").list("9", "")
		q = r.next("watch 9").accept()
		r.pass(3 * time.Second)
		q.finish()
		r.next("probe").list("9", "")
		r.next("watch 9")
		want := []Note{
			{Kind: NotedListBegan, Streaming: true},
			{Kind: NotedListEnded, Streaming: true, Format: 1, Objects: 1, Bytes: int64(len(one + two)), Took: time.Second},
			{Kind: NotedWatchOpened, Format: 1},
			{Kind: NotedUnreadable, Err: cmpopts.AnyError},
			{Kind: NotedWatchClosed, Format: 1, Objects: 2, Bytes: int64(len(three + "garbage\n")), Took: 2 * time.Second, Err: cmpopts.AnyError},
			{Kind: NotedWatchOpened, Format: 1},
			{Kind: NotedWatchClosed, Format: 1, Bytes: int64(len(failure(410, metav1.StatusReasonExpired))), Err: cmpopts.AnyError},
			{Kind: NotedExpired, Err: cmpopts.AnyError},
			{Kind: NotedListBegan, Streaming: true},
			{Kind: NotedListEnded, Streaming: true, Err: cmpopts.AnyError},
			{Kind: NotedListBegan, Streaming: true},
			{Kind: NotedListEnded, Streaming: true, Err: cmpopts.AnyError},
			{Kind: NotedListBegan},
			{Kind: NotedListEnded, Format: 1, Bytes: int64(len(page("9", "")))},
			{Kind: NotedWatchOpened, Format: 1},
			{Kind: NotedWatchClosed, Format: 1, Took: 3 * time.Second},
		}
		if diff := cmp.Diff(want, r.notes, cmpopts.EquateErrors()); diff != "" {
			r.Errorf("(-want +got):\n%s", diff)
		}
	})
}
