package nats_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/nats"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// newSink creates a sink for a server; it is closed at the end of the test.
func newSink(t *testing.T, b *broker, o nats.Options) *nats.Sink {
	t.Helper()
	if len(o.Servers) == 0 {
		o.Servers = []string{"nats://" + b.addr}
	}
	s := rig.Must(nats.New("tattler/test", o))(t)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// send sends, and checks the number of acknowledged messages and the text of the error, which must be temporary.
func send(t *testing.T, s *nats.Sink, ms []sink.Message, acked int, want string) error {
	t.Helper()
	n, err := s.Send(t.Context(), ms)
	var permanent *sink.PermanentError
	switch {
	case n != acked || (err == nil) != (want == ""):
		t.Errorf("acknowledged %d, %v; want %d, %q", n, err, acked, want)
	case err != nil && (errors.As(err, &permanent) || !strings.Contains(err.Error(), want)):
		t.Errorf("%v, want a passing error with %q", err, want)
	}
	return err
}

// contents returns the ids in a stream, from Nats-Msg-Id.
func contents(t *testing.T, js jetstream.JetStream, stream string) []string {
	t.Helper()
	var out []string
	for _, m := range stored(t, js, stream) {
		out = append(out, m.Header.Get(jetstream.MsgIDHeader))
	}
	return out
}

func ids(ms []sink.Message, subject string) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.ID+"@"+subject)
	}
	return out
}

var made = nats.Stream{Name: "CHANGES", Create: true}

// TestRepeats checks that a repeat is acknowledged and not stored, and that two sinks do not drop each other's
// messages.
func TestRepeats(t *testing.T) {
	b := newBroker(t, "")
	js := b.admin(t)
	ms := sinktest.Messages(0, 100)
	all := nats.Stream{Name: "CHANGES", Create: true, Subjects: []string{"one", "two"}, Storage: nats.Memory, MaxAge: time.Hour, MaxBytes: 1 << 20}
	one, two := newSink(t, b, nats.Options{Subject: "one", Stream: all}), newSink(t, b, nats.Options{Subject: "two", Stream: all})
	for range 3 {
		_ = send(t, one, ms, 100, "")
	}
	_ = send(t, two, ms, 100, "")
	if got, want := contents(t, js, "CHANGES"), slices.Concat(ids(ms, "one"), ids(ms, "two")); !slices.Equal(got, want) {
		t.Errorf("%d messages: %v, want %v", len(got), got, want)
	}
	c := rig.Must(js.Stream(t.Context(), "CHANGES"))(t).CachedInfo().Config
	if c.Storage != jetstream.MemoryStorage || c.MaxAge != time.Hour || c.MaxBytes != 1<<20 || c.Duplicates != 10*time.Minute {
		t.Errorf("the stream is %+v", c)
	}
}

// TestStreamThatIsNotThere checks that the error says what to do, and that this helps without a restart.
func TestStreamThatIsNotThere(t *testing.T) {
	b := newBroker(t, "")
	js := b.admin(t)
	ms := sinktest.Messages(0, 10)
	s := newSink(t, b, nats.Options{Subject: "changes"})
	_ = send(t, s, ms, 0, "no stream has the subject (or JetStream is off on the server): create one, for example with nats stream add TATTLER --subjects 'changes'")
	rig.Must(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "CHANGES", Subjects: []string{"changes"}}))(t)
	_ = send(t, s, ms, 10, "")

	_ = send(t, newSink(t, b, nats.Options{Subject: "changes", Stream: nats.Stream{Name: "OTHER"}}), ms, 0, "another stream has the subject: see stream.name")
	_ = send(t, newSink(t, b, nats.Options{Subject: "elsewhere", Stream: made}), ms, 0, "the stream CHANGES does not have the subject")
	_ = send(t, newSink(t, b, nats.Options{Subject: "changes", Stream: nats.Stream{Name: "OTHER", Create: true}}), ms, 0, "another stream has some of its subjects")

	again := newSink(t, b, nats.Options{Subject: "again", Stream: nats.Stream{Name: "AGAIN", Create: true}})
	_ = send(t, again, ms, 10, "")
	if err := js.DeleteStream(t.Context(), "AGAIN"); err != nil {
		t.Fatal(err)
	}
	_ = send(t, again, ms, 0, "the stream AGAIN does not have the subject")
	_ = send(t, again, ms, 10, "")
}

// TestFullStream checks that a stream that is full for a while costs no message, and keeps the order of each object.
// Messages of other objects that were in flight may be stored before those that are sent again.
func TestFullStream(t *testing.T) {
	b := newBroker(t, "")
	js := b.admin(t)
	config := jetstream.StreamConfig{Name: "CHANGES", Subjects: []string{"changes"}, MaxMsgs: 4, Discard: jetstream.DiscardNew}
	rig.Must(js.CreateStream(t.Context(), config))(t)
	ms := sinktest.Messages(0, 9)
	s := newSink(t, b, nats.Options{Subject: "changes"})
	_ = send(t, s, ms, 4, "maximum messages exceeded")
	config.MaxMsgs = 100
	rig.Must(js.UpdateStream(t.Context(), config))(t)
	_ = send(t, s, ms[4:], 5, "")
	got, want := contents(t, js, "CHANGES"), ids(ms, "changes")
	if len(got) != len(want) {
		t.Errorf("%v, want %v in some order", got, want)
	}
	for i := range want[3:] { // three objects take turns
		if before, after := slices.Index(got, want[i]), slices.Index(got, want[i+3]); before < 0 || after < before {
			t.Errorf("message %d is at %d, and %d of the same object at %d", i, before, i+3, after)
		}
	}
}

// TestNothingOvertakes checks that no later message of an object is stored if one failed. The first is too long for
// the stream; the others would fit.
func TestNothingOvertakes(t *testing.T) {
	b := newBroker(t, "")
	js := b.admin(t)
	rig.Must(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "CHANGES", Subjects: []string{"changes"}, MaxMsgSize: 4000}))(t)
	ms := sinktest.Messages(0, 9) // three objects take turns
	ms[3].Body = append([]byte(strings.Repeat(" ", 5000)), ms[3].Body...)
	s := newSink(t, b, nats.Options{Subject: "changes"})
	n, err := s.Send(t.Context(), ms)
	var long *sink.TooLargeError
	if n != 3 || !errors.As(err, &long) || long.Limit != 0 || !strings.Contains(err.Error(), "message size exceeds maximum allowed") {
		t.Errorf("acknowledged %d, %v; want 3, and one that is too long", n, err)
	}
	got := contents(t, js, "CHANGES")
	if slices.Contains(got, ids(ms[6:7], "changes")[0]) {
		t.Errorf("message 6 overtook 3 of the same object, which was refused: %v", got)
	}
}

// TestTooLarge checks the server's limit, headers included, to the byte. Nothing beyond it is sent, because the
// server would end the connection.
func TestTooLarge(t *testing.T) {
	const limit = 8 << 10
	b := newBroker(t, fmt.Sprintf("max_payload: %d", limit))
	js := b.admin(t)
	s := newSink(t, b, nats.Options{Subject: "changes", Stream: made})
	ms := sinktest.Messages(0, 3)
	ms[1].Body = append(ms[1].Body, strings.Repeat(" ", limit)...)
	n, err := s.Send(t.Context(), ms)
	var long *sink.TooLargeError
	if n != 1 || !errors.As(err, &long) || long.Limit <= 0 || long.Limit >= limit {
		t.Fatalf("acknowledged %d, %v; want 1, and a limit below %d", n, err, limit)
	}
	ms[1].Body = ms[1].Body[:long.Limit]
	_ = send(t, s, ms[1:], 2, "")
	if got, want := contents(t, js, "CHANGES"), ids(ms, "changes"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	ms[2].Body = append(ms[2].Body, strings.Repeat(" ", long.Limit+1-len(ms[2].Body))...)
	if _, err := s.Send(t.Context(), ms[2:]); !errors.As(err, &long) {
		t.Errorf("one byte more: %v", err)
	}
}

// TestRights checks that missing rights are reported at once, as a temporary error.
func TestRights(t *testing.T) {
	b := newBroker(t, `authorization: {users: [
		{user: admin, password: all}
		{user: tattler, password: w0rd, permissions: {publish: ["changes.>"], subscribe: ["_INBOX_tattler.>"]}}
	]}`)
	js := b.admin(t, client.UserInfo("admin", "all"))
	rig.Must(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "CHANGES", Subjects: []string{"changes.>", "others.>"}}))(t)
	ms := sinktest.Messages(0, 10)
	o := nats.Options{User: "tattler", Password: "w0rd", InboxPrefix: "_INBOX_tattler", Timeout: time.Minute}
	with := func(change func(*nats.Options)) *nats.Sink {
		o := o
		change(&o)
		return newSink(t, b, o)
	}
	_ = send(t, with(func(o *nats.Options) { o.Subject = "changes.all" }), ms, 10, "")
	_ = send(t, with(func(o *nats.Options) { o.Subject = "others.all" }), ms, 0, "the user needs the right to publish to the subject")
	_ = send(t, with(func(o *nats.Options) { o.Subject, o.InboxPrefix = "changes.all", "" }), ms, 0, "to subscribe to _INBOX.>")
	_ = send(t, with(func(o *nats.Options) { o.Subject, o.Stream = "changes.all", made }), ms, 0, "$JS.API.STREAM.INFO.*")
}

// TestHangingServer checks that a server that does not answer is given up after the timeout, and tried again.
func TestHangingServer(t *testing.T) {
	b := newBroker(t, "")
	p := rig.NewProxy(t, func() string { return b.addr })
	ms := sinktest.Messages(0, 3)
	s := newSink(t, b, nats.Options{Servers: []string{"nats://" + p.Addr()}, Subject: "changes", Stream: made, Timeout: 100 * time.Millisecond})
	p.Behave(sinktest.Hangs)
	_ = send(t, s, ms, 0, "connect: ")
	p.Behave(sinktest.Works)
	patient := newSink(t, b, nats.Options{Servers: []string{"nats://" + p.Addr()}, Subject: "changes", Stream: made, Timeout: time.Second})
	works := func() {
		t.Helper()
		sinktest.Until(t, func() error { // a busy machine may take longer than the timeout
			_, err := patient.Send(t.Context(), ms)
			return err
		})
	}
	works()
	p.Behave(sinktest.Hangs)
	_ = send(t, patient, ms, 0, "no acknowledgement within 1s")
	p.Behave(sinktest.Down)
	p.Behave(sinktest.Works)
	works()
}
