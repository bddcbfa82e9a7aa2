// Package otlp_test checks the otlp sink on the receiver of the OpenTelemetry Collector.
package otlp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/config/configtls"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/otlp"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

func TestMain(m *testing.M) { sinktest.Main(m, open) }

func TestSuite(t *testing.T) {
	for name, o := range map[string]otlp.Options{
		"grpc": {Protocol: otlp.GRPC},
		"http": {Protocol: otlp.HTTP, Body: otlp.BodyObject, Compression: otlp.None},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Suite{
				Type: "*otlp.Sink", Name: "otlp",
				Start: func(t *testing.T) sinktest.Receiver { return newCollector(t, o, nil, "") },
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

// send opens a sink, sends messages, and closes it.
func send(t *testing.T, o otlp.Options, ms []sink.Message) (int, error) {
	t.Helper()
	s, err := otlp.New("tattler/test", o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	return s.Send(t.Context(), ms)
}

// TestBody checks that the Collector reads the event unchanged, and the object as its own k8sobjects receiver
// writes it.
func TestBody(t *testing.T) {
	for _, p := range []otlp.Protocol{otlp.GRPC, otlp.HTTP} {
		c := newCollector(t, otlp.Options{Protocol: p}, nil, "")
		c.start()
		m := sinktest.Messages(0, 1)
		if _, err := send(t, c.o, m); err != nil {
			t.Fatal(err)
		}
		c.o.Body = otlp.BodyObject
		if _, err := send(t, c.o, m); err != nil {
			t.Fatal(err)
		}
		var event map[string]any
		if err := json.Unmarshal(m[0].Body, &event); err != nil {
			t.Fatal(err)
		}
		for i, want := range []map[string]any{event, {"type": "MODIFIED", "object": m[0].Event.Data.After}} {
			l := records(c.logs[i])[0]
			if got := l.Body().Map().AsRaw(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: body %v, want %v", p, got, want)
			}
			if !l.Timestamp().AsTime().Equal(m[0].Event.Time) || !l.ObservedTimestamp().AsTime().Equal(m[0].Event.Data.Observed.At) {
				t.Errorf("%s: at %s, observed %s", p, l.Timestamp(), l.ObservedTimestamp())
			}
			for key, want := range map[string]string{"k8s.resource.name": "deployments", "event.domain": "k8s", "event.name": "web-0", "k8s.deployment.uid": "uid-web-0"} {
				if got, _ := l.Attributes().Get(key); got.AsString() != want {
					t.Errorf("%s: %s is %q, want %q", p, key, got.AsString(), want)
				}
			}
			resource := c.logs[i].ResourceLogs().At(0).Resource().Attributes().AsRaw()
			if want := map[string]any{"service.name": "tattler", "k8s.cluster.name": "prod", "k8s.namespace.name": "shop"}; !reflect.DeepEqual(resource, want) {
				t.Errorf("%s: resource %v, want %v", p, resource, want)
			}
		}
		c.stop()
	}
}

// TestTooLarge checks that the Collector's limits are reported as such, so that the change is cut, even over HTTP,
// where the answer is 400.
func TestTooLarge(t *testing.T) {
	for _, p := range []otlp.Protocol{otlp.GRPC, otlp.HTTP} {
		c := newCollector(t, otlp.Options{Protocol: p, MaxBatchBytes: 64 << 20}, nil, "")
		c.maxBytes = 4 << 20
		c.start()
		ms := sinktest.Messages(0, 3)
		ms[1].Body = fmt.Appendf(nil, `{"id": %q, "data": %q}`, ms[1].ID, strings.Repeat("x", 5<<20))
		n, err := send(t, c.o, ms)
		var long *sink.TooLargeError
		if n != 1 || !errors.As(err, &long) || p == otlp.GRPC && (long.Limit < 3<<20 || long.Limit > 4<<20) {
			t.Errorf("%s: %d, %v (%+v)", p, n, err, long)
		}
		c.o.MaxBatchBytes = 0 // the default is within the receivers' limits
		if n, err := send(t, c.o, ms); n != 1 || !errors.As(err, &long) || !strings.Contains(err.Error(), "exceeds maxBatchBytes") {
			t.Errorf("%s: %d, %v", p, n, err)
		}
		c.stop()
	}
}

// TestTLSAndCredentials checks trusted and client certificates, and that errors show no credential.
func TestTLSAndCredentials(t *testing.T) {
	certs := rig.NewCertificates(t)
	server := &configtls.ServerConfig{Config: configtls.Config{CertFile: certs.Server, KeyFile: certs.ServerKey}, ClientCAFile: certs.CA}
	for _, p := range []otlp.Protocol{otlp.GRPC, otlp.HTTP} {
		c := newCollector(t, otlp.Options{Protocol: p}, server, "Bearer hunter2-and-more")
		c.start()
		for _, tc := range []struct {
			why, token, want string
			tls              sink.TLS
		}{
			{"all is right", "hunter2-and-more", "", sink.TLS{CA: certs.CA, Cert: certs.Client, Key: certs.ClientKey}},
			{"a CA that is not known", "hunter2-and-more", "certificate signed by unknown authority", sink.TLS{Cert: certs.Client, Key: certs.ClientKey}},
			{"nobody", "hunter2-and-more", "export to https://", sink.TLS{CA: certs.CA}},
			{"another token", "hunter2-or-less", "see headers", sink.TLS{CA: certs.CA, Cert: certs.Client, Key: certs.ClientKey}},
		} {
			o := c.o
			o.TLS, o.Headers = tc.tls, map[string]string{"Authorization": "Bearer " + tc.token}
			_, err := send(t, o, sinktest.Messages(0, 2))
			var permanent *sink.PermanentError
			if (err == nil) != (tc.want == "") || err != nil && (errors.As(err, &permanent) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), tc.token)) {
				t.Errorf("%s, %s: %v, want %q", p, tc.why, err, tc.want)
			}
		}
		c.stop()
	}
}
