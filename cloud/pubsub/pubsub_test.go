package pubsub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tattler-dev/tattler/cloud/internal/yamltest"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func serve(t *testing.T, o Options) (*Sink, *fake) {
	t.Helper()
	f := newFake(t)
	o.Topic, o.Emulator = topic, f.Target()
	s := open(t, o)
	t.Cleanup(func() { _ = s.Close(t.Context()) }) // the suite checks its error
	return s, f
}

// TestRequestsFake checks that a request has one ordering key and as many messages as possible.
func TestRequestsFake(t *testing.T) {
	for _, tc := range []struct {
		why      string
		o        Options
		requests int
		key      string
	}{
		{"ordered", Options{}, 3, "uid-web-0"},
		{"unordered", Options{Unordered: true}, 1, ""},
	} {
		s, f := serve(t, tc.o)
		ms := sinktest.Messages(0, 24)
		if n, err := s.Send(t.Context(), ms); n != 24 || err != nil {
			t.Fatalf("%s: %d, %v", tc.why, n, err)
		}
		if got := len(f.seen()); got != tc.requests {
			t.Errorf("%s: %d requests", tc.why, got)
		}
		want := map[string]string{
			"content-type": "application/cloudevents+json", "ce-type": "dev.tattler.change.updated.v1",
			"op": "updated", "kind": "Deployment", "namespace": "shop", "id": ms[0].ID,
		}
		for _, m := range f.google.Messages() {
			if m.Attributes["id"] != ms[0].ID {
				continue
			}
			if d := cmp.Diff(want, m.Attributes); d != "" || m.OrderingKey != tc.key || string(m.Data) != string(ms[0].Body) {
				t.Errorf("%s: key %q, data %s, attributes (-want +got):\n%s", tc.why, m.OrderingKey, m.Data, d)
			}
		}
	}
}

// TestResumesFake checks that an object's next change is published after a failure. There is no key to resume,
// because the client does not order.
func TestResumesFake(t *testing.T) {
	s, f := serve(t, Options{})
	ms := sinktest.Messages(0, 6)
	f.Behave(sinktest.Refuses, ms[1].ID)
	n, err := s.Send(t.Context(), ms)
	if n != 1 || yamltest.Kind(err) != "permanent" {
		t.Fatalf("%d, %v", n, err)
	}
	for _, id := range f.Received(t) {
		if id == ms[4].ID {
			t.Error("a change overtook the one before it, of the same object")
		}
	}
	f.Behave(sinktest.Works, "")
	if n, err := s.Send(t.Context(), ms[1:]); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestRefusalsFake checks the outcome of Google's answers.
func TestRefusalsFake(t *testing.T) {
	for _, tc := range []struct {
		code codes.Code
		want string // the kind of error, and a part of its text
		text string
	}{
		{codes.NotFound, "passing", "create the topic"},
		{codes.PermissionDenied, "passing", "roles/pubsub.publisher"},
		{codes.Unauthenticated, "passing", "renew the credentials"},
		{codes.ResourceExhausted, "passing", "quota"},
		{codes.FailedPrecondition, "passing", "KMS"},
		{codes.Internal, "passing", "said so"},
		{codes.InvalidArgument, "permanent", "said so"},
		{codes.InvalidArgument, "passing", "User project specified in the request is invalid."},
		{codes.InvalidArgument, "passing", "Invalid resource name given (name=projects/p/topics/goog)."},
	} {
		s, f := serve(t, Options{})
		f.each = func(*pubsubpb.PublishRequest) error { return status.Error(tc.code, "said so: "+tc.text) }
		n, err := s.Send(t.Context(), sinktest.Messages(0, 4))
		if got := yamltest.Kind(err); n != 0 || got != tc.want {
			t.Errorf("%s: %d acknowledged, %s: %v", tc.code, n, got, err)
		}
		yamltest.Check(t, tc.code.String(), err, tc.text)
	}
}

// TestSizesFake checks that a message that is too long is detected before it is sent, and that one cut to the limit
// is accepted.
func TestSizesFake(t *testing.T) {
	s, f := serve(t, Options{})
	m := sinktest.Messages(0, 1)[0]
	fill := func(length int) []sink.Message {
		m.Body = []byte(`{"id":"` + m.ID + `","a":"` + strings.Repeat("x", length-len(`{"id":"","a":""}`)-len(m.ID)) + `"}`)
		return []sink.Message{m}
	}
	_, err := s.Send(t.Context(), fill(maxRequest))
	var long *sink.TooLargeError
	if !errors.As(err, &long) || long.Limit < maxRequest-1000 || len(f.seen()) != 0 {
		t.Fatalf("%v, limit %+v, %d requests", err, long, len(f.seen()))
	}
	if _, err := s.Send(t.Context(), fill(long.Limit)); err != nil {
		t.Error(err)
	}
}

// TestTimeoutFake checks that a request to a server that does not answer ends, and that its connection is not reused.
func TestTimeoutFake(t *testing.T) {
	s, f := serve(t, Options{Timeout: 50 * time.Millisecond})
	free, freed := s.conn.Free, false
	s.conn.Free = func(ctx context.Context, c *pubsub.TopicAdminClient) error { freed = true; return free(ctx, c) }
	f.Behave(sinktest.Hangs, "")
	n, err := s.Send(t.Context(), sinktest.Messages(0, 1))
	if n != 0 || yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), "DeadlineExceeded") || !freed {
		t.Errorf("%d, %v", n, err)
	}
	f.Behave(sinktest.Works, "")
}

// TestCredentialsFile checks that errors about the file show none of its contents.
func TestCredentialsFile(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ why, text, want string }{
		{"no JSON", "hush", "does not contain Google credentials"},
		{"another JSON", `{"key": "hush"}`, "does not contain Google credentials"},
		{"a kind that there is not", `{"type": "nonsense"}`, "find credentials"},
	} {
		path := filepath.Join(dir, "key.json")
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, Options{Topic: topic, CredentialsFile: path})
		_, err := s.Send(t.Context(), sinktest.Messages(0, 1))
		if yamltest.Kind(err) != "passing" || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), `"hush`) {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
	s := open(t, Options{Topic: topic, CredentialsFile: filepath.Join(dir, "nothing")})
	if _, err := s.Send(t.Context(), sinktest.Messages(0, 1)); err == nil || !strings.Contains(err.Error(), "credentialsFile: open") {
		t.Error(err)
	}
}
