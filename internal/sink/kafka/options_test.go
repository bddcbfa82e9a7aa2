package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink"
)

// loader knows only this kind of sink.
func loader() *config.Loader {
	return &config.Loader{Sinks: []config.SinkType{{
		Name: "kafka", New: func() config.Options { return &Options{} },
		Schemes: map[string]func(string) (config.Options, error){
			"kafka": func(address string) (config.Options, error) { return FromURL(address) },
		},
	}}}
}

func parse(text string) (*Options, error) {
	c, err := loader().Parse("config.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- name: bus\n  kafka: "+text+"\n"))
	if err != nil {
		return nil, err
	}
	return c.Sinks[0].Options.(*Options), nil
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ why, text, want string }{
		{"the least", "{brokers: [b1], topic: changes}", ""},
		{"no broker", "{topic: changes}", "brokers: missing"},
		{"a URL is no broker", "{brokers: ['kafka://b1:9092'], topic: a}", "brokers: number 1 is not host:port"},
		{"a port that is invalid", "{brokers: [b1, 'b2:x'], topic: a}", "brokers: number 2 is not host:port"},
		{"an IPv6 address", "{brokers: ['[::1]:9093', '::1'], topic: a}", ""},
		{"a user among the brokers", "{brokers: ['u:p4ssword@b1:9092'], topic: a}", "brokers: number 1"},
		{"no topic", "{brokers: [b1]}", "topic: missing"},
		{"an invalid topic", "{brokers: [b1], topic: 'a b'}", `"a b" is not a valid topic name`},
		{"dots alone", "{brokers: [b1], topic: '..'}", `".." is not a valid topic name`},
		{"too long a topic", "{brokers: [b1], topic: " + strings.Repeat("a", 250) + "}", "more than 249"},
		{"a field that is not there", "{brokers: [b1], topic: '{{.Data.Nothing}}'}", "Nothing"},
		{"a field that may be empty", "{brokers: [b1], topic: '{{.Data.Resource.Namespace}}'}", "an empty name"},
		{"and stands beside others", "{brokers: [b1], topic: 'c.{{.Data.Resource.Namespace}}'}", ""},
		{"a mechanism alone", "{brokers: [b1], topic: a, sasl: {mechanism: plain}}", "sasl: user and password"},
		{"a password alone", "{brokers: [b1], topic: a, sasl: {user: u, password: p4ssword}}", "sasl: mechanism: one of plain"},
		{"another mechanism", "{brokers: [b1], topic: a, sasl: {mechanism: gssapi, user: u, password: p4ssword}}", `"gssapi" is not one of`},
		{"half of a pair", "{brokers: [b1], topic: a, tls: {cert: a}}", "tls: cert and key"},
		{"another compression", "{brokers: [b1], topic: a, compression: brotli}", `compression: "brotli" is not one of gzip, lz4, none, snappy, zstd`},
		{"no room", "{brokers: [b1], topic: a, maxMessageBytes: 1Ki}", "maxMessageBytes: must be between 8192"},
		{"more than a batch can have", "{brokers: [b1], topic: a, maxMessageBytes: 2Gi}", "maxMessageBytes: must be between"},
		{"time goes forward", "{brokers: [b1], topic: a, timeout: -1s}", "negative"},
		{"no time", "{brokers: [b1], topic: a, timeout: 1ms}", "timeout: at least 100ms"},
		{"a key that is invalid", "{brokers: [b1], topic: a, acks: all}", "acks"},
	} {
		_, err := parse(tc.text)
		if tc.want == "" && err == nil {
			continue
		}
		if err == nil || tc.want == "" || !contains(err, tc.want) || strings.Contains(err.Error(), "p4ssword@") {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}

// contains reports whether an error contains a text; the loader separates the key from the reason.
func contains(err error, want string) bool {
	for _, part := range strings.Split(want, ": ") {
		if !strings.Contains(err.Error(), part) {
			return false
		}
	}
	return true
}

// TestValidateShowsNoCredential: an invalid broker may contain part of a password.
func TestValidateShowsNoCredential(t *testing.T) {
	for _, o := range []Options{
		{Brokers: []string{"u:p4ssword@b1:9092"}, Topic: "a"},
		{Brokers: []string{"b1"}, Topic: "a", SASL: SASL{Password: "p4ssword"}},
		{Brokers: []string{"b1"}, Topic: "a", SASL: SASL{Mechanism: "x", Password: "p4ssword"}},
		{Brokers: []string{"b1"}, Topic: "a", SASL: SASL{Mechanism: "plain", Password: "p4ssword"}},
	} {
		if err := o.Validate(); err == nil || strings.Contains(err.Error(), "p4ssword") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestOptionKeys(t *testing.T) {
	got, err := parse(`
    brokers: [b1:9093, b2]
    topic: changes
    allowAutoTopicCreation: true
    sasl: {mechanism: scram-sha-256, user: u, password: p}
    encrypted: true
    tls: {ca: a, cert: b, key: c, serverName: d}
    compression: zstd
    maxMessageBytes: 2Mi
    clientID: audit
    timeout: 3s`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Options{
		Brokers: []string{"b1:9093", "b2"}, Topic: "changes", AllowAutoTopicCreation: true,
		SASL: SASL{Mechanism: "scram-sha-256", User: "u", Password: "p"}, Encrypted: true,
		TLS:         sink.TLS{CA: "a", Cert: "b", Key: "c", ServerName: "d"},
		Compression: "zstd", MaxMessageBytes: 2 << 20, ClientID: "audit", Timeout: 3 * time.Second,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestFromURL(t *testing.T) {
	for _, tc := range []struct {
		why, address string
		want         Options
	}{
		{"the least", "kafka://b1/changes", Options{Brokers: []string{"b1"}, Topic: "changes"}},
		{"all", "kafka://us%40er:p%2Fw:d@b1:9093,b2:9093/changes?sasl=scram-sha-512&tls=true&compression=lz4&allowAutoTopicCreation=true&ca=/ca.pem", Options{
			Brokers: []string{"b1:9093", "b2:9093"}, Topic: "changes", SASL: SASL{"scram-sha-512", "us@er", "p/w:d"},
			Encrypted: true, Compression: "lz4", AllowAutoTopicCreation: true, TLS: sink.TLS{CA: "/ca.pem"},
		}},
		{"a password alone is shown as it is", "kafka://u:p@b1/changes?insecure=true", Options{
			Brokers: []string{"b1"}, Topic: "changes", SASL: SASL{"plain", "u", "p"}, Insecure: true,
		}},
		{"a template", "kafka://b1/c.{{.Data.Resource.Namespace | lower}}", Options{
			Brokers: []string{"b1"}, Topic: "c.{{.Data.Resource.Namespace | lower}}",
		}},
	} {
		s, err := loader().SinkFromURL(tc.address)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
			continue
		}
		if d := cmp.Diff(&tc.want, s.Options); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, d)
		}
	}
}

func TestFromURLErrors(t *testing.T) {
	for _, tc := range []struct{ why, address, want string }{
		{"no broker", "kafka:///changes", "brokers: number 1"},
		{"no topic", "kafka://b1", "topic: missing"},
		{"no slashes", "kafka:b1", "want kafka://HOST:PORT/TOPIC"},
		{"a slash in the password", "kafka://u:p4ss/p4ss@b1/changes", "brokers: number 1 is not host:port"},
		{"a slash in the user", "kafka://u/s3r:p4ss@b1/changes", "topic: the path after the brokers"},
		{"a question mark in the password", "kafka://u:p4ss?p4ss@b1/changes", "brokers: number 1"},
		{"a wrong escape in the password", "kafka://u:p4ss%zz@b1/changes", "user and password"},
		{"no password", "kafka://u@b1/changes", "sasl: user and password are needed"},
		{"an unknown key", "kafka://u:p4ss@b1/changes?acks=p4ss", "unknown key in the query: known are allowAutoTopicCreation, ca, "},
		{"no key", "kafka://u:p4ss@b1/changes?p4ss=%zz", "invalid query"},
		{"a truth that is invalid", "kafka://u:p4ss@b1/changes?tls=p4ss", "tls must be true or false"},
		{"a mechanism for nobody", "kafka://b1/changes?sasl=plain", "sasl: needs a user and a password"},
		{"an empty mechanism", "kafka://b1/changes?sasl=", "sasl must not be empty"},
		{"a mechanism that is invalid", "kafka://u:p4ss@b1/changes?sasl=gssapi", "mechanism"},
	} {
		_, err := loader().SinkFromURL(tc.address)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
	}
}
