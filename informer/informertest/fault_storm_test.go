package informertest_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// readable reads a watch as the engine does, and reports the known part of each event.
func readable(t *testing.T, s *informertest.Server, uri, accept string) string {
	t.Helper()
	resp, err := ask(t, s, uri, accept)
	if err != nil {
		t.Fatal(err)
	}
	format := wire.JSON
	if accept == acceptProtobuf {
		format = wire.Protobuf
	}
	var words []string
	for w := wire.NewWatch(format, resp.body); ; {
		e, err := w.Next()
		switch {
		case errors.Is(err, io.EOF):
			return strings.Join(words, ", ")
		case wire.Unreadable(err) && e.Name != "":
			words = append(words, fmt.Sprint("unreadable ", e.Type, " ", e.Name, " ", e.UID))
		case wire.Unreadable(err):
			words = append(words, "unreadable")
		case err != nil:
			return strings.Join(append(words, err.Error()), ", ")
		default:
			words = append(words, fmt.Sprint(e.Type, " ", e.Name, " ", e.ResourceVersion))
		}
	}
}

// TestGarbledEvents: a spoiled event stays spoiled in every watch, and only that event is.
func TestGarbledEvents(t *testing.T) {
	for _, c := range []struct {
		why   string
		fault fault
		want  string
	}{
		{"one version", fault{Effect: informertest.GarbleFrame, Version: "1003"}, "ADDED b 1002, unreadable, DELETED b 1004"},
		{"a deletion", fault{Effect: informertest.GarbleFrame, Version: "1004"}, "ADDED b 1002, MODIFIED b 1003, unreadable"},
		{"every version of an object", fault{Effect: informertest.GarbleFrame, Name: "b"}, "unreadable, unreadable, unreadable"},
		{"every version of another object", fault{Effect: informertest.GarbleFrame, Name: "a"}, "ADDED b 1002, MODIFIED b 1003, DELETED b 1004"},
		{"with readable metadata", fault{Effect: informertest.GarbleObject, Version: "1003"}, "ADDED b 1002, unreadable MODIFIED b uid-2, DELETED b 1004"},
		{"a deletion with readable metadata", fault{Effect: informertest.GarbleObject, Version: "1004"}, "ADDED b 1002, MODIFIED b 1003, unreadable DELETED b uid-2"},
		{"all objects", fault{Effect: informertest.GarbleObject, Times: 2}, "unreadable ADDED b uid-2, unreadable MODIFIED b uid-2, DELETED b 1004"},
	} {
		t.Run(c.why, func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
				s.Put(pods, "n", "b", nil)
				s.Delete(pods, "n", "b")
				s.Misbehave(c.fault)
				const uri = "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1001"
				check(t, "a watch", readable(t, s, uri, accept), c.want)
				if c.fault.Times == 0 {
					check(t, "another client's", readable(t, s, uri, accept), c.want)
				}
				if got := get(t, s, "/api/v1/namespaces/n/pods/a"); !strings.HasPrefix(got, "OK {") {
					t.Errorf("an object: %s", got)
				}
			})
		})
	}
}

// TestFork: another history overtakes the client's, and neither versions nor bookmarks reveal it.
func TestFork(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		backup := s.Snapshot() // 1002
		s.Put(pods, "n", "c", nil)
		s.Skip(10)
		const uri = "/api/v1/pods?watch=1&allowWatchBookmarks=1&timeoutSeconds=90&resourceVersion=1013"
		open := make(chan string)
		go func() { open <- events(t, s, uri, accept) }()
		synctest.Wait()
		s.Fork(backup, func() { s.Delete(pods, "n", "a") })
		check(t, "an open watch", <-open, "unexpected EOF")
		if s.Version() != "1014" {
			t.Errorf("version %s, want 1014", s.Version())
		}
		check(t, "a watch that resumes", events(t, s, uri, accept), "BOOKMARK 1014, BOOKMARK 1014")
		if all := s.Objects(pods); len(all) != 1 || all["n/b"] == nil {
			t.Errorf("objects: %v", all)
		}
		s.Fork(backup, func() {
			for range 20 {
				s.Put(pods, "n", "d", nil)
			}
		})
		if s.Version() != "1022" {
			t.Errorf("version %s, want 1022: the new history is already ahead", s.Version())
		}
	})
}

// TestStorms: bursts of refused lists, of refused watches, and of errors in open watches.
func TestStorms(t *testing.T) {
	const watch = "/api/v1/pods?watch=1&timeoutSeconds=5&resourceVersion=1001"
	for _, code := range []int{401, 410, 429, 500, 503} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
				after := "3"
				if code == 410 {
					after = "" // waiting does not help
				}
				storm := fault{Code: code, RetryAfter: 3 * time.Second, Times: 2}
				for on, uri := range map[informertest.Requests]string{informertest.Lists: "/api/v1/pods", informertest.Watches: watch} {
					storm.On = on
					s.Misbehave(storm)
					for range 2 {
						resp, err := ask(t, s, uri, accept)
						if err != nil {
							t.Fatal(err)
						}
						if got := resp.header.Get("Retry-After"); resp.code != code || got != after {
							t.Errorf("%s: %d, with Retry-After %q", uri, resp.code, got)
						}
					}
				}
				storm.On, storm.Effect = 0, informertest.ErrorEvent
				s.Misbehave(storm)
				for range 2 {
					check(t, "a watch", events(t, s, watch, accept), fmt.Sprint("ERROR ", code))
				}
				check(t, "a watch after the burst", events(t, s, watch, accept), "A b 1002")
			})
		})
	}
}

// TestRetryAfterInStream: an ERROR event carries a delay.
func TestRetryAfterInStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		s.Misbehave(fault{Effect: informertest.ErrorEvent, Code: 429, RetryAfter: 1500 * time.Millisecond})
		got := get(t, s, "/api/v1/pods?watch=1&resourceVersion=1001")
		if !strings.Contains(got, `"retryAfterSeconds":2`) || !strings.Contains(got, `"reason":"TooManyRequests"`) {
			t.Errorf("got %s", got)
		}
	})
}
