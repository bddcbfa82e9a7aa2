package nats_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/nats"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envServer); path != "" {
		if err := serve(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	sinktest.Main(m, open)
}

// open creates a sink from a file of options.
func open(target string) (sink.Sink, error) {
	text, err := os.ReadFile(target)
	if err != nil {
		return nil, err
	}
	var o nats.Options
	if err := yaml.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	return nats.New("tattler/test", o)
}

func TestSuite(t *testing.T) {
	certs := rig.NewCertificates(t)
	for name, tc := range map[string]struct {
		server, options string
		admin           []client.Option
	}{
		"plain": {"", "servers: ['nats://%s']", nil},
		"tls, user and password": {
			fmt.Sprintf("tls: {cert_file: %q, key_file: %q, ca_file: %q, verify: true}\nauthorization: {user: tattler, password: 'w0rd'}", certs.Server, certs.ServerKey, certs.CA),
			fmt.Sprintf("servers: ['tls://%%s']\nuser: tattler\npassword: w0rd\ntls: {ca: %q, cert: %q, key: %q}", certs.CA, certs.Client, certs.ClientKey),
			[]client.Option{client.UserInfo("tattler", "w0rd"), client.RootCAs(certs.CA), client.ClientCert(certs.Client, certs.ClientKey)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*nats.Sink", Name: "nats",
				// The stream remembers the ids of the last minutes: nothing is stored twice.
				Once: true,
				// A server cannot ask for a wait, and cannot refuse a single message for good: its errors about a
				// stream concern all messages, except for their size (TestTooLarge).
				Cannot: []sinktest.Behaviour{sinktest.Busy, sinktest.Refuses},
				Start: func(t *testing.T) sinktest.Receiver {
					return newReceiver(t, tc.server, tc.options, tc.admin)
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
		})
	}
}

// receiver is a server with a stream that is killed and started again, and a proxy in front of it.
type receiver struct {
	t       *testing.T
	broker  *broker
	proxy   *rig.Proxy
	options string // a file
	admin   []client.Option
}

func newReceiver(t *testing.T, server, options string, admin []client.Option) *receiver {
	t.Helper()
	r := &receiver{t: t, broker: newBroker(t, server), options: filepath.Join(t.TempDir(), "options.yaml"), admin: admin}
	addr := make(chan string, 1)
	addr <- r.broker.addr
	r.proxy = rig.NewProxy(t, func() string { a := <-addr; addr <- a; return a })
	r.broker.started = func(a string) { <-addr; addr <- a }
	text := fmt.Sprintf(options+"\nstream: {name: TATTLER, create: true}\n", r.proxy.Addr())
	if err := os.WriteFile(r.options, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *receiver) Target() string { return r.options }

func (r *receiver) Behave(b sinktest.Behaviour, _ string) {
	if b == sinktest.Down {
		r.broker.kill(r.t)
	} else {
		r.broker.start(r.t)
	}
	r.proxy.Behave(b)
}

func (r *receiver) Received(t *testing.T) []string {
	t.Helper()
	js := r.broker.admin(t, r.admin...)
	defer js.Conn().Close()
	var ids []string
	for _, m := range stored(t, js, "TATTLER") {
		var e event.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatalf("message %q: %v", m.Data, err)
		}
		if id := m.Header.Get(jetstream.MsgIDHeader); m.Subject != "tattler.shop.deployments.updated" || id != e.ID+"@"+m.Subject {
			t.Errorf("subject %s, id %s", m.Subject, id)
		}
		if got := m.Header.Get("content-type"); got != "application/cloudevents+json" {
			t.Errorf("content-type %q", got)
		}
		ids = append(ids, e.ID)
	}
	return ids
}
