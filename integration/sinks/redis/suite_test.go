// Package redis_test checks the redis sink on a redis-server.
package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/redis"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	logging.Disable() // the tests' own clients log while they wait for a server
	sinktest.Main(m, open)
}

func open(target string) (sink.Sink, error) {
	return redis.New("tattler/test", redis.Options{URL: target})
}

func TestSuite(t *testing.T) {
	sinktest.Run(t, sinktest.Suite{
		Type: "*redis.Sink", Name: "redis",
		// A server cannot ask for a wait, and refuses no entry because of its content.
		Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Refuses},
		Start: func(t *testing.T) sinktest.Receiver {
			s := newServer(t)
			return &receiver{server: s, proxy: rig.NewProxy(t, s.addr)}
		},
		Open: func(t *testing.T, r sinktest.Receiver) sink.Sink {
			t.Helper()
			s, err := open(r.Target())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}

// receiver is a server that is killed and started again, and a proxy in front of it.
type receiver struct {
	server *server
	proxy  *rig.Proxy
}

func (r *receiver) Target() string { return "redis://" + r.proxy.Addr() }

func (r *receiver) Behave(b sinktest.Behaviour, _ string) {
	if b == sinktest.Down {
		r.server.kill()
	} else {
		r.server.start()
	}
	r.proxy.Behave(b)
}

func (r *receiver) Received(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, m := range r.server.entries("tattler") {
		var e event.Event
		if err := json.Unmarshal([]byte(m.Values["data"].(string)), &e); err != nil {
			t.Fatalf("entry %v: %v", m.Values, err)
		}
		if m.Values["id"] != e.ID || m.Values["op"] != string(e.Data.Op) || m.Values["subject"] != e.Subject || m.Values["type"] != e.Type {
			t.Errorf("fields %v", m.Values)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

// send opens a sink, sends messages, and closes it.
func send(t *testing.T, o redis.Options, ms []sink.Message) (int, error) {
	t.Helper()
	s, err := redis.New("tattler/test", o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	return s.Send(t.Context(), ms)
}

// TestRefusals checks that every refusal is temporary and adds nothing of the batch, and that the error says what
// to do.
func TestRefusals(t *testing.T) {
	const secret = "hunter2-and-more"
	for _, tc := range []struct{ why, before, user, want string }{
		{"no password", "config set requirepass " + secret, "", "wants a password"},
		{"another password", "config set requirepass " + secret, ":" + secret + "no@", "the user or the password is wrong"},
		{"a user who may only add: MULTI is refused, and what follows it is not sent", "acl setuser t on >" + secret + " ~* +xadd +ping", "t:" + secret + "@", "needs the rights to XADD, MULTI"},
		{"a user who may not add", "acl setuser t on >" + secret + " ~* +@all -xadd", "t:" + secret + "@", "needs the rights to XADD, MULTI"},
		{"a user of another key", "acl setuser t on >" + secret + " ~other +@all", "t:" + secret + "@", "needs the rights to XADD, MULTI"},
		{"no stream", "set tattler x", "", "is not a stream"},
		{"no memory", "config set maxmemory 1", "", "maxmemory"},
		{"a replica", "replicaof 127.0.0.1 1", "", "this is a replica"},
		{"too few replicas", "config set min-replicas-to-write 1", "", "min-replicas-to-write"},
		{"no such database", "", "", "not have that many databases"},
	} {
		s := newServer(t)
		url := "redis://" + tc.user + s.addr()
		if tc.before == "" {
			url += "/99"
		}
		conn := s.admin.Conn() // stays logged in
		if tc.before != "" {
			var args []any
			for _, word := range strings.Fields(tc.before) {
				args = append(args, word)
			}
			if err := conn.Do(t.Context(), args...).Err(); err != nil {
				t.Fatalf("%s: %v", tc.why, err)
			}
		}
		n, err := send(t, redis.Options{URL: url}, sinktest.Messages(0, 3))
		var permanent *sink.PermanentError
		if n != 0 || err == nil || errors.As(err, &permanent) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %d, %v; want a passing error with %q", tc.why, n, err, tc.want)
		}
		if got, err := conn.XLen(t.Context(), "tattler").Result(); got != 0 {
			t.Errorf("%s: %d entries, %v", tc.why, got, err)
		}
		conn.Close()
		s.kill()
	}
}

// TestTransaction checks that nothing of a batch is added if its middle is refused, so nothing overtakes.
func TestTransaction(t *testing.T) {
	s := newServer(t)
	s.do("acl setuser t on >w0rd ~a:web-0 ~a:web-2 +@all")
	o := redis.Options{URL: "redis://t:w0rd@" + s.addr(), Stream: "a:{{.Data.Resource.Name}}"}
	if n, err := send(t, o, sinktest.Messages(0, 9)); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, stream := range []string{"a:web-0", "a:web-1", "a:web-2"} {
		if got := s.entries(stream); len(got) != 0 {
			t.Errorf("%s has %d entries", stream, len(got))
		}
	}
	s.do("acl setuser t ~a:web-1")
	if n, err := send(t, o, sinktest.Messages(0, 9)); n != 9 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for i, stream := range []string{"a:web-0", "a:web-1", "a:web-2"} {
		var ids, want []string
		for _, e := range s.entries(stream) {
			ids = append(ids, e.Values["id"].(string))
		}
		for n := i; n < 9; n += 3 {
			want = append(want, sinktest.Messages(n, 1)[0].ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s has %v, want %v", stream, ids, want)
		}
	}
}

// TestWrongType checks a batch with an entry that fails during execution: the entries before it are acknowledged, so
// that they are not repeated with each attempt.
func TestWrongType(t *testing.T) {
	s := newServer(t)
	s.do("set a:web-1 x")
	o := redis.Options{URL: "redis://" + s.addr(), Stream: "a:{{.Data.Resource.Name}}"}
	if n, err := send(t, o, sinktest.Messages(0, 9)); n != 1 || err == nil || !strings.Contains(err.Error(), "is not a stream") {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := send(t, o, sinktest.Messages(1, 1)); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	if n := len(s.entries("a:web-0")); n != 3 {
		t.Errorf("%d entries", n)
	}
}

// TestRepeats checks that a repeat is another entry with the same id field.
func TestRepeats(t *testing.T) {
	s := newServer(t)
	for range 2 {
		if _, err := send(t, redis.Options{URL: "redis://" + s.addr()}, sinktest.Messages(0, 1)); err != nil {
			t.Fatal(err)
		}
	}
	got := s.entries("tattler")
	if len(got) != 2 || got[0].ID == got[1].ID || got[0].Values["id"] != got[1].Values["id"] {
		t.Errorf("%v", got)
	}
}

// TestMaxLen checks that a stream is trimmed approximately.
func TestMaxLen(t *testing.T) {
	s := newServer(t)
	for n := range 10 {
		if _, err := send(t, redis.Options{URL: "redis://" + s.addr(), MaxLen: 100}, sinktest.Messages(100*n, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.entries("tattler")); n < 100 || n > 300 {
		t.Errorf("%d entries", n)
	}
}

// TestTooLarge checks that the sink asks for the server's limit, so that it sends nothing on which the server would
// hang up.
func TestTooLarge(t *testing.T) {
	s := newServer(t, "--proto-max-bulk-len", "1mb")
	ms := sinktest.Messages(0, 3)
	ms[1].Body = fmt.Appendf(nil, `{"id": %q, "data": %q}`, ms[1].ID, strings.Repeat("x", 1<<20))
	n, err := send(t, redis.Options{URL: "redis://" + s.addr()}, ms)
	var long *sink.TooLargeError
	if n != 1 || !errors.As(err, &long) || long.Limit != 1<<20 {
		t.Errorf("%d, %v", n, err)
	}
	ms[1].Body = ms[1].Body[:long.Limit]
	if n, err := send(t, redis.Options{URL: "redis://" + s.addr()}, ms); n != 3 || err != nil {
		t.Errorf("as long as may be: %d, %v", n, err)
	}
	s.do("acl setuser default -config")
	if n, err := send(t, redis.Options{URL: "redis://" + s.addr()}, ms[:1]); n != 1 || err != nil {
		t.Errorf("where nobody may ask: %d, %v", n, err)
	}
}

// TestFailover: a server that has become a replica answers, and keeps its connections. The sink resolves the name
// again.
func TestFailover(t *testing.T) {
	old, next := newServer(t), newServer(t)
	var master atomic.Pointer[server] // the proxy reads it from its own goroutines
	master.Store(old)
	proxy := rig.NewProxy(t, func() string { return master.Load().addr() })
	s := rig.Must(redis.New("tattler/test", redis.Options{URL: "redis://" + proxy.Addr()}))(t)
	defer s.Close(t.Context())
	ms := sinktest.Messages(0, 4)
	if n, err := s.Send(t.Context(), ms[:2]); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	old.do("replicaof " + "127.0.0.1 " + next.port)
	master.Store(next)
	if n, err := s.Send(t.Context(), ms[2:]); n != 0 || err == nil || !strings.Contains(err.Error(), "this is a replica") {
		t.Errorf("the old master: %d, %v", n, err)
	}
	if n, err := s.Send(t.Context(), ms[2:]); n != 2 || err != nil {
		t.Errorf("the new one: %d, %v", n, err)
	}
	if got := next.entries("tattler"); len(got) != 2 {
		t.Errorf("it has %d entries", len(got))
	}
}

// TestReplicas checks that a batch counts only when a replica has it.
func TestReplicas(t *testing.T) {
	master := newServer(t)
	o := redis.Options{URL: "redis://" + master.addr(), Replicas: 1, Timeout: 10 * time.Second} // half of it is the wait for replicas
	if n, err := send(t, o, sinktest.Messages(0, 2)); n != 0 || err == nil || !strings.Contains(err.Error(), "0 of 1 replicas have the entries") {
		t.Errorf("without a replica: %d, %v", n, err)
	}
	replica := newServer(t, "--replicaof", "127.0.0.1 "+master.port, "--repl-diskless-sync-delay", "0")
	sinktest.Until(t, func() error {
		if info, err := replica.admin.Info(context.Background(), "replication").Result(); err != nil || !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("%s %w", info, err)
		}
		return nil
	})
	o.Timeout = 0
	if n, err := send(t, o, sinktest.Messages(0, 2)); n != 2 || err != nil {
		t.Errorf("with one: %d, %v", n, err)
	}
	if got := replica.entries("tattler"); len(got) != 4 { // the first two are repeated
		t.Errorf("the replica has %d entries", len(got))
	}
}
