package redact

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mixed returns n letters and digits that look random, and are no base64 of anything.
func mixed(n int) string { return strings.Repeat("q7Rt2Xw9Lm4Kz8", 8)[:n] }

// TestTokensWithoutPrefix looks for tokens that their whole form reveals, under innocent names.
func TestTokensWithoutPrefix(t *testing.T) {
	r := redactor(t)
	tunnel := base64.StdEncoding.EncodeToString([]byte(`{"a":"0123456789abcdef0123456789abcdef","t":"f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f","s":"` + mixed(32) + `"}`))
	for _, token := range []string{
		mixed(14) + ".atlasv1." + mixed(64),                                                                  // Terraform Cloud
		"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ." + mixed(27), "OD" + mixed(24) + ".G" + mixed(5) + "." + mixed(38), // Discord
		"110201543:AA" + mixed(33), "7654321098:AA" + mixed(33), // Telegram
		"abc8Q~" + mixed(34), "x.Y7Q~" + mixed(31) + "_-.", // Azure AD
		"s." + mixed(24), "s." + mixed(24) + ".x1y2z", "b." + mixed(90), // Vault
		"abcdef.0123456789abcdef", "x1y2z3.q7r8s9t0u1v2w3x4", // kubeadm
		tunnel, strings.TrimRight(tunnel, "="), // Cloudflare
	} {
		for _, raw := range []string{`{"spec":{"a":"TOKEN"}}`, `{"metadata":{"annotations":{"example.com/a":"TOKEN"}}}`, `{"env":[{"name":"A","value":"TOKEN"}]}`, `{"args":["TOKEN"]}`,
			`{"spec":{"a":"b: c\nd: TOKEN\n"}}`, `{"spec":{"a":"b: c\nd: 'TOKEN'\n"}}`, `{"spec":{"a":"b=c\r\nd=\"TOKEN\"\r\n"}}`, `{"spec":{"a":"see TOKEN, please"}}`} {
			obj := decode(t, strings.ReplaceAll(raw, "TOKEN", token))
			if strings.Contains(raw, `\"`) {
				obj = decode(t, strings.ReplaceAll(raw, "TOKEN", token))
			}
			if _, err := r.Apply("widgets.example.com", obj); err != nil {
				t.Fatal(err)
			}
			if got := encode(t, obj); strings.Contains(got, token) {
				t.Errorf("%s is visible in %s", token, got)
			}
		}
	}
}

// TestOrdinaryKinds checks values that stay visible, several of each kind.
func TestOrdinaryKinds(t *testing.T) {
	r := redactor(t)
	for _, tc := range []struct{ why, resource, raw string }{
		{"selectors of metrics", "prometheusrules.monitoring.coreos.com", `{"spec":{"groups":[{"rules":[{"expr":"sum(rate(x_total{job=\"a\",token=\"a\"}[5m])) by (token) > 0"},{"expr":"up{secret=~\"a.*\"} == 0\nor\nvault_x{token=\"b\", a!=\"b\"}"},{"expr":"count_over_time({app=\"x\", credential=\"static\"}[1m])"},{"expr":"{password=\"set\"} | json"}]}]}}`},
		{"times and sizes", "widgets.example.com", `{"spec":{"accessTokenLifespan":300,"offlineTokenLifespan":"10m","config":{"delegation.token.max.lifetime.ms":"604800000","password.expiry.secs":"90","token.cache.bytes":"1024","secretRetentionMonths":"x3"}}}`},
		{"tokens of texts", "pods", `{"spec":{"stop_token_ids":[1,2],"eos_token":"</s>","pad_token":"<pad>","bosToken":"<s>","unk_token":"[UNK]"},"env":[{"name":"EOS_TOKEN","value":"<|im_end|>"},{"name":"STOP_TOKENS","value":"</s>,<|eot|>"},{"name":"MASK_TOKEN","value":"[MASK]"}],"args":["--max-new-tokens=x","--pad-token=<|pad|>"]}`},
		{"agreements and names of cookies", "pods", `{"env":[{"name":"LICENSE","value":"accept"},{"name":"IBM_LICENSE","value":"developer"},{"name":"LICENSE","value":"Apache-2.0"},{"name":"SESSION_COOKIE","value":"sid"},{"name":"AFFINITY_COOKIE","value":"JSESSIONID"},{"name":"CSRF_COOKIE","value":"__Host-csrf"}]}`},
		{"what works on credentials", "pods", `{"env":[{"name":"PASSWORD_HASHER","value":"argon2"},{"name":"PASSWORD_ENCODER","value":"bcrypt"},{"name":"TOKEN_PARSER","value":"jose"},{"name":"SECRET_LOADER","value":"aws"},{"name":"CREDENTIAL_RESOLVER","value":"chain"},{"name":"TOKEN_FILTER","value":"lowercase"},{"name":"SECRETS_BACKENDS","value":"vault"}]}`},
		{"labels about keys", "widgets.example.com", `{"spec":{"labels":[{"key":"api_key","value":"premium"},{"key":"access-key","value":"basic"},{"key":"license_key","value":"trial"}]}}`},
		{"names of keys in Secrets", "widgets.example.com", `{"spec":{"connectionDetails":[{"name":"a","fromConnectionSecretKey":"username"},{"fromConnectionSecretKey":"attribute.secret"}],"x":{"fromTlsSecretKey":"tls.crt"},"y":[{"toConnectionSecretKey":"endpoint"}]}}`},
		{"keys of messages", "widgets.example.com", `{"spec":{"routing_key":"orders.created","routingKey":"audit","serviceKey":"billing","serverKey":"tls.key","hashKey":"userId","dataKey":"config.yaml","service_key":"app.kubernetes.io/name"}}`},
		{"versions and names with dots", "widgets.example.com", `{"spec":{"a":"abcdef.example","b":"s.example.com","c":"v1.2.3-alpha.0123456789","d":"123456:AA","e":"x.y.z","f":"1234567890:80","g":"MyClass.method.name","h":"sha256.abcdef"}}`},
		{"references as values of pairs", "pods", `{"env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"password","optional":false}}},{"name":"API_TOKEN","valueFrom":{"default":"","configMapKeyRef":{"name":"x","key":"token"}}}]}`},
		{"classes, versions and permissions", "configmaps", `{"data":{"a.yaml":"completer: app.lib.secrets.completers:SecretsCompleter\n- x: app.auth:AddAuthFlags\n","b.yaml":"permissions:\n  id-token: write\nsecrets: inherit\ndependencies:\n  minipass: ^7.0.4\n","c.sh":"#!/bin/sh\ncreate-kubeconfig \"http://localhost:8080\"\n","d.properties":"# x.keyStorePassword=<keystore-password>\n# b\n# c=<d>\n","e.yaml":"KEYTAB: ${{ github.workspace }}/kerberos/client.keytab\nTOKEN: $(DIR)/run/token\n"}}`},
		{"keys in lists of references", "widgets.example.com", `{"spec":{"credentials":[{"secretName":"a","key":"password"}],"api_credentials":[{"key":"username"}]}}`},
	} {
		want, got := decode(t, tc.raw), decode(t, tc.raw)
		if _, err := r.Apply(tc.resource, got); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-before +after)\n%s", tc.why, d)
		}
	}
}
