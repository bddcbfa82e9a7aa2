package sns

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/amazon/amazontest"
	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func serve(t *testing.T, kind string) (*Sink, *amazontest.Server) {
	t.Helper()
	server := amazontest.New(t)
	s, err := New("tattler/v1.2.3", on(server.Target(), kind))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) }) // the suite looks at its error
	return s, server
}

// TestRequestFake: what the fake sees of a request, as Amazon would.
func TestRequestFake(t *testing.T) {
	for kind, want := range map[string][]int{
		"standard": {10, 2},      // as many as there may be
		"fifo":     {3, 3, 3, 3}, // three objects take turns, and one is in a request once
	} {
		s, server := serve(t, kind)
		ms := sinktest.Messages(0, 12)
		if n, err := s.Send(t.Context(), ms); n != 12 || err != nil {
			t.Fatalf("%s: %d, %v", kind, n, err)
		}
		var sizes []int
		for _, r := range server.Requests() {
			sizes = append(sizes, len(r))
		}
		if d := cmp.Diff(want, sizes); d != "" {
			t.Errorf("%s: messages of requests (-want +got):\n%s", kind, d)
		}
		m := server.Messages()[0]
		attributes := map[string]string{
			"content-type": "application/cloudevents+json", "ce-type": "dev.tattler.change.updated.v1",
			"op": "updated", "kind": "Deployment", "namespace": "shop",
		}
		if d := cmp.Diff(attributes, m.Attributes); d != "" || m.Body != string(ms[0].Body) {
			t.Errorf("%s: body %s, attributes (-want +got):\n%s", kind, m.Body, d)
		}
		group, dedup := "", ""
		if kind == "fifo" {
			group, dedup = ms[0].Key, ms[0].ID
		}
		if m.Group != group || m.Dedup != dedup {
			t.Errorf("%s: group %q, deduplication %q", kind, m.Group, m.Dedup)
		}
	}
}

// TestRefusalsFake: what Amazon answers, and what comes of it. What SNS and SQS share is tested with SQS.
func TestRefusalsFake(t *testing.T) {
	for _, tc := range []struct {
		why   string
		each  amazontest.Answer // for the second message
		whole amazontest.Answer
		code  int
		want  string // the kind of error, and a part of its text
		text  string
	}{
		{"something about the message", amazontest.Answer{Code: "InvalidParameter", Text: "Invalid parameter: x", Sender: true}, amazontest.Answer{}, 0, "permanent", "parameter: x"},
		{"too long", amazontest.Answer{Code: "InvalidParameter", Text: "Invalid parameter: Message too long", Sender: true}, amazontest.Answer{}, 0, "long", "too long"},
		{"the service", amazontest.Answer{Code: "InternalError", Text: "try again"}, amazontest.Answer{}, 0, "passing", "try again"},
		{"no right", amazontest.Answer{}, amazontest.Answer{Code: "AuthorizationError", Text: "not authorized"}, 403, "passing", "allow sns:Publish"},
		{"no topic", amazontest.Answer{}, amazontest.Answer{Code: "NotFound", Text: "no such"}, 404, "passing", "create it, or correct"},
		{"a wrong parameter of the request", amazontest.Answer{}, amazontest.Answer{Code: "InvalidParameter", Text: "TopicArn"}, 400, "passing", "TopicArn"},
		{"the throttle", amazontest.Answer{}, amazontest.Answer{Code: "Throttled", Text: "slow down"}, 429, "passing", "quota"},
	} {
		s, server := serve(t, "standard")
		ms := sinktest.Messages(0, 2)
		server.Each(func(m amazontest.Message) amazontest.Answer {
			if m.Body == string(ms[1].Body) {
				return tc.each
			}
			return amazontest.Answer{}
		})
		server.Whole(func([]amazontest.Message) (int, amazontest.Answer) { return tc.code, tc.whole })
		n, err := s.Send(t.Context(), ms)
		want := 1
		if tc.code != 0 {
			want = 0
		}
		if got := kind(err); n != want || got != tc.want {
			t.Errorf("%s: %d acknowledged, %s: %v", tc.why, n, got, err)
		}
		yamltest.Check(t, tc.why, err, tc.text)
	}
}

// kind is what an error means to the pump.
func kind(err error) string {
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &permanent):
		return "permanent"
	case errors.As(err, &long):
		return "long"
	}
	return "passing"
}

// TestSilenceFake: an answer that leaves out a message does not acknowledge it.
func TestSilenceFake(t *testing.T) {
	s, server := serve(t, "standard")
	server.Whole(func([]amazontest.Message) (int, amazontest.Answer) {
		return http.StatusOK, amazontest.Answer{} // an ErrorResponse where a PublishBatchResponse should be
	})
	n, err := s.Send(t.Context(), sinktest.Messages(0, 2))
	if n != 0 || kind(err) != "passing" || !strings.Contains(err.Error(), topics["standard"]) {
		t.Errorf("%d, %v", n, err)
	}
}
