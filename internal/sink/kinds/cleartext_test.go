package kinds_test

import (
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/sink/kinds"
)

// TestClearText checks that no credential is sent to another machine without TLS unless insecure: true allows it,
// for a file (so at config check and at start) and for --to. The hosts do not exist; none is contacted.
func TestClearText(t *testing.T) {
	for _, tc := range []struct {
		why, options, safe string // HOST stands for a host; safe is the same with TLS
		key                string
	}{
		{"webhook: a password", `webhook: {url: "http://u:hunter2@HOST/x"INSECURE}`, `webhook: {url: "https://u:hunter2@HOST/x"}`, "url"},
		{"webhook: a token in the query", `webhook: {url: "http://HOST/x?access_token=hunter2"INSECURE}`, `webhook: {url: "https://HOST/x?access_token=hunter2"}`, "url"},
		{"webhook: Authorization", `webhook: {url: "http://HOST/x", headers: {authorization: hunter2}INSECURE}`, `webhook: {url: "https://HOST/x", headers: {authorization: hunter2}}`, "url"},
		{"webhook: another header", `webhook: {url: "http://HOST/x", headers: {X-Api-Key: hunter2}INSECURE}`, `webhook: {url: "https://HOST/x", headers: {X-Api-Key: hunter2}}`, "url"},
		{"otlp: a password", `otlp: {endpoint: "http://u:hunter2@HOST:4317"INSECURE}`, `otlp: {endpoint: "https://u:hunter2@HOST:4317"}`, "endpoint"},
		{"otlp: a header", `otlp: {endpoint: "http://HOST:4317", headers: {authorization: hunter2}INSECURE}`, `otlp: {endpoint: "https://HOST:4317", headers: {authorization: hunter2}}`, "endpoint"},
		{"kafka", `kafka: {brokers: ["localhost:9092", "HOST:9092"], topic: t, sasl: {mechanism: plain, user: u, password: hunter2}INSECURE}`, `kafka: {brokers: ["HOST:9092"], topic: t, encrypted: true, sasl: {mechanism: plain, user: u, password: hunter2}}`, "sasl"},
		{"kafka: SCRAM shows no password", "", `kafka: {brokers: ["HOST:9092"], topic: t, sasl: {mechanism: scram-sha-512, user: u, password: hunter2}}`, ""},
		{"rabbitmq", `rabbitmq: {url: "amqp://u:hunter2@HOST/", queue: q INSECURE}`, `rabbitmq: {url: "amqps://u:hunter2@HOST/", queue: q}`, "url"},
		{"redis", `redis: {url: "redis://:hunter2@HOST"INSECURE}`, `redis: {url: "rediss://:hunter2@HOST"}`, "url"},
		{"mqtt", `mqtt: {url: "mqtt://HOST", password: hunter2 INSECURE}`, `mqtt: {url: "mqtts://HOST", password: hunter2}`, "password"},
		{"nats: a password", `nats: {servers: ["nats://HOST"], user: u, password: hunter2 INSECURE}`, `nats: {servers: ["tls://HOST"], user: u, password: hunter2}`, "servers"},
		{"nats: a token in an address", `nats: {servers: ["nats://hunter2@HOST"]INSECURE}`, `nats: {servers: ["nats://hunter2@HOST"], tls: {ca: f}}`, "servers"},
		{"nats: WebSockets", `nats: {servers: ["ws://HOST"], token: hunter2 INSECURE}`, `nats: {servers: ["wss://HOST"], token: hunter2}`, "servers"},
		{"nats: a key is not shown", "", `nats: {servers: ["nats://HOST"], nkey: f}`, ""},
		{"mail", `notify: {url: "smtp://u:hunter2@HOST/a@b.c?from=d@e.f&tls=none"INSECURE}`, `notify: {url: "smtp://u:hunter2@HOST/a@b.c?from=d@e.f"}`, "url"},
		{"chat: a webhook's path", `notify: {url: "http://HOST/hooks/hunter2", service: mattermost INSECURE}`, `notify: {url: "https://HOST/hooks/hunter2", service: mattermost}`, "url"},
		{"chat: by its scheme", `notify: {url: "mattermost://HOST/hunter2?disabletls=yes"INSECURE}`, `notify: {url: "mattermost://HOST/hunter2"}`, "url"},
		{"webhook: a path like Slack's", `webhook: {url: "http://HOST/services/T/B/hunter2"INSECURE}`, `webhook: {url: "https://HOST/services/T/B/hunter2"}`, "url"},
		{"webhook: a path like Discord's", `webhook: {url: "http://HOST/api/webhooks/12/hunter2"INSECURE}`, `webhook: {url: "https://HOST/api/webhooks/12/hunter2"}`, "url"},
		{"webhook: a path like Telegram's", `webhook: {url: "http://HOST/bot12:hunter2/x"INSECURE}`, `webhook: {url: "https://HOST/bot12:hunter2/x"}`, "url"},
		{"webhook: a token in the path", `webhook: {url: "http://HOST/hooks/hunter2hunter2hunter2"INSECURE}`, `webhook: {url: "https://HOST/hooks/hunter2hunter2hunter2"}`, "url"},
		{"webhook: a UUID in the path", `webhook: {url: "http://HOST/x/b7e3a4de-5d13-4be0-9f3e-0a5d8c2f6a11"INSECURE}`, `webhook: {url: "https://HOST/x/b7e3a4de-5d13-4be0-9f3e-0a5d8c2f6a11"}`, "url"},
		{"webhook: a path from the environment", `webhook: {url: "http://HOST/${env:WORD}"INSECURE}`, `webhook: {url: "https://HOST/${env:WORD}"}`, "url"},
		{"webhook: a header from the environment", `webhook: {url: "http://HOST/x", headers: {X-Team: "${env:WORD}"}INSECURE}`, `webhook: {url: "https://HOST/x", headers: {X-Team: "${env:WORD}"}}`, "url"},
		{"webhook: a body with what a file has", `webhook: {url: "http://HOST/x", template: '{"k":"${file:/word}"}'INSECURE}`, `webhook: {url: "https://HOST/x", template: '{"k":"${file:/word}"}'}`, "url"},
		{"otlp: a header from a file", `otlp: {endpoint: "http://HOST:4317", headers: {x-team: "${file:/word}"}INSECURE}`, `otlp: {endpoint: "https://HOST:4317", headers: {x-team: "${file:/word}"}}`, "endpoint"},
		{"chat: by shoutrrr", `notify: {url: "generic://HOST/hunter2?disabletls=yes"INSECURE}`, `notify: {url: "generic://HOST/hunter2"}`, "url"},
		{"chat: by shoutrrr, with another key", `notify: {url: "ntfy://HOST/hunter2?scheme=http"INSECURE}`, `notify: {url: "ntfy://HOST/hunter2"}`, "url"},
		{"chat: by shoutrrr, as a web address", `notify: {url: "generic+http://HOST/hunter2"INSECURE}`, `notify: {url: "generic+https://HOST/hunter2"}`, "url"},
		{"a name is no credential", "", `webhook: {url: "http://HOST/hooks/tattler-production-2/changes/services/team/backend"}`, ""},
		{"nor is a host from the environment", "", `webhook: {url: "http://${env:RECEIVER}/x"}`, ""},
		{"nor a signature", "", `webhook: {url: "http://HOST/x", secret: "${env:WORD}"}`, ""},
		{"nothing to hide", "", `webhook: {url: "http://HOST/x", headers: {X-Team: shop}, secret: hunter2}`, ""},
	} {
		parse := func(options, host, insecure string) error {
			options = strings.NewReplacer("HOST", host, "INSECURE", insecure).Replace(options)
			l := &config.Loader{
				Sinks: kinds.Tattler().Types(),
				LookupEnv: func(name string) (string, bool) {
					return map[string]string{"WORD": "hunter2", "RECEIVER": "sink.invalid"}[name], true
				},
				ReadFile: func(string) ([]byte, error) { return []byte("hunter2\n"), nil },
			}
			_, err := l.Parse("t.yaml", []byte("apiVersion: tattler.dev/v1alpha1\nkind: Config\nsinks:\n- {name: s, "+options+"}\n"))
			return err
		}
		if err := parse(tc.safe, "sink.invalid", ""); err != nil {
			t.Errorf("%s: with TLS: %v", tc.why, err)
		}
		if tc.options == "" {
			continue
		}
		for _, host := range []string{"sink.invalid", "10.1.2.3", "localhost.sink.invalid", "127.0.0.1.sink.invalid", "0.0.0.0"} {
			err := parse(tc.options, host, "")
			if err == nil || !strings.Contains(err.Error(), "."+tc.key+": ") || !strings.Contains(err.Error(), " to "+host+" in clear text: use ") ||
				!strings.Contains(err.Error(), "insecure: true") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: to %s: %v", tc.why, host, err)
			}
			if err := parse(tc.options, host, ", insecure: true"); err != nil {
				t.Errorf("%s: to %s where that is allowed: %v", tc.why, host, err)
			}
		}
		for _, host := range []string{"localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "[::1]"} {
			if err := parse(tc.options, host, ""); err != nil {
				t.Errorf("%s: to %s: %v", tc.why, host, err)
			}
		}
	}
}

// TestClearTextAddress checks that an address for --to may contain insecure=true, unless its query is the receiver's.
func TestClearTextAddress(t *testing.T) {
	for _, tc := range []struct{ address, insecure string }{
		{"http://u:hunter2@HOST/x", ""},
		{"otlp://u:hunter2@HOST", "?insecure=true"},
		{"otlp+http://u:hunter2@HOST", "?insecure=true"},
		{"kafka://u:hunter2@HOST/topic", "?insecure=true"},
		{"amqp://u:hunter2@HOST/?queue=q", "&insecure=true"},
		{"redis://:hunter2@HOST/0", "?insecure=true"},
		{"mqtt://u:hunter2@HOST/topic", "?insecure=true"},
		{"nats://u:hunter2@HOST,localhost/", "?insecure=true"},
		{"ws://hunter2@HOST/", "?insecure=true"},
		{"http://HOST/services/T/B/hunter2", ""},
		{"generic://HOST/hunter2?disabletls=yes", ""},
		{"smtp://u:hunter2@HOST/a@b.c?from=d@e.f&tls=none", "&insecure=true"},
		{"mattermost://HOST/hunter2?disabletls=yes", "&insecure=true"},
	} {
		l := &config.Loader{Sinks: kinds.Tattler().Types()}
		to := func(host, query string) error {
			_, err := l.SinkFromURL(strings.Replace(tc.address, "HOST", host, 1) + query)
			return err
		}
		if err := to("sink.invalid", ""); err == nil || !strings.Contains(err.Error(), " to sink.invalid in clear text: use ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", tc.address, err)
		}
		if err := to("127.0.0.1", ""); err != nil {
			t.Errorf("%s: on this machine: %v", tc.address, err)
		}
		if tc.insecure == "" {
			continue
		}
		if err := to("sink.invalid", tc.insecure); err != nil {
			t.Errorf("%s%s: %v", tc.address, tc.insecure, err)
		}
	}
}
