package redact

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// objects generates objects with values that the rules look for, and with similar ones.
type objects struct{ *rand.Rand }

func (g objects) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g objects) object(depth int) map[string]any {
	m := map[string]any{}
	for range g.IntN(5) {
		key := g.pick("env", "args", "command", "name", "name", "value", "metadata", "managedFields", "kind", "annotations",
			"a", "b", "spec", "TOKEN", "dbPassword", "LOG", "data", "x/last", "apiKey", "k:{\"name\":\"TOKEN\"}", "url",
			"password", "secretName", "default", "key", "values", "credentials", "auth", "items", "description", "passwordKey", "secrets", "webhook",
			"operator", "tool/state", "parameters", "tokens", "x/last-applied", "path", "type", "kty", "k", "users", "basicAuth", "sensitive",
			"api", "passwordSecret", "cloud.auth", "inline_string", "string")
		m[key] = g.value(depth - 1)
	}
	if g.IntN(40) == 0 {
		m[g.pick("stringData", "kubectl.kubernetes.io/last-applied-configuration", "kapp.k14s.io/original")] = g.value(depth - 1)
	}
	return m
}

func (g objects) value(depth int) any {
	n := g.IntN(10)
	switch {
	case n == 0:
		return nil
	case n == 1:
		return g.Float64() * 100
	case n == 2:
		return g.IntN(2) == 0
	case n < 6 || depth == 0:
		return g.text()
	case n < 8:
		return g.object(depth)
	}
	list := make([]any, g.IntN(4))
	for i := range list {
		list[i] = g.value(depth - 1)
	}
	return list
}

func (g objects) text() string {
	if g.IntN(30) == 0 {
		return g.pick("Secret", "ConfigMap", "postgres://u:p@db/x", "eyJhbGciOi.eyJzdWIiOi.x", "SecretList", "ghp_a1B2c3D4e5F6g7H8i9J0",
			`{"password":"a"}`, `{"apiVersion":"v1","kind":"X","metadata":{}}`, "a: b\npassword: c\n", "YTogYgpkYjoKICBwYXNzd29yZDogeDEK", "H4sIAAAAAAAAAAAAAAAAAAAA",
			"https://hooks.slack.com/services/T0/B0/x1y2z3", "dXNlcjpwYXNz", "apiVersion: v1\nkind: X\nspec: {}\n", "mysql -px1", "${TOKEN:-x1}", "a\nrequirepass b",
			"echo a:x1 | chpasswd", "mc alias set a b c d1e2", "sqlplus a/b1@c", "x?u=postgres%3A%2F%2Fa%3Ab1%40c", "data:;base64,cGFzc3dvcmQ6IGExYjJjM2Q0ZTU=", "/spec/password",
			"kind: Secret\ndata:\n  a: b\n", "- default: x1\n  name: token\n", "api:\n  key: x1y2\n", "curl -ua:b1", "KLUv/QBYAAAAAAAAAAAAAAAAAA")
	}
	return g.pick("x1", "", "7", "TOKEN", "LOG_LEVEL", "DB_PASSWORD", "$(DB_PASSWORD)", "--password", "--token=abc", "--v=2", "-p", "a b",
		"sh -c 'x --api-key y'", "say \"hi\"", "token:", "--set=db.password=x", "clientSecret", "tokenizer", "a=b", "PASSWORD_FILE", "Пароль", "line\nbreak")
}

// TestSpared has common objects in which nothing is hidden, and similar ones.
func TestSpared(t *testing.T) {
	r := redactor(t)
	for _, tc := range []struct {
		why, raw string
		want     bool
	}{
		{"a variable", `{"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}`, false},
		{"a reference to a Secret, under its name", `{"env":[{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"token","key":"token"}}}]}`, false},
		{"a command line", `{"command":["/bin/app"],"args":["serve","--config=/etc/app.yaml","-v"]}`, false},
		{"a toleration", `{"tolerations":[{"key":"token","operator":"Equal","value":"a"}]}`, false},
		{"managed fields", `{"metadata":{"managedFields":[{"fieldsV1":{"f:env":{"k:{\"name\":\"TOKEN\"}":{".":{},"f:name":{},"f:value":{}}}}}]}}`, false},
		{"managed fields elsewhere are as anything", `{"managedFields":[{"name":"TOKEN","value":"x"}]}`, true},
		{"a flag, with the value behind it", `{"args":["--token","x"]}`, true},
		{"a value before its name", `{"env":[{"value":"x","name":"TOKEN"}]}`, true},
		{"a name that is written with escapes", `{"env":[{"value":"x","name":"T\u004fKEN"}]}`, true},
		{"a Secret without values", `{"a":[{"kind":"Secret","data":{}}]}`, false},
		{"of a kind that is written with escapes", `{"a":{"kind":"S\u0065cret","data":{"a":"x"}}}`, true},
		{"a reference to an object", `{"a":{"kind":"SecretStore","name":"Secret"},"b":["Secret"]}`, false},
		{"a key that is", `{"env":[{"val\u0075e":"x","name":"TOKEN"}]}`, true},
		{"a shell's text with quotes", `{"args":["echo \"x\""]}`, false},
		{"nested deeper than anybody does", strings.Repeat(`{"a":`, 200) + `{"password":"x"}` + strings.Repeat("}", 200), true},
	} {
		got, err := r.Redact("pods", []byte(tc.raw))
		if err != nil || (string(got) != tc.raw) != tc.want {
			t.Errorf("%s: %s, %v", tc.why, got, err)
		}
	}
}

// TestStems checks the quick test of a name against the words from which it was built.
func TestStems(t *testing.T) {
	for _, m := range []map[string]bool{words, lasts, terms, pairs, files} {
		for name := range m {
			forms := []string{name, strings.ToUpper(name), strings.ReplaceAll(name, " ", "_"), "x-" + strings.ReplaceAll(name, " ", "-")}
			if files[name] {
				forms = forms[:1]
			}
			for _, form := range forms {
				if nameKind(form) == plainName {
					t.Errorf("%s is missed", form)
				}
			}
		}
	}
	if newMatcher(stems).any("LOG_LEVEL") || len(stems) > 60 || !slices.Contains(stems, "pass") {
		t.Errorf("the stems %q spare nothing", stems)
	}
}
