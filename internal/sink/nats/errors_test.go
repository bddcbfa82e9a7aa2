package nats

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/internal/sink"
)

func TestRefused(t *testing.T) {
	answer := func(code jetstream.ErrorCode, text string) error {
		return &jetstream.APIError{Code: 400, ErrorCode: code, Description: text}
	}
	named := Options{Servers: []string{"tls://u:w0rdw0rd@h"}, Stream: Stream{Name: "CHANGES"}}
	made := named
	made.Stream.Create = true
	const passing, permanent, long = "passing", "permanent", "too long"
	for _, tc := range []struct {
		why  string
		o    Options
		err  error
		kind string
		want string
	}{
		{"no stream", Options{Servers: []string{"nats://h"}}, jetstream.ErrNoStreamResponse, passing, "nats stream add TATTLER --subjects 'tattler.>', or set stream: {name: TATTLER, create: true}"},
		{"no stream of a name", named, jetstream.ErrNoStreamResponse, passing, "nats stream add CHANGES --subjects 'tattler.>'"},
		{"a stream that was there", made, jetstream.ErrNoStreamResponse, passing, "the stream CHANGES does not have the subject"},
		{"no answer", named, jetstream.ErrAsyncPublishTimeout, passing, "no acknowledgement within 10s"},
		{"too long for the stream", named, answer(10054, "message size exceeds maximum allowed"), long, "message size exceeds"},
		{"headers too long", named, answer(10097, "header size exceeds maximum allowed of 64k"), permanent, "header size"},
		{"a stream that is full", named, answer(10077, "maximum bytes exceeded"), passing, "maximum bytes exceeded"},
		{"another stream", named, answer(10060, "expected stream does not match"), passing, "another stream has the subject: see stream.name"},
		{"no JetStream", named, answer(10039, "jetstream not enabled for account"), passing, "the sink needs JetStream"},
		{"no right", named, nats.ErrPermissionViolation, passing, "the user needs the right to publish to the subject"},
		{"a revoked user", named, nats.ErrAuthorization, passing, "see user, password, token, credentials and nkey"},
		{"a text with a credential", named, errors.New("dial nats://u:w0rdw0rd@h"), passing, "dial nats://***@h"},
	} {
		s, err := New("tattler/test", tc.o)
		if err != nil {
			t.Fatal(err)
		}
		l := &link{ensured: true}
		err = s.shown(s.refused(l, "tattler.a.b", tc.err))
		var p *sink.PermanentError
		var tl *sink.TooLargeError
		kind := passing
		switch {
		case errors.As(err, &p):
			kind = permanent
		case errors.As(err, &tl):
			kind = long
		}
		if kind != tc.kind || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "publish to tattler.a.b: ") || strings.Contains(err.Error(), "w0rd") {
			t.Errorf("%s: %s: %v; want %s: %s", tc.why, kind, err, tc.kind, tc.want)
		}
		if again := errors.Is(tc.err, jetstream.ErrNoStreamResponse); l.ensured == again {
			t.Errorf("%s: the stream is looked at again: %v", tc.why, !l.ensured)
		}
	}
}

// TestStream checks the configuration of a new stream.
func TestStream(t *testing.T) {
	for _, tc := range []struct {
		why     string
		subject string
		s       Stream
		is      func(c jetstream.StreamConfig) bool
	}{
		{"subjects of the default", "", Stream{}, func(c jetstream.StreamConfig) bool { return strings.Join(c.Subjects, " ") == "tattler.>" }},
		{"a fixed subject", "a.b", Stream{}, func(c jetstream.StreamConfig) bool { return strings.Join(c.Subjects, " ") == "a.b" }},
		{"a word that is half a template", "a.b-{{.Data.Op}}.c", Stream{}, func(c jetstream.StreamConfig) bool { return strings.Join(c.Subjects, " ") == "a.>" }},
		{"subjects that are said", "", Stream{Subjects: []string{"x.>"}}, func(c jetstream.StreamConfig) bool { return strings.Join(c.Subjects, " ") == "x.>" }},
		{"for ever, on disk, once", "", Stream{}, func(c jetstream.StreamConfig) bool {
			return c.MaxAge == 0 && c.MaxBytes == -1 && c.Storage == jetstream.FileStorage && c.Replicas == 1 && c.Duplicates == defaultDuplicates
		}},
		{"a window that is no longer than the age", "", Stream{MaxAge: 60e9}, func(c jetstream.StreamConfig) bool { return c.Duplicates == 60e9 }},
		{"as it is said", "", Stream{Storage: Memory, Replicas: 3, MaxBytes: 5, Duplicates: 7e9}, func(c jetstream.StreamConfig) bool {
			return c.Storage == jetstream.MemoryStorage && c.Replicas == 3 && c.MaxBytes == 5 && c.Duplicates == 7e9
		}},
	} {
		o := Options{Subject: tc.subject, Stream: tc.s}.withDefaults()
		if c := o.stream(); !tc.is(c) {
			t.Errorf("%s: %+v", tc.why, c)
		}
	}
}

func TestSubject(t *testing.T) {
	name, err := subjects(defaultSubject)
	if err != nil {
		t.Fatal(err)
	}
	e := *sink.Samples()[0]
	for _, tc := range []struct{ why, namespace, resource, want string }{
		{"as it is", "shop", "deployments", "tattler.shop.deployments.snapshot"},
		{"of the whole cluster", "", "nodes", "tattler._.nodes.snapshot"},
		{"no further word, and no wildcard", "a.b c", "x*>y\x00", "tattler.a_b_c.x__y_.snapshot"},
	} {
		e.Data.Resource.Namespace, e.Data.Resource.Resource = tc.namespace, tc.resource
		if got, err := name.Of(&e); err != nil || got != tc.want {
			t.Errorf("%s: %q, %v; want %q", tc.why, got, err, tc.want)
		}
	}
	e.Data.Resource.Namespace = strings.Repeat("n", maxSubject)
	if _, err := name.Of(&e); err == nil {
		t.Error("a subject without end is taken")
	}
}

func TestHeaderSize(t *testing.T) {
	h := nats.Header{"content-type": {"application/cloudevents+json"}, "Nats-Msg-Id": {"a@b"}}
	if got, want := headerSize(h), int64(len("NATS/1.0\r\ncontent-type: application/cloudevents+json\r\nNats-Msg-Id: a@b\r\n\r\n")); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}
