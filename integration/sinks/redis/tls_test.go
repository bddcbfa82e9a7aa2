package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/redis"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestTLSAndCredentials checks trusted and client certificates, and that errors show no credential.
func TestTLSAndCredentials(t *testing.T) {
	const secret = "hunter2-and-more"
	certs := rig.NewCertificates(t)
	port := freePort(t)
	s := newServer(t, "--tls-port", port, "--tls-cert-file", certs.Server, "--tls-key-file", certs.ServerKey, "--tls-ca-cert-file", certs.CA)
	s.do("acl setuser t on >" + secret + " ~tattler +xadd +multi +exec")
	for _, tc := range []struct {
		why, password, want string
		tls                 sink.TLS
	}{
		{"all is right, with no right too many", secret, "", sink.TLS{CA: certs.CA, Cert: certs.Client, Key: certs.ClientKey}},
		{"a CA that is not known", secret, "certificate signed by unknown authority", sink.TLS{Cert: certs.Client, Key: certs.ClientKey}},
		{"nobody", secret, "add to stream of rediss://", sink.TLS{CA: certs.CA}},
		{"another password", secret + "no", "the user or the password is wrong", sink.TLS{CA: certs.CA, Cert: certs.Client, Key: certs.ClientKey}},
	} {
		n, err := send(t, redis.Options{URL: "rediss://t:" + tc.password + "@127.0.0.1:" + port, TLS: tc.tls}, sinktest.Messages(0, 2))
		var permanent *sink.PermanentError
		if (err == nil) != (tc.want == "") || (n == 2) != (err == nil) ||
			err != nil && (errors.As(err, &permanent) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %d, %v, want %q", tc.why, n, err, tc.want)
		}
	}
	if n := len(s.entries("tattler")); n != 2 {
		t.Errorf("%d entries", n)
	}
}
