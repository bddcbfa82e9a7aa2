package nats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/tattler-dev/tattler/integration/sinks/rig"
	"github.com/tattler-dev/tattler/internal/sink"
	"github.com/tattler-dev/tattler/internal/sink/nats"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
)

// TestUsers checks each kind of credentials, right and wrong, with a server that requires it. No error shows the
// credential.
func TestUsers(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, stranger := rig.Must(nkeys.CreateUser())(t), rig.Must(nkeys.CreateUser())(t)
	seed := func(k nkeys.KeyPair) []byte { return rig.Must(k.Seed())(t) }
	const canary = "Xk9qLw7zPvB3"
	for _, tc := range []struct {
		why, server string
		right       nats.Options
		wrong       nats.Options
	}{
		{
			"a user and a password", "authorization: {user: u, password: right}",
			nats.Options{User: "u", Password: "right"}, nats.Options{User: "u", Password: canary},
		},
		{
			"in the address", "authorization: {user: u, password: right}",
			nats.Options{Servers: []string{"nats://u:right@%s"}}, nats.Options{Servers: []string{"nats://u:" + canary + "@%s"}},
		},
		{
			"a comma in the address", "authorization: {user: u, password: 'ri,ght'}",
			nats.Options{Servers: []string{"nats://u:ri%%2Cght@%s"}}, nats.Options{Servers: []string{"nats://u:a," + canary + "@%s"}},
		},
		{"a token", "authorization: {token: right}", nats.Options{Token: "right"}, nats.Options{Token: canary}},
		{
			"a token in the address", "authorization: {token: right}",
			nats.Options{Servers: []string{"nats://right@%s"}}, nats.Options{Servers: []string{"nats://" + canary + "@%s"}},
		},
		{
			"an NKey", fmt.Sprintf("authorization: {users: [{nkey: %s}]}", rig.Must(key.PublicKey())(t)),
			nats.Options{NKey: write("right.nk", seed(key))}, nats.Options{NKey: write("wrong.nk", seed(stranger))},
		},
		{"credentials", operator(t, key), nats.Options{Credentials: write("right.creds", creds(t, key))}, nats.Options{}},
	} {
		t.Run(strings.ReplaceAll(tc.why, " ", "-"), func(t *testing.T) {
			b := newBroker(t, tc.server)
			for _, o := range []*nats.Options{&tc.right, &tc.wrong} {
				for i, s := range o.Servers {
					o.Servers[i] = fmt.Sprintf(s, b.addr)
				}
				o.Stream = made
			}
			_ = send(t, newSink(t, b, tc.right), sinktest.Messages(0, 3), 3, "")
			s := newSink(t, b, tc.wrong)
			err := send(t, s, sinktest.Messages(0, 3), 0, "see user, password, token, credentials and nkey")
			if err != nil && strings.Contains(err.Error()+s.String(), canary) {
				t.Errorf("a credential is shown: %v, %s", err, s)
			}
		})
	}
}

// authority signs the account and the user of TestUsers.
var authority = struct{ operator, account nkeys.KeyPair }{}

// operator returns the configuration of a server that trusts an operator with one account.
func operator(t *testing.T, _ nkeys.KeyPair) string {
	t.Helper()
	authority.operator, authority.account = rig.Must(nkeys.CreateOperator())(t), rig.Must(nkeys.CreateAccount())(t)
	system := rig.Must(nkeys.CreateAccount())(t)
	public := func(k nkeys.KeyPair) string { return rig.Must(k.PublicKey())(t) }
	o := jwt.NewOperatorClaims(public(authority.operator))
	o.SystemAccount = public(system)
	account := func(k nkeys.KeyPair, js bool) string {
		c := jwt.NewAccountClaims(public(k))
		if js {
			c.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
		}
		return fmt.Sprintf("%s: %s", public(k), rig.Must(c.Encode(authority.operator))(t))
	}
	return fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: {\n%s\n%s\n}",
		rig.Must(o.Encode(authority.operator))(t), account(authority.account, true), account(system, false))
}

// creds returns the credentials file of a user of that account.
func creds(t *testing.T, key nkeys.KeyPair) []byte {
	t.Helper()
	c := jwt.NewUserClaims(rig.Must(key.PublicKey())(t))
	return rig.Must(jwt.FormatUserConfig(rig.Must(c.Encode(authority.account))(t), rig.Must(key.Seed())(t)))(t)
}

// TestTLS checks trusted and client certificates, over TLS and WebSockets.
func TestTLS(t *testing.T) {
	p, elsewhere := rig.NewCertificates(t), rig.NewCertificates(t)
	tls := fmt.Sprintf("cert_file: %q, key_file: %q", p.Server, p.ServerKey)
	open := newBroker(t, "tls: {"+tls+"}\nwebsocket: {listen: '127.0.0.1:-1', tls: {"+tls+"}}")
	asking := newBroker(t, fmt.Sprintf("tls: {%s, ca_file: %q, verify: true}", tls, p.CA))
	plain := newBroker(t, "websocket: {listen: '127.0.0.1:-1', no_tls: true}")
	for _, tc := range []struct {
		why    string
		b      *broker
		server string
		o      sink.TLS
		want   string // empty: success
	}{
		{"a CA that is not known", open, "tls://" + open.addr, sink.TLS{}, "certificate signed by unknown authority"},
		{"a CA that is", open, "tls://" + open.addr, sink.TLS{CA: p.CA}, ""},
		{"the options alone", open, "nats://" + open.addr, sink.TLS{CA: p.CA}, ""},
		{"nothing said, but asked for", open, "nats://" + open.addr, sink.TLS{}, "certificate signed by unknown authority"},
		{"another CA", open, "tls://" + open.addr, sink.TLS{CA: elsewhere.CA}, "certificate signed by unknown authority"},
		{"another name", open, "tls://" + open.addr, sink.TLS{CA: p.CA, ServerName: "nats.example"}, "nats.example"},
		{"insecure takes any", open, "tls://" + open.addr, sink.TLS{Insecure: true}, ""},
		{"who we are is asked for", asking, "tls://" + asking.addr, sink.TLS{CA: p.CA}, "connect: "},
		{"and shown", asking, "tls://" + asking.addr, sink.TLS{CA: p.CA, Cert: p.Client, Key: p.ClientKey}, ""},
		{"no TLS there", plain, "tls://" + plain.addr, sink.TLS{CA: p.CA}, "the server has no TLS on this port"},
		{"WebSockets", plain, "ws://" + plain.ws, sink.TLS{}, ""},
		{"WebSockets with TLS", open, "wss://" + open.ws, sink.TLS{CA: p.CA}, ""},
		{"WebSockets of another CA", open, "wss://" + open.ws, sink.TLS{CA: elsewhere.CA}, "certificate signed by unknown authority"},
	} {
		t.Run(strings.ReplaceAll(tc.why, " ", "-"), func(t *testing.T) {
			s := newSink(t, tc.b, nats.Options{Servers: []string{tc.server}, TLS: tc.o, Stream: made})
			acked := 0
			if tc.want == "" {
				acked = 3
			}
			_ = send(t, s, sinktest.Messages(0, 3), acked, tc.want)
		})
	}
}

// TestServers checks that one running server is enough, and that the error names the one that was tried.
func TestServers(t *testing.T) {
	b, gone := newBroker(t, ""), newBroker(t, "")
	gone.kill(t)
	s := newSink(t, b, nats.Options{Servers: []string{"nats://" + gone.addr, "nats://" + b.addr}, Stream: made})
	_ = send(t, s, sinktest.Messages(0, 3), 3, "")
	_ = send(t, newSink(t, b, nats.Options{Servers: []string{"nats://" + gone.addr}}), sinktest.Messages(0, 3), 0, gone.addr+": connect: connection refused")
	_ = send(t, newSink(t, b, nats.Options{Servers: []string{"nats://tattler.invalid"}}), sinktest.Messages(0, 3), 0, "lookup tattler.invalid")
}
