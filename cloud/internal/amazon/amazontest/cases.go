package amazontest

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// Agent is the agent that Open must pass to a sink.
const Agent = "tattler/v1.2.3"

// Open creates a sink for a server. The kind of queue or topic is standard or fifo.
type Open func(target, kind string) (sink.Sink, error)

// On creates a sink that is closed at the end of the test.
func (open Open) On(t *testing.T, s *Server, kind string) sink.Sink {
	t.Helper()
	out, err := open(s.Target(), kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close(t.Context()) }) // the suite checks its error
	return out
}

// Suite runs the conformance suite for each kind. The name is the name of the sink and of its package.
func Suite(t *testing.T, name string, open Open) {
	for _, kind := range []string{"standard", "fifo"} {
		t.Run(kind, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*" + name + ".Sink", Name: name,
				Start: func(t *testing.T) sinktest.Receiver { return New(t) },
				Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
					t.Helper()
					s, err := open(r.Target(), kind)
					if err != nil {
						t.Fatal(err)
					}
					return s
				},
			})
		})
	}
}

// Requests checks what the server receives: the number of messages in each request, and every part of a message.
func Requests(t *testing.T, open Open) {
	for kind, want := range map[string][]int{
		"standard": {10, 10, 4},              // Amazon's maximum
		"fifo":     {3, 3, 3, 3, 3, 3, 3, 3}, // three objects take turns, and each is in a request once
	} {
		server := New(t)
		s := open.On(t, server, kind)
		ms := sinktest.Messages(0, 24)
		if n, err := s.Send(t.Context(), ms); n != 24 || err != nil {
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
		if agent := server.Header().Get("User-Agent"); !strings.Contains(agent, Agent) {
			t.Errorf("%s: User-Agent %q", kind, agent)
		}
	}
}

// Refusal is an answer and its expected outcome.
type Refusal struct {
	Why string
	// Answer is the answer to the second of two messages, or to the request if Status, an HTTP status, is set.
	Answer Answer
	Status int
	// Kind is the kind of the error, as in yamltest.Kind. Limit is the limit of an error of kind long.
	Kind  string
	Limit int
	Text  string // a part of the error's text
}

// Refusals checks the outcome of refusals.
func Refusals(t *testing.T, open Open, cases []Refusal) {
	for _, tc := range cases {
		server := New(t)
		s := open.On(t, server, "standard")
		ms := sinktest.Messages(0, 2)
		want := 0
		if tc.Status != 0 {
			server.Whole(func([]Message) (int, Answer) { return tc.Status, tc.Answer })
		} else {
			want = 1
			server.Each(func(m Message) Answer {
				if m.Body == string(ms[1].Body) {
					return tc.Answer
				}
				return Answer{}
			})
		}
		n, err := s.Send(t.Context(), ms)
		yamltest.Check(t, tc.Why, err, tc.Text)
		if got := yamltest.Kind(err); n != want || got != tc.Kind {
			t.Errorf("%s: %d acknowledged, %s: %v", tc.Why, n, got, err)
		}
		var long *sink.TooLargeError
		if errors.As(err, &long) && long.Limit != tc.Limit {
			t.Errorf("%s: limit %d, want %d", tc.Why, long.Limit, tc.Limit)
		}
		if err != nil && (strings.Contains(err.Error(), SessionToken) || strings.Contains(err.Error(), SecretKey)) {
			t.Errorf("%s: a credential in %v", tc.Why, err)
		}
	}
}

// Options checks the options that both sinks share. Required is the line of the sink's required key; of creates a
// sink from options in YAML.
func Options(t *testing.T, required string, of func(text string) error) {
	for _, tc := range []struct{ why, keys, want string }{
		{"a limit below the least", "limit: 1Ki", "limit: from 8Ki to 1Mi"},
		{"a limit above the highest", "limit: 2Mi", "limit: from 8Ki to 1Mi"},
		{"the highest limit", "limit: 1Mi", ""},
		{"a negative timeout", "timeout: -1s", "timeout: must not be negative"},
		{"no region", "aws: {region: Ireland}", `aws: region: "Ireland"`},
		{"no role", "aws: {roleARN: admin}", "aws: roleARN"},
		{"an external id without a role", "aws: {externalID: hush}", "aws: externalID: has no effect"},
		{"no endpoint", "aws: {endpoint: 'localhost:4566'}", "aws: endpoint"},
		{"half of a pair", "tls: {cert: a}", "tls: cert and key belong together"},
		{"no file", "tls: {ca: /nonexistent/ca.pem}", "tls: ca: open /nonexistent/ca.pem"},
		{"a missing profile", "aws: {profile: nobody}", "nobody"},
	} {
		yamltest.Check(t, tc.why, of(required+"\n"+tc.keys), tc.want)
	}
}
