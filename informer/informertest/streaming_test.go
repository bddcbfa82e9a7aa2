package informertest_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tattler-dev/tattler/informer/informertest"
)

const streamingList = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=5"

// events reads a watch to its end and returns a word for each event, in either format. An error that ends it
// early comes last.
func events(t *testing.T, s *informertest.Server, uri, accept string) string {
	t.Helper()
	resp, err := ask(t, s, uri, accept)
	if err != nil {
		return err.Error()
	}
	if resp.code != http.StatusOK {
		b, err := io.ReadAll(resp.body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.code, " ", resp.header.Get("Retry-After"), " ", string(b))
	}
	next := jsonEvents(resp.body)
	if strings.HasPrefix(resp.header.Get("Content-Type"), acceptProtobuf) {
		next = protobufEvents(resp.body)
	}
	var words []string
	for {
		e, err := next()
		if err != nil {
			if err != io.EOF { //nolint:errorlint // as readers return it
				words = append(words, err.Error())
			}
			return strings.Join(words, ", ")
		}
		words = append(words, e)
	}
}

func jsonEvents(r io.Reader) func() (string, error) {
	d := json.NewDecoder(r)
	return func() (string, error) {
		var e struct {
			Type   string
			Object struct {
				metav1.PartialObjectMetadata
				Code int
			}
		}
		if err := d.Decode(&e); err != nil {
			return "", err
		}
		return word(e.Type, &e.Object.PartialObjectMetadata, e.Object.Code), nil
	}
}

func protobufEvents(r io.Reader) func() (string, error) {
	b := bufio.NewReader(r)
	return func() (string, error) {
		head := make([]byte, 4)
		if _, err := io.ReadFull(b, head); err != nil {
			return "", err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(b, frame); err != nil {
			return "", err
		}
		var (
			e metav1.WatchEvent
			u runtime.Unknown
			m metav1.PartialObjectMetadata
			s metav1.Status
		)
		if err := e.Unmarshal(frame); err != nil {
			return "garbage", nil //nolint:nilerr // the next frame can be read
		}
		if err := u.Unmarshal(e.Object.Raw[4:]); err != nil {
			return "", err
		}
		if u.Kind == "Status" {
			err := s.Unmarshal(u.Raw)
			return word(e.Type, &m, int(s.Code)), err
		}
		err := m.Unmarshal(u.Raw)
		return word(e.Type, &m, 0), err
	}
}

func word(event string, m *metav1.PartialObjectMetadata, code int) string {
	switch {
	case event == "ERROR":
		return fmt.Sprint("ERROR ", code)
	case event == "BOOKMARK" && m.Annotations[metav1.InitialEventsAnnotationKey] == "true":
		return "END " + m.ResourceVersion
	case event == "BOOKMARK":
		return "BOOKMARK " + m.ResourceVersion
	}
	return event[:1] + " " + m.Name + " " + m.ResourceVersion
}

// inBothForms runs a test with the pods a and b, reading events as JSON and as protobuf.
func inBothForms(t *testing.T, test func(t *testing.T, s *informertest.Server, accept string)) {
	t.Helper()
	for _, accept := range []string{"application/json", acceptProtobuf} {
		t.Run(accept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, two(), accept) })
		})
	}
}

// TestStreamingList: the events of a 1.36 server for the parameters of a streaming list.
func TestStreamingList(t *testing.T) {
	change := func(s *informertest.Server) {
		s.Put(pods, "n", "a", nil)
		s.Delete(pods, "n", "b")
		s.Put(pods, "n", "c", nil)
	}
	for _, c := range []struct {
		why    string
		before func(*informertest.Server)
		query  string
		want   string
	}{
		{"the state, its end, then bookmarks", nil, streamingList, "A b 1002, A a 1001, END 1002, BOOKMARK 1002"},
		{"an empty state has an end, too", func(s *informertest.Server) { s.Delete(pods, "n", "a"); s.Delete(pods, "n", "b") },
			streamingList, "END 1004, BOOKMARK 1004"},
		{"only the current state is sent", change, streamingList, "A c 1005, A a 1003, END 1005, BOOKMARK 1005"},
		{"only selected objects", change, streamingList + "&fieldSelector=metadata.name%3Dc", "A c 1005, END 1005, BOOKMARK 1005"},
		{"the end is at the server's version", func(s *informertest.Server) { s.Skip(5) }, streamingList, "A b 1002, A a 1001, END 1007, BOOKMARK 1007"},
		{"not older than an old version is the current state", change, streamingList + "&resourceVersion=1001", "A c 1005, A a 1003, END 1005, BOOKMARK 1005"},
		{"so is not older than any version", nil, streamingList + "&resourceVersion=0", "A b 1002, A a 1001, END 1002, BOOKMARK 1002"},
		{"not older than the future", nil, streamingList + "&resourceVersion=1003", "ERROR 504"},
		{"without bookmarks the end is not marked", nil, strings.Replace(streamingList, "&allowWatchBookmarks=1", "", 1), "A b 1002, A a 1001"},
		{"a match is required", nil, "?watch=1&sendInitialEvents=true", "422"},
		{"another match is wrong", nil, "?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", "422"},
		{"a match without initial events is wrong", nil, "?watch=1&resourceVersionMatch=NotOlderThan", "422"},
	} {
		t.Run(c.why, func(t *testing.T) {
			inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
				if c.before != nil {
					c.before(s)
				}
				got := events(t, s, "/api/v1/pods"+c.query, accept)
				if c.want == "422" {
					got, _, _ = strings.Cut(got, " ")
				}
				if got != c.want {
					t.Errorf("got %s\nwant %s", got, c.want)
				}
			})
		})
	}
}

// TestStreamingListGoesOn: after the initial state it is a watch.
func TestStreamingListGoesOn(t *testing.T) {
	inBothForms(t, func(t *testing.T, s *informertest.Server, accept string) {
		go func() {
			synctest.Wait()
			s.Put(pods, "n", "a", nil)
			s.Delete(pods, "n", "b")
		}()
		want := "A b 1002, A a 1001, END 1002, M a 1003, D b 1004, BOOKMARK 1004"
		if got := events(t, s, "/api/v1/pods"+streamingList, accept); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// TestInitialEventsHaveNoOrder: the order is neither by version nor by name, but deterministic, and complete
// even if the number of objects is a multiple of the step that mixes them.
func TestInitialEventsHaveNoOrder(t *testing.T) {
	for _, n := range []int{1, 3, 500, 1001, 7919} {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(widgets, "Widget")
			for i := range n {
				s.Put(widgets, "n", fmt.Sprintf("%05d", i), nil)
			}
			uri := "/apis/example.com/v1/widgets" + streamingList
			first := events(t, s, uri, "")
			if again := events(t, s, uri, ""); again != first {
				t.Errorf("%d objects: another order", n)
			}
			words := strings.Split(first, ", ")
			seen, ascending := map[string]bool{}, true
			for i, w := range words[:len(words)-2] {
				seen[w] = true
				ascending = ascending && (i == 0 || words[i-1] < w)
			}
			if len(seen) != n || n > 1 && ascending {
				t.Errorf("%d objects: %d were sent, in order: %v", n, len(seen), ascending)
			}
			if end := fmt.Sprintf("END %s", s.Version()); words[len(words)-2] != end {
				t.Errorf("%d objects: ends with %s, want %s", n, words[len(words)-2], end)
			}
		})
	}
}

// TestEndComesAtOnce: the end is sent without a wait, however many events precede it.
func TestEndComesAtOnce(t *testing.T) {
	for _, n := range []int{0, 1, 499, 500, 501, 1000} {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(widgets, "Widget")
			for i := range n {
				s.Put(widgets, "n", fmt.Sprint(i), nil)
			}
			start := time.Now()
			resp, err := ask(t, s, "/apis/example.com/v1/widgets"+streamingList, "")
			if err != nil {
				t.Fatal(err)
			}
			next := jsonEvents(resp.body)
			for event := ""; !strings.HasPrefix(event, "END"); {
				if event, err = next(); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(start); d > 0 {
				t.Errorf("%d objects: the end came after %s", n, d)
			}
		})
	}
}

// TestChangesWaitForTheEnd: changes made while the initial state is sent come after its end.
func TestChangesWaitForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := two()
		for i := range 2000 {
			s.Put(pods, "n", fmt.Sprint(i), nil)
		}
		resp, err := ask(t, s, "/api/v1/pods"+streamingList, "")
		if err != nil {
			t.Fatal(err)
		}
		next, all := jsonEvents(resp.body), []string(nil)
		for {
			e, err := next()
			if err == io.EOF { //nolint:errorlint // as readers return it
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				s.Put(pods, "n", "a", nil)
			}
			all = append(all, e)
		}
		got := strings.Join(all[len(all)-3:], ", ")
		if want := "END 3002, M a 3003, BOOKMARK 3003"; got != want || len(all) != 2002+3 {
			t.Errorf("%d events, which end with %s, want %s", len(all), got, want)
		}
	})
}
