package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/rabbitmq"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func newSink(t *testing.T, o rabbitmq.Options) *rabbitmq.Sink {
	t.Helper()
	s, err := rabbitmq.New("tattler/test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) url() string { return "amqp://guest:guest@" + s.plain }

// mustPass checks that an error is temporary and contains a text.
func mustPass(t *testing.T, err error, says string) {
	t.Helper()
	var permanent *sink.PermanentError
	var long *sink.TooLargeError
	if err == nil || errors.As(err, &permanent) || errors.As(err, &long) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want a passing error with %q", err, says)
	}
}

func send(t *testing.T, s *rabbitmq.Sink, ms []sink.Message) {
	t.Helper()
	if n, err := s.Send(t.Context(), ms); err != nil {
		t.Fatalf("acknowledged %d: %v", n, err)
	}
}

// take removes all messages of a queue and returns their ids.
func take(t *testing.T, ch *amqp.Channel, queue string) []string {
	t.Helper()
	var ids []string
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ids
		}
		ids = append(ids, id(t, d))
	}
}

func ids(ms []sink.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, m.ID)
	}
	return out
}

// message checks what a consumer sees besides the body.
func message(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	m := sinktest.Messages(0, 1)
	send(t, newSink(t, rabbitmq.Options{URL: s.url(), Queue: queue}), m)
	d, ok, err := ch.Get(queue, true)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if d.ContentType != "application/cloudevents+json; charset=UTF-8" || d.DeliveryMode != amqp.Persistent || d.MessageId != m[0].ID ||
		d.AppId != "tattler/test" || !d.Timestamp.Equal(m[0].Event.Time.Truncate(time.Second)) || d.Type != m[0].Event.Type || string(d.Body) != string(m[0].Body) {
		t.Errorf("%+v", d)
	}
}

// unroutable checks that a message without a bound queue waits for one, and that nothing of its object overtakes it.
func unroutable(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	exchange := queue + "-x"
	if err := ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ch.ExchangeDelete(exchange, false, false) }()
	const key = `{{with .Data.Resource}}{{.Name}}.{{.ResourceVersion}}{{end}}`
	o := rabbitmq.Options{URL: s.url(), Exchange: exchange, RoutingKey: key}
	ms := sinktest.Messages(0, 9)
	bind := func(keys ...string) {
		for _, k := range keys {
			if err := ch.QueueBind(queue, k, exchange, false, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	bind("web-0.#", "web-2.#", "web-1.1001", "web-1.1007") // not web-1.1004, the fifth
	out := newSink(t, o)
	n, err := out.Send(t.Context(), ms)
	mustPass(t, err, "bind one, or set allowUnroutable")
	if n != 4 {
		t.Errorf("acknowledged %d, want 4", n)
	}
	got := take(t, ch, queue)
	if slices.Contains(got, ms[7].ID) {
		t.Error("a change overtook one of its object that was returned")
	}
	bind("web-1.1004")
	send(t, out, ms[n:])
	got = append(got, take(t, ch, queue)...)
	for _, m := range ms {
		if !slices.Contains(got, m.ID) {
			t.Errorf("%s is missing", m.ID)
		}
	}
	o.RoutingKey, o.AllowUnroutable = "nobody", true
	send(t, newSink(t, o), ms)

	_, err = newSink(t, rabbitmq.Options{URL: s.url(), Queue: "not-there"}).Send(t.Context(), ms)
	mustPass(t, err, "declare it")
	_, err = newSink(t, rabbitmq.Options{URL: s.url(), Exchange: "not-there"}).Send(t.Context(), ms)
	mustPass(t, err, "no exchange 'not-there'")
}

// fullQueue checks that a queue that rejects messages gets them later.
func fullQueue(t *testing.T, s *server) {
	ch, queue := s.queue(t, amqp.Table{"x-max-length": 2, "x-overflow": "reject-publish"})
	out := newSink(t, rabbitmq.Options{URL: s.url(), Queue: queue})
	ms := sinktest.Messages(0, 3)
	n, err := out.Send(t.Context(), ms)
	mustPass(t, err, "a queue is full")
	got := take(t, ch, queue)
	send(t, out, ms[n:])
	if got = append(got, take(t, ch, queue)...); n == 0 || !slices.Equal(got, ids(ms)) {
		t.Errorf("acknowledged %d, received %v", n, got)
	}
}

// tooLong checks that the server's limit (100000 here) is learned from its first refusal, and that the rest arrives.
func tooLong(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	out := newSink(t, rabbitmq.Options{URL: s.url(), Queue: queue})
	ms := sinktest.Messages(0, 5)
	ms[3].Body = fmt.Appendf(nil, `{"id":%q,"x":%q}`, ms[3].ID, strings.Repeat("x", 100_000))
	n, err := out.Send(t.Context(), ms)
	var long *sink.TooLargeError
	if n != 3 || !errors.As(err, &long) || long.Limit != 100_000 {
		t.Fatalf("acknowledged %d, %v; want 3 and the limit", n, err)
	}
	ms[3].Body = ms[3].Body[:0]
	ms[3].Body = fmt.Appendf(ms[3].Body, `{"id":%q,"x":%q}`, ms[3].ID, strings.Repeat("x", 99_900-len(ms[3].ID)))
	send(t, out, ms[3:])
	got := take(t, ch, queue)
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(ids(ms))); !slices.Equal(slices.Compact(got), want) {
		t.Errorf("received %v, want %v", got, want)
	}
}

// rights checks that refused access is temporary, and that no error shows the password.
func rights(t *testing.T, s *server) {
	for _, tc := range []struct{ why, url, says string }{
		{"a wrong password", "amqp://guest:p4ssword@" + s.plain, "check user, password"},
		{"no vhost", s.url() + "/not-there", "not allowed in vhost not-there"},
	} {
		_, err := newSink(t, rabbitmq.Options{URL: tc.url, Queue: "q"}).Send(t.Context(), sinktest.Messages(0, 1))
		mustPass(t, err, tc.says)
		if err != nil && strings.Contains(err.Error(), "p4ssword") {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// encrypted checks mutual TLS.
func encrypted(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	o := rabbitmq.Options{URL: "amqps://guest:guest@" + s.tls, Queue: queue}
	ms := sinktest.Messages(0, 3)
	_, err := newSink(t, o).Send(t.Context(), ms)
	mustPass(t, err, "certificate")
	o.TLS.CA = s.certs.CA
	// The server's reason is lost if its reset of the connection arrives before it was read.
	for range 20 {
		if _, err = newSink(t, o).Send(t.Context(), ms); err == nil || strings.Contains(err.Error(), "certificate required") {
			break
		}
	}
	mustPass(t, err, "certificate required")
	o.TLS.Cert, o.TLS.Key = s.certs.Client, s.certs.ClientKey
	send(t, newSink(t, o), ms)
	if got := take(t, ch, queue); !slices.Equal(got, ids(ms)) {
		t.Errorf("received %v", got)
	}
}

// alarm checks that the server takes nothing while memory or disk is short, and that everything arrives later; only
// messages that it was reading may arrive twice.
func alarm(t *testing.T, s *server) {
	for _, tc := range []struct {
		says          string
		raise, settle []string
	}{
		{"low on memory", []string{"set_vm_memory_high_watermark", "absolute", "1"}, []string{"set_vm_memory_high_watermark", "absolute", "4GB"}},
		{"low on disk", []string{"set_disk_free_limit", "1000000GB"}, []string{"set_disk_free_limit", "1MB"}},
	} {
		ch, queue := s.queue(t, nil)
		out := newSink(t, rabbitmq.Options{URL: s.url(), Queue: queue, Timeout: 2 * time.Second})
		ms := sinktest.Messages(0, 6)
		acked, failed := 0, 0
		try := func(part []sink.Message) error { // a busy machine may take longer than the timeout
			n, err := out.Send(t.Context(), part)
			acked += n
			if err != nil {
				failed++
			}
			return err
		}
		sinktest.Until(t, func() error { return try(ms[:1-acked]) })
		s.ctl(t, tc.raise...)
		sinktest.Until(t, func() error { // the server stops reading some time after it has answered
			if len(ms)-acked < 6 {
				ms = append(ms, sinktest.Messages(len(ms), 1)...)
			}
			if err := try(ms[acked : acked+1]); err == nil || !strings.Contains(err.Error(), "alarm ("+tc.says) {
				return fmt.Errorf("no alarm: %v", err) //nolint:errorlint // it may be nil
			}
			return nil
		})
		for range 2 {
			mustPass(t, try(ms[acked:]), "alarm ("+tc.says)
		}
		s.ctl(t, tc.settle...)
		sinktest.Until(t, func() error { return try(ms[acked:]) })
		got := take(t, ch, queue)
		if len(got) > len(ms)+failed {
			t.Errorf("%s: %d messages for %d", tc.says, len(got), len(ms))
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(ids(ms))); !slices.Equal(slices.Compact(got), want) {
			t.Errorf("%s: received %v, want %v", tc.says, got, want)
		}
	}
}

// routingKey checks that a template decides which queue gets a change.
func routingKey(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	out := newSink(t, rabbitmq.Options{URL: s.url(), Exchange: "amq.topic", RoutingKey: "k8s.{{.Data.Resource.Kind | lower}}.{{.Data.Resource.Name}}", AllowUnroutable: true})
	if err := ch.QueueBind(queue, "k8s.deployment.web-1", "amq.topic", false, nil); err != nil {
		t.Fatal(err)
	}
	ms := sinktest.Messages(0, 6)
	send(t, out, ms)
	if got := take(t, ch, queue); !slices.Equal(got, []string{ms[1].ID, ms[4].ID}) {
		t.Errorf("received %v", got)
	}
}

// pace logs the effect of pipelining: 100 messages of 3 objects, and of 100.
func pace(t *testing.T, s *server) {
	ch, queue := s.queue(t, nil)
	out := newSink(t, rabbitmq.Options{URL: s.url(), Queue: queue})
	ms := sinktest.Messages(0, 300)
	send(t, out, ms[:1])
	for _, objects := range []int{1, 3, 100} {
		for i := range ms {
			ms[i].Key = fmt.Sprint(i % objects)
		}
		began := time.Now()
		send(t, out, ms)
		t.Logf("%d messages of %d objects in %s", len(ms), objects, time.Since(began))
	}
	if got := take(t, ch, queue); len(got) != 1+3*len(ms) {
		t.Errorf("received %d", len(got))
	}
}
