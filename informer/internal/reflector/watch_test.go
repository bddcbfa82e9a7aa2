package reflector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// TestSilence: the silence alarm is for streams that have bookmarks. Events have only the one that ends a
// streaming list.
func TestSilence(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := synced(r)
		r.pass(2 * silence)
		q.send(modified("a", "8"))
		q.finish()
		q = r.next("watch 8").accept().send(bookmark("9"))
		r.pass(silence - time.Second)
		q.send(modified("a", "10"))
		r.pass(silence - time.Second)
		r.within(time.Second, 2*time.Second, "probe").list("10", "")
		if !errors.Is(r.state().Err, errSilent) {
			r.Errorf("the error is %v", r.state().Err)
		}
		r.next("watch 10").accept()
		r.within(silence, silence+time.Second, "probe")
	})
}

// TestNoPosition: "0" is not a version, whoever sends it. A stream that believed it would watch from any version.
func TestNoPosition(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := synced(r).send(bookmark("0"), modified("a", "8"))
		r.want("the bookmark is ignored", "modified a@8")
		q.cut()
		r.next("probe").list("0", "")
		q = r.next("watch 8").accept()
		q.cut()
		r.next("probe").list("8", "")
		r.next("watch 8").refuse(410, metav1.StatusReasonExpired)
		_, _ = io.WriteString(r.next("stream").accept().body, end("0")) // it is not read to its end
		r.next("stream")
		if err := r.state().Err; !errors.Is(err, errNoVersion) {
			r.Errorf("a list that ends at no version: %v", err)
		}
	})
}

// TestOverdue: a watch that does not end in time, and has no bookmarks, may be dead.
func TestOverdue(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r)
		r.within(300*time.Second+overdue, 600*time.Second+overdue, "watch 7").accept()
		r.within(300*time.Second+overdue, 600*time.Second+overdue, "probe").list("8", "")
		r.next("watch 7")
		r.current(0)
	})
}

// TestRetryAfter: the server's delay applies to every request.
func TestRetryAfter(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		later := func(q *request) { q.answer <- answer{err: refusal(http.StatusTooManyRequests, "", 20)} }
		soon := func(want string) *request { return r.within(20*time.Second, 25*time.Second+time.Millisecond, want) }
		later(r.next("stream"))
		later(soon("stream"))
		later(soon("list"))
		soon("list").list("7", "")
		later(r.next("watch 7"))
		q := soon("watch 7").accept()
		r.next("probe").list("7", "")
		q.cut()
		later(r.next("probe"))
		soon("probe").list("7", "")
		r.next("watch 7")
	})
}

// TestGarbledFrame: an unreadable frame is read once more, since the connection may be to blame.
func TestGarbledFrame(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := synced(r)
		r.pass(time.Second)
		q.send(garbage)
		r.next("watch 7").accept().send(modified("a", "8"), modified("a", "9"))
		r.want("the second attempt succeeds", "modified a@8", "modified a@9")
	})
}

const garbage = `{"type":"DELETED","object":{"metadata":{"name":7}}}` + "\n"

// TestUnknownFrame: an unreadable frame of an unknown object may be a deletion. Nothing after it is read before
// a list has given the state to the sink, so that a process killed in between resumes before it.
func TestUnknownFrame(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := synced(r)
		r.pass(time.Second)
		q.send(garbage)
		r.next("watch 7").accept().send(garbage)
		q = r.within(0, time.Millisecond, "stream")
		if v := r.sink.Version(); v != "7" {
			r.Errorf("during the list the stream is at %s", v)
		}
		q.accept().send(end("10"), garbage)
		r.want("the list", "missed unreadable", "begin", "page 10", "live 10")
		r.next("watch 10").accept().send(modified("a", "11"))
		r.want("another unreadable frame is counted anew", "modified a@11")
	})
}

// TestUnknownFramesForEver: a server that sends only garbage is not listed in a loop.
func TestUnknownFramesForEver(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		r.next("probe").list("7", "")
		q := r.next("watch 7").accept()
		r.pass(time.Second)
		for range maxRelists {
			q.send(garbage)
			r.next("watch 7").accept().send(garbage)
			q = r.within(0, time.Millisecond, "stream").accept().send(end("7"))
			r.pass(time.Second)
		}
		for d := first; d < 16*first; d *= 2 {
			q.send(garbage)
			r.next("watch 7").accept().send(garbage)
			q = r.within(d, 2*d, "stream").accept().send(end("7"))
			r.pass(time.Second)
		}
	})
}

// TestDeletedUnread: a deletion needs only the object's name. Of an existing object, a version is skipped, and
// the sink is notified of it.
func TestDeletedUnread(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		const bad = `{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"8","uid":7}}}` + "\n"
		q := synced(r)
		r.pass(time.Second)
		q.send(bad)
		q = r.next("watch 7").accept().send(bad)
		r.want("the second time", "missed unreadable now", "deleted a@8")
		r.pass(time.Second)
		q.send(unread("b", "9"))
		q = r.next("watch 8").accept().send(unread("b", "9"), modified("c", "10"))
		r.want("the unreadable version", "missed unreadable now", "skipped b", "modified c@10")
		r.pass(time.Second)
		q.finish()
		r.next("watch 10")
	})
}

// unread is a frame of which only the object's metadata can be read.
func unread(name, version string) string {
	return frame(wire.Modified, fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q},"spec":%s%s}`, name, version,
		strings.Repeat("[", 10_000), strings.Repeat("]", 10_000)))
}

// TestClosedWatch: after a server ends watches, the next one begins at once, but not in a loop.
func TestClosedWatch(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).finish()
		r.next("watch 7").accept().finish()
		r.within(first, 2*first, "probe").list("7", "")
		q := r.next("watch 7").accept()
		r.pass(time.Minute)
		q.send(modified("a", "8")).finish()
		r.within(0, time.Millisecond, "watch 8")
		r.current(2) // the second watch ended at once, perhaps before the server sent anything
	})
}

// TestWatchFromTheFuture: a watch at a future version is accepted and delivers nothing, so the stream probes.
func TestWatchFromTheFuture(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		synced(r).cut()
		r.next("probe").list("5", "")
		r.next("stream").accept().send(end("5"))
		r.want("another history", "missed history-changed", "begin epoch", "page 5", "live 5")
	})
}

// TestEventFromThePast in every watch does not cause new epochs in a loop.
func TestEventFromThePast(t *testing.T) {
	scripted(t, func(r *rig) { r.sink.reject("modified a@8") }, func(r *rig) {
		synced(r).send(modified("a", "8"))
		for range 2 {
			r.within(0, time.Millisecond, "stream").accept().send(end("7"), modified("a", "8"))
		}
		r.within(first, 2*first, "stream")
	})
}

// TestExpiredOften: 410 after lasting watches means that a server compacts often. After watches of one frame it
// would cause a loop of lists.
func TestExpiredOften(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := synced(r)
		expired := func(after time.Duration) {
			q.send(modified("a", "8"))
			r.pass(after)
			q.send(failure(http.StatusGone, metav1.StatusReasonExpired))
		}
		relisted := func(least, most time.Duration) { q = r.within(least, most, "stream").accept().send(end("9")) }
		for range 5 {
			expired(lasting)
			relisted(0, time.Millisecond)
		}
		expired(lasting - time.Second)
		relisted(0, time.Millisecond)
		for d := first; d < 16*first; d *= 2 {
			expired(lasting - time.Second)
			relisted(d, 2*d)
		}
		expired(lasting)
		relisted(0, time.Millisecond)
	})
}

// TestCutOften: a connection that breaks after each frame does not work.
func TestCutOften(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := synced(r)
		for d := first; d < 16*first; d *= 2 {
			q.send(modified("a", "7")).cut()
			r.within(d, 2*d, "probe").list("7", "")
			q = r.next("watch 7").accept()
		}
		r.pass(lasting)
		q.send(modified("a", "7")).cut()
		r.within(first, 2*first, "probe")
	})
}

// TestWatchesRefused while lists and probes are not: the stream lists at growing intervals, and the caller is
// notified that versions are missing.
func TestWatchesRefused(t *testing.T) {
	for name, c := range map[string]struct {
		code   int32
		reason metav1.StatusReason
		least  time.Duration // the delay after the first
	}{
		"a version of another time, to an aggregated API server": {400, metav1.StatusReasonBadRequest, time.Minute},
		"no right to watch": {403, metav1.StatusReasonForbidden, time.Minute},
		"nothing to watch":  {404, metav1.StatusReasonNotFound, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(r *rig) { r.on.Paged = true }, func(r *rig) {
				r.next("list").list("7", "")
				r.want("the first list", "begin", "page 7", "live 7")
				d := first
				for range 3 {
					for _, next := range []string{"probe", "probe", "list"} {
						r.next("watch 7").refuse(c.code, c.reason)
						r.within(max(d, c.least), 2*max(d, c.least), next).list("7", "")
						d = min(2*d, 30*time.Second)
					}
					r.want("a list", "missed watch-failed", "begin", "page 7", "live 7")
				}
				r.next("watch 7").accept().send(modified("a", "8"), failure(500, metav1.StatusReasonInternalError))
				r.within(first, 2*first, "probe")
			})
		})
	}
}

// TestErrorIsOver: a response to a list or watch ends an error. A response to a probe does not.
func TestErrorIsOver(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		failed := func(q *request) {
			q.refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
			if m := r.state(); !apierrors.IsServiceUnavailable(m.Err) {
				r.Errorf("after a failure: %+v", m)
			}
		}
		over := func(q *request, yes bool) *request {
			q.accept()
			if m := r.state(); (m.Err == nil) != yes {
				r.Errorf("after the answer to %s: %+v", q, m)
			}
			return q
		}
		failed(r.next("stream"))
		over(r.next("stream"), true).cut()
		failed(r.next("list"))
		over(r.next("list"), true).send(page("7", "")).finish()
		failed(r.next("watch 7"))
		over(r.next("probe"), false).send(page("7", "")).finish()
		over(r.next("watch 7"), true)
	})
}

// TestProtobuf: the response decides the format.
func TestProtobuf(t *testing.T) {
	scripted(t, nil, func(r *rig) {
		q := r.next("stream").acceptAs(wire.Protobuf)
		q.send(protobuf(t, wire.Added, pod("a", "5")), protobuf(t, wire.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}), protobuf(t, wire.Modified, pod("a", "8")))
		r.want("the list and the watch", "begin", "a@5", "page 7", "live 7", "modified a@8")
		q.send(protobuf(t, wire.Error, &metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired}))
		r.next("stream")
		r.want("410", "missed expired", "begin")
	})
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// protobuf is one frame of a watch.
func protobuf(t *testing.T, kind string, object interface{ Marshal() ([]byte, error) }) string {
	t.Helper()
	must := func(b []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	of := runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	if kind == wire.Error {
		of.Kind = "Status"
	}
	unknown := &runtime.Unknown{TypeMeta: of, Raw: must(object.Marshal())}
	raw := append([]byte("k8s\x00"), must(unknown.Marshal())...)
	event := must((&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}).Marshal())
	return string(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
}
