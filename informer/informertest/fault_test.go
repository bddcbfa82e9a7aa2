package informertest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/informer/informertest"
)

type fault = informertest.Fault

// TestFaultsInStreams: the events of a streaming list, then of a watch.
func TestFaultsInStreams(t *testing.T) {
	const (
		all      = "A b 1002, A a 1001, END 1002, BOOKMARK 1002"
		watching = "?watch=1&resourceVersion=1000&timeoutSeconds=5"
		watched  = "A a 1001, A b 1002"
	)
	for _, c := range []struct {
		why          string
		fault        fault
		list, watch  string // the expected events
		asJSON, also string // of the list, if different in JSON; further parameters of its request
	}{
		{"a fault of another kind", fault{Resource: widgets, Code: 500}, all, watched, "", ""},
		{"a server without streaming lists", fault{On: informertest.StreamingLists, Code: 400}, "400", watched, "", ""},
		{"or with the feature off", fault{On: informertest.StreamingLists, Code: 422}, "422", watched, "", ""},
		{"an overloaded one", fault{On: informertest.Watches, Code: 429, RetryAfter: time.Second}, all, "429 1 Too many", "", ""},
		{"one without protobuf", fault{Protobuf: true, Code: 406}, "406", "406", all, ""},
		{"one that fails on protobuf", fault{Protobuf: true, On: informertest.StreamingLists, Code: 500}, "500", watched, all, ""},
		{"one that does not know the parameters: a watch", fault{Effect: informertest.IgnoreStreaming},
			"A b 1002, A a 1001, BOOKMARK 1002", watched, "", ""},
		{"which resumes after a version", fault{Effect: informertest.IgnoreStreaming}, "A b 1002, BOOKMARK 1002", watched, "", "&resourceVersion=1001"},
		{"no end bookmark", fault{Effect: informertest.NoEndBookmark}, "A b 1002, A a 1001, BOOKMARK 1002", watched, "", ""},
		{"even with a version", fault{Effect: informertest.NoEndBookmark}, "A b 1002, A a 1001, BOOKMARK 1002", watched, "", "&resourceVersion=1001"},
		{"the first frame is cut", fault{Effect: informertest.CutFrame, Times: 1}, "unexpected EOF", watched, "", ""},
		{"every first frame is cut", fault{Effect: informertest.CutFrame}, "unexpected EOF", "unexpected EOF", "", ""},
		{"garbage", fault{Effect: informertest.GarbleFrame, Times: 1}, "garbage, A a 1001, END 1002, BOOKMARK 1002", watched,
			"invalid character 'ÿ' looking for beginning of value", ""},
		{"410 in the stream", fault{Effect: informertest.ErrorEvent, Times: 1}, "ERROR 410", watched, "", ""},
		{"500 in the stream", fault{Effect: informertest.ErrorEvent, Code: 500}, "ERROR 500", "ERROR 500", "", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
				list := c.list
				if c.asJSON != "" && accept != acceptProtobuf {
					list = c.asJSON
				}
				watch := c.watch
				if c.fault.Protobuf && accept != acceptProtobuf {
					watch = watched
				}
				end := s.Misbehave(c.fault)
				check(t, "a streaming list", events(t, s, "/api/v1/pods"+streamingList+c.also, accept), list)
				check(t, "a watch", events(t, s, "/api/v1/pods"+watching, accept), watch)
				end()
				check(t, "a streaming list after the fault ended", events(t, s, "/api/v1/pods"+streamingList, accept), all)
			})
		})
	}
}

// check compares events, or the beginning of an error.
func check(t *testing.T, what, got, want string) {
	t.Helper()
	refusal := len(want) > 2 && want[0] >= '4' && want[0] <= '5'
	if got != want && !(refusal && strings.HasPrefix(got, want)) {
		t.Errorf("%s: got %s\nwant %s", what, got, want)
	}
}

// TestChangesBeforeEnd: the list begins with an old state and is current at its end.
func TestChangesBeforeEnd(t *testing.T) {
	for _, c := range []struct {
		why     string
		compact bool
		changes int
		want    string
	}{
		{"the last changes", false, 3, "A b 1002, A a 1001, M a 1003, D b 1004, A c 1005, END 1005, BOOKMARK 1005"},
		{"the last one", false, 1, "A a 1003, A c 1005, END 1005, BOOKMARK 1005"},
		{"the whole history", false, 0, "A a 1001, A b 1002, M a 1003, D b 1004, A c 1005, END 1005, BOOKMARK 1005"},
		{"at most the kept history", true, 3, "A c 1005, A a 1003, END 1005, BOOKMARK 1005"},
	} {
		t.Run(c.why, func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
				s.Put(pods, "n", "a", nil)
				s.Delete(pods, "n", "b")
				s.Put(pods, "n", "c", nil)
				if c.compact {
					s.Compact()
				}
				s.Misbehave(fault{On: informertest.StreamingLists, Effect: informertest.ChangesBeforeEnd, Changes: c.changes})
				check(t, "a streaming list", events(t, s, "/api/v1/pods"+streamingList, accept), c.want)
			})
		})
	}
}

// TestErrorInOpenWatch: an error is sent to an open, idle watch.
func TestErrorInOpenWatch(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		time.AfterFunc(time.Second, func() { s.Misbehave(fault{Effect: informertest.ErrorEvent, Times: 1}) })
		check(t, "a watch", events(t, s, "/api/v1/pods?watch=1&resourceVersion=1002&timeoutSeconds=60", accept), "ERROR 410")
	})
}

// TestFaultsOfBodies: the responses to the first and second list and get.
func TestFaultsOfBodies(t *testing.T) {
	const lists, gets = informertest.Lists, informertest.Gets
	for _, c := range []struct {
		why         string
		fault       fault
		list, get   string // the beginning of the responses
		list2, get2 string
	}{
		{"overload, twice", fault{Code: 429, RetryAfter: 1500 * time.Millisecond, Times: 2}, "429 2 Too many requests", "429 2 Too many requests", "200", "200"},
		{"the next list fails", fault{On: lists, Code: 500, Times: 1}, "500  {", "200", "200", "200"},
		{"every get is refused", fault{On: gets, Code: 503, RetryAfter: time.Minute}, "200", "503 60 {", "200", "503 60 {"},
		{"lists and gets", fault{On: lists | gets, Code: 403}, "403", "403", "403", "403"},
		{"watches only", fault{On: informertest.Watches | informertest.StreamingLists | informertest.Discovery, Code: 500}, "200", "200", "200", "200"},
		{"half a list", fault{On: lists, Effect: informertest.CutFrame, Times: 1}, "cut in half", "200", "200", "200"},
		{"half an object", fault{On: gets, Effect: informertest.CutFrame}, "200", "cut in half", "200", "cut in half"},
		{"garbage", fault{Effect: informertest.GarbleFrame, Times: 2}, "half is garbage", "half is garbage", "200", "200"},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := two()
			answers := func(uri string) string { return answer(t, s, uri, "") }
			fine := map[string]string{"/api/v1/pods": answers("/api/v1/pods"), "/api/v1/namespaces/n/pods/a": answers("/api/v1/namespaces/n/pods/a")}
			s.Misbehave(c.fault)
			for i, want := range []string{c.list, c.get, c.list2, c.get2} {
				uri := []string{"/api/v1/pods", "/api/v1/namespaces/n/pods/a"}[i%2]
				got, whole := answers(uri), fine[uri]
				half := len("200  ") + len(whole[len("200  "):])/2
				switch want {
				case "200":
					want = whole
				case "cut in half":
					want = whole[:half] + " unexpected EOF"
				case "half is garbage":
					want = whole[:half] + strings.Repeat("\xff", len(whole)-half-1) + "\n"
				}
				if !strings.HasPrefix(got, want) {
					t.Errorf("request %d: got %q, want %q", i, got, want)
				}
			}
		})
	}
}

// answer returns the status, Retry-After, and the body.
func answer(t *testing.T, s *informertest.Server, uri, accept string) string {
	t.Helper()
	resp, err := ask(t, s, uri, accept)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.body)
	text := fmt.Sprintf("%d %s %s", resp.code, resp.header.Get("Retry-After"), b)
	if err != nil {
		text += " " + err.Error()
	}
	return text
}

// TestRefusalOfProtobuf: a server without protobuf refuses it in JSON.
func TestRefusalOfProtobuf(t *testing.T) {
	s := two()
	s.Misbehave(fault{Protobuf: true, Code: 406})
	if got := answer(t, s, "/api/v1/pods", acceptProtobuf+",application/json"); !strings.HasPrefix(got, `406  {"kind":"Status"`) {
		t.Errorf("got %s", got)
	}
	s.Misbehave(fault{Code: 500})
	if got := answer(t, s, "/apis/example.com/v1/widgets", acceptProtobuf+",application/json"); !strings.HasPrefix(got, "500  k8s\x00") {
		t.Errorf("another refusal is sent in the requested format; got %q", got)
	}
}

// TestHang: nothing is sent until the client cancels or the connection breaks.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		s.Misbehave(fault{Effect: informertest.Hang})
		start := time.Now()
		time.AfterFunc(time.Hour, s.Cut)
		if got := get(t, s, "/api/v1/pods"); !strings.Contains(got, "connection reset") || time.Since(start) != time.Hour {
			t.Errorf("after %s: %s", time.Since(start), got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		resp, err := s.Config().Transport.RoundTrip(request(t, "/api/v1/pods").WithContext(ctx))
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that canceled got %v, %v", resp, err)
		}
	})
}

// TestSilence: a muted server keeps watches open and sends the events later.
func TestSilence(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		s.Mute(true)
		time.AfterFunc(3*time.Second, func() { s.Mute(false) })
		start := time.Now()
		check(t, "a streaming list", events(t, s, "/api/v1/pods"+streamingList, accept), "A b 1002, A a 1001, END 1002, BOOKMARK 1002")
		s.Mute(true)
		check(t, "a streaming list that ends before", events(t, s, "/api/v1/pods"+streamingList, accept), "")
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("they took %s", d)
		}
	})
}

// TestSend: arbitrary bytes are sent between two events.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		go func() {
			synctest.Wait()
			s.Send(pods, "\x00\x00\x00\x02xx")
			s.Send(widgets, "for others")
			s.Put(pods, "n", "a", nil)
		}()
		resp, err := ask(t, s, "/api/v1/pods?watch=1&resourceVersion=1002&timeoutSeconds=5", acceptProtobuf)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.body)
		if err != nil || bytes.Count(b, []byte("\x00\x00\x00\x02xx")) != 1 || bytes.Contains(b, []byte("for others")) || !bytes.Contains(b, []byte("1003")) {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

// TestSendBig: bytes that are longer than every buffer are sent, too.
func TestSendBig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		big := `{"type":"ADDED","object":{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 1<<20) + `"}}}}` + "\n"
		go func() {
			synctest.Wait()
			s.Send(pods, big)
		}()
		if got := answer(t, s, "/api/v1/pods?watch=1&resourceVersion=1002&timeoutSeconds=5", "application/json"); !strings.Contains(got, big) {
			t.Errorf("not among %d bytes", len(got))
		}
	})
}

// TestBigObject: an object of 3 MB works.
func TestBigObject(t *testing.T) {
	s := two()
	big := strings.Repeat("x", 3<<20)
	s.Put(pods, "n", "big", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": big}}})
	for _, accept := range []string{"application/json", acceptProtobuf} {
		if got := answer(t, s, "/api/v1/pods", accept); !strings.Contains(got, big) {
			t.Errorf("%s: not in the list of %d bytes", accept, len(got))
		}
	}
}

func TestSenselessFaults(t *testing.T) {
	for _, f := range []fault{{}, {Code: 200}, {Effect: informertest.CutFrame, Code: 410}, {Code: 500, Name: "a"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", f)
				}
			}()
			informertest.NewServer().Misbehave(f)
		}()
	}
}
