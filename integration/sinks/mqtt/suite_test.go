package mqtt_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/mqtt"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { sinktest.Main(m, open) }

// open creates a sink from a file of options.
func open(target string) (sink.Sink, error) {
	text, err := os.ReadFile(target)
	if err != nil {
		return nil, err
	}
	var o mqtt.Options
	if err := yaml.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	return mqtt.New("tattler/test", o)
}

func TestSuite(t *testing.T) {
	certs := rig.NewCertificates(t)
	for name, tc := range map[string]struct {
		options string
		broker  func(t *testing.T) *broker
	}{
		"plain": {"url: mqtt://%s", func(*testing.T) *broker { return &broker{} }},
		"tls, user and password": {
			fmt.Sprintf("url: mqtts://%%s\nuser: tattler\npassword: w0rd\nclientId: c1\ntls: {ca: %q, cert: %q, key: %q}", certs.CA, certs.Client, certs.ClientKey),
			func(t *testing.T) *broker {
				t.Helper()
				return &broker{user: "tattler", password: "w0rd", tls: certs.Demanding(t)}
			},
		},
		"one at a time": {"url: mqtt://%s", func(*testing.T) *broker {
			return &broker{configure: func(c *server.Capabilities) { c.ReceiveMaximum = 1 }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*mqtt.Sink", Name: "mqtt",
				// MQTT has no answer with a wait.
				Cannot: []sinktest.Behaviour{sinktest.Busy},
				Start:  func(t *testing.T) sinktest.Receiver { return newReceiver(t, tc.broker(t), tc.options) },
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

// receiver is a server and a proxy in front of it.
type receiver struct {
	t       *testing.T
	broker  *broker
	proxy   *rig.Proxy
	options string // a file
}

func newReceiver(t *testing.T, b *broker, options string) *receiver {
	t.Helper()
	r := &receiver{t: t, broker: start(t, b), options: filepath.Join(t.TempDir(), "options.yaml")}
	r.proxy = rig.NewProxy(t, b.address)
	if err := os.WriteFile(r.options, fmt.Appendf(nil, options, r.proxy.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *receiver) Target() string { return r.options }

func (r *receiver) Behave(b sinktest.Behaviour, id string) {
	r.broker.on(nil)
	switch b {
	case sinktest.Down:
		r.broker.stop(r.t)
	case sinktest.Refuses:
		r.broker.on(func(_ *server.Client, pk packets.Packet) error {
			if property(pk, "id") == id {
				return packets.ErrPayloadFormatInvalid
			}
			return nil
		})
	}
	if b != sinktest.Down {
		r.broker.start(r.t)
	}
	r.proxy.Behave(b)
}

// property returns a user property of a message.
func property(pk packets.Packet, key string) string {
	for _, p := range pk.Properties.User {
		if p.Key == key {
			return p.Val
		}
	}
	return ""
}

func (r *receiver) Received(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, pk := range r.broker.messages() {
		var e event.Event
		if err := json.Unmarshal(pk.Payload, &e); err != nil {
			t.Fatalf("message %q: %v", pk.Payload, err)
		}
		if pk.TopicName != "tattler/shop/deployments/updated" || property(pk, "id") != e.ID || property(pk, "key") != e.PartitionKey {
			t.Errorf("topic %s, user properties %v", pk.TopicName, pk.Properties.User)
		}
		if p := pk.Properties; p.ContentType != "application/cloudevents+json" || !p.PayloadFormatFlag || p.PayloadFormat != 1 {
			t.Errorf("content type %q, payload format %d", p.ContentType, p.PayloadFormat)
		}
		ids = append(ids, e.ID)
	}
	return ids
}
