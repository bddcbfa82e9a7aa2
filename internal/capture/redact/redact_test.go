package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/rules"
)

var testKey = []byte("a key of the tests, long enough")

func redactor(tb testing.TB, user ...rules.Rule) *Redactor {
	tb.Helper()
	r, err := New(testKey, user)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestWhatStaysVisible lists values that must not be hidden: a diff without them is useless.
func TestWhatStaysVisible(t *testing.T) {
	r := redactor(t)
	for _, tc := range []struct{ why, resource, raw string }{
		{"visible parts of a Secret", "secrets", `{"apiVersion":"v1","kind":"Secret","type":"Opaque","immutable":true,"data":{},"metadata":{"name":"a","labels":{"a":"b"},"annotations":{"kubernetes.io/service-account.name":"default","cert-manager.io/issuer-name":"ca","meta.helm.sh/release-name":"web","helm.sh/hook":"pre-install"},"ownerReferences":[{"kind":"A","name":"b"}],"managedFields":[{"manager":"kubectl","fieldsV1":{"f:data":{"f:password":{}}}}]}}`},
		{"a Secret without metadata, and null data", "secrets", `{"kind":"Secret","data":null}`},
		{"references to Secrets", "pods", `{"spec":{"imagePullSecrets":[{"name":"token"}],"containers":[{"env":[{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"password"}}}]}],"ref":{"kind":"Secret","name":"password"}}}`},
		{"names that only describe", "deployments.apps", `{"spec":{"env":[{"name":"SECRET_NAME","value":"a"},{"name":"TOKEN_URL","value":"https://a/b"},{"name":"PASSWORD_FILE","value":"/run/a"},{"name":"TOKENIZER","value":"bpe"},{"name":"AUTHOR","value":"me"},{"name":"AUTH_MODE","value":"none"},{"name":"KEYBOARD","value":"de"},{"name":"COMPASS","value":"n"}]}}`},
		{"variables", "pods", `{"env":[{"name":"PASSWORD","value":"$(DB_PASSWORD)"}],"args":["--password=$(PW)","--password","$PW","--token=${TOKEN}","--password="]}`},
		{"flags that only describe, and others", "pods", `{"args":["--token-file=/a","--secret-name","b","--v=2","app","--password","--other"],"command":["sh","-c","echo token; sleep 1"]}`},
		{"a taint and a toleration have a key, no name", "nodes", `{"spec":{"taints":[{"key":"token","value":"a","effect":"NoSchedule"}],"tolerations":[{"key":"token","operator":"Equal","value":"a"}]}}`},
		{"images with digests", "pods", `{"status":{"imageID":"docker-pullable://nginx:1.2@sha256:abc","containerID":"containerd://abc","x":"ssh://git@github.com/a","y":"https://a.b:80/c@d","z":"http://a/$(A):b@c"}}`},
		{"public keys and certificates", "configmaps", `{"kind":"ConfigMap","data":{"ca.crt":"-----BEGIN CERTIFICATE-----\nMIIB\n","k":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t","app.properties":"http.timeout=5s","LOG_LEVEL":"debug","token":"${TOKEN}"},"binaryData":{"a":"AAEC"}}`},
		{"managed fields that name an annotation", "pods", `{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}]}}`},
		{"another group's secrets and configmaps", "secrets.example.com", `{"kind":"Hush","data":{"a":"b"}}`},
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

func TestMarkers(t *testing.T) {
	one := redactor(t)
	mark := func(r *Redactor, uid, key, value string) string {
		obj := map[string]any{"metadata": map[string]any{"uid": uid}, "data": map[string]any{key: value}}
		if _, err := r.Apply("secrets", obj); err != nil {
			t.Fatal(err)
		}
		return obj["data"].(map[string]any)[key].(string)
	}
	base := mark(one, "u", "k", "v")
	if _, ok := diff.Hidden(base); !ok || !regexp.MustCompile(`^hidden #[0-9a-f]{16}$`).MatchString(base) {
		t.Errorf("marker %q", base)
	}
	if again := mark(redactor(t), "u", "k", "v"); again != base {
		t.Errorf("the same value: %s, then %s", base, again)
	}
	seen := map[string]string{base: "base"}
	for why, m := range map[string]string{
		"another value":         mark(one, "u", "k", "w"),
		"another path":          mark(one, "u", "l", "v"),
		"another object":        mark(one, "w", "k", "v"),
		"a boundary moved":      mark(one, "u", "kv", ""),
		"no UID":                mark(one, "", "k", "v"),
		"the marker as a value": mark(one, "u", "k", base),
		"another key":           mark(&Redactor{key: NewRandomKey(), user: one.user}, "u", "k", "v"),
	} {
		if other, ok := seen[m]; ok {
			t.Errorf("%s and %s have the same marker", why, other)
		}
		seen[m] = why
	}
}

// TestSameThroughMoves: values that only moved must not look changed.
func TestSameThroughMoves(t *testing.T) {
	r := redactor(t)
	hidden := regexp.MustCompile(`hidden #[0-9a-f]{16}`)
	for _, tc := range []struct{ why, before, after string }{
		{"a variable before it", `{"env":[{"name":"PASSWORD","value":"a"}]}`, `{"env":[{"name":"A","value":"b"},{"name":"PASSWORD","value":"a"}]}`},
		{"an argument before it", `{"args":["--password=a"]}`, `{"args":["-v","--password=a"]}`},
		{"a flag before it", `{"args":["--password","a"]}`, `{"args":["-v","--password","a"]}`},
		{"a container before it", `{"c":[{"name":"a","env":[{"name":"TOKEN","value":"a"}]}]}`, `{"c":[{"name":"b"},{"name":"a","env":[{"name":"TOKEN","value":"a"}]}]}`},
	} {
		before, after := decode(t, tc.before), decode(t, tc.after)
		if _, err := r.Apply("pods", before); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply("pods", after); err != nil {
			t.Fatal(err)
		}
		a, b := hidden.FindString(encode(t, before)), hidden.FindString(encode(t, after))
		if a == "" || a != b {
			t.Errorf("%s: %q, then %q", tc.why, a, b)
		}
	}
}

// TestRulesDoNotStack: a user's rule for a value that is already hidden must not change its marker. Otherwise
// two parts of the code would have to agree on their order.
func TestRulesDoNotStack(t *testing.T) {
	raw := `{"metadata":{"uid":"u"},"data":{"password":"a","b":"c"}}`
	without, with := decode(t, raw), decode(t, raw)
	if _, err := redactor(t).Apply("configmaps", without); err != nil {
		t.Fatal(err)
	}
	rule := rules.Rule{Resources: []string{"configmaps"}, Paths: []string{"data.*", "data.b"}}
	if _, err := redactor(t, rule).Apply("configmaps", with); err != nil {
		t.Fatal(err)
	}
	hidden := func(obj map[string]any, key string) string {
		tag, ok := diff.Hidden(obj["data"].(map[string]any)[key])
		if !ok {
			t.Errorf("data.%s is not hidden in %v", key, obj)
		}
		return tag
	}
	if a, b := hidden(without, "password"), hidden(with, "password"); a != b {
		t.Errorf("the marker is %s without the rule, %s with it", a, b)
	}
	hidden(with, "b")
}

func TestWithoutUIDObjectsStayApart(t *testing.T) {
	r := redactor(t)
	a := decode(t, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	b := decode(t, `{"metadata":{"name":"b"},"data":{"k":"v"}}`)
	for _, obj := range []map[string]any{a, b} {
		if _, err := r.Apply("secrets", obj); err != nil {
			t.Fatal(err)
		}
	}
	if cmp.Equal(a["data"], b["data"]) {
		t.Error("equal values of two objects link them")
	}
}

func TestNewRefuses(t *testing.T) {
	rule := func(path string) []rules.Rule {
		return []rules.Rule{{Resources: []string{"pods"}, Paths: []string{path}}}
	}
	for _, tc := range []struct {
		why  string
		key  []byte
		user []rules.Rule
		want string
	}{
		{"no key: anybody could compute the markers", nil, nil, "0 bytes"},
		{"a key that can be tried", []byte("short"), nil, "5 bytes"},
		{"a path that cannot be read", testKey, rule("spec["), "spec["},
		{"a resource that cannot be", testKey, []rules.Rule{{Resources: []string{"pods/a"}, Paths: []string{"spec"}}}, `"pods/a"`},
		{"everything", testKey, rule("**"), "identifies"},
		{"names, wherever", testKey, rule("**.name"), "metadata.name"},
		{"metadata", testKey, rule("metadata"), "identifies"},
		{"versions", testKey, rule("metadata.*Version"), "metadata.resourceVersion"},
	} {
		_, err := New(tc.key, tc.user)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one that says %q", tc.why, err, tc.want)
		}
	}
	if _, err := redactor(t).Apply("pods", nil); err == nil {
		t.Error("no object: no error")
	}
}

func TestKeyIsCopied(t *testing.T) {
	key := NewRandomKey()
	r, err := New(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := decode(t, `{"data":{"k":"v"}}`), decode(t, `{"data":{"k":"v"}}`)
	if _, err := r.Apply("secrets", a); err != nil {
		t.Fatal(err)
	}
	clear(key)
	if _, err := r.Apply("secrets", b); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(a, b) {
		t.Error("clearing the caller's key changed the markers")
	}
}

func TestFingerprint(t *testing.T) {
	rule := rules.Rule{Resources: []string{"pods"}, Paths: []string{"spec.a"}}
	other := rules.Rule{Resources: []string{"pods"}, Paths: []string{"spec.b"}}
	base := redactor(t, rule).Fingerprint()
	if again := redactor(t, rule).Fingerprint(); again != base {
		t.Errorf("the same rules and key: %s, then %s", base, again)
	}
	if redactor(t, other).Fingerprint() == base || redactor(t).Fingerprint() == base {
		t.Error("other rules, same fingerprint")
	}
	r, err := New(NewRandomKey(), []rules.Rule{rule})
	if err != nil {
		t.Fatal(err)
	}
	if r.Fingerprint() == base {
		t.Error("another key, same fingerprint")
	}
}

// FuzzApply: Apply never panics, gives the same result each time, reports whether it changed anything, redacts
// all of a Secret's data, and agrees with Redact.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Secret","metadata":{"uid":"u","annotations":{"a":"b"}},"data":{"a":"Yg=="}}`,
		`{"spec":{"containers":[{"name":"a","env":[{"name":"TOKEN","value":"x"}],"args":["--password","x"]}]}}`,
		`{"kind":"ConfigMap","data":{"password":1,"u":"a://b:<c@d"},"binaryData":{"a":"?"}}`,
		`{"env":null,"args":{},"command":[[]],"stringData":[],"metadata":[],"data":{"":null}}`,
		`{"a":"eyJhbGciOi.eyJzdWIi.x","b":"LS0tLS1CRUdJTiBQUklWQVRFIEtFWQ"}`,
	} {
		f.Add("pods", []byte(seed))
		f.Add("secrets", []byte(seed))
	}
	r := redactor(f)
	f.Fuzz(func(t *testing.T, resource string, raw []byte) {
		var obj, again map[string]any
		if json.Unmarshal(raw, &obj) != nil || obj == nil {
			return
		}
		raw = []byte(encode(t, obj)) // as a server writes it
		again = decode(t, string(raw))
		hid, err := r.Apply(resource, obj)
		if _, errAgain := r.Apply(resource, again); err != nil || errAgain != nil {
			t.Fatal("Apply failed")
		}
		after := encode(t, obj)
		if hid != (after != string(raw)) {
			t.Errorf("Apply returned %v for\n%s\nApply made\n%s", hid, raw, after)
		}
		if after != encode(t, again) {
			t.Error("the same object is hidden in two ways")
		}
		agrees(t, r, resource, raw)
		if resource != secrets && obj["kind"] != "Secret" {
			return
		}
		if data, ok := obj["data"].(map[string]any); ok {
			for key, v := range data {
				if _, hidden := diff.Hidden(v); !hidden && v != nil {
					t.Errorf("data.%s is %v", key, v)
				}
			}
		}
	})
}

func BenchmarkPod(b *testing.B) {
	var containers []string
	for i := range 3 {
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"registry.example.com/shop/web:1.%d","args":["--v=2","--addr=:80"],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"DB_PASSWORD","value":"x"},{"name":"DB_URL","value":"postgres://db:5432/shop"}],"resources":{"limits":{"cpu":"1"}},"volumeMounts":[{"name":"a","mountPath":"/a"}]}`, i, i))
	}
	raw := `{"kind":"Pod","metadata":{"name":"web","uid":"u","labels":{"app":"web"}},"spec":{"containers":[` + strings.Join(containers, ",") + `]},"status":{"phase":"Running"}}`
	r := redactor(b)
	b.Run("Redact", func(b *testing.B) {
		quiet := []byte(strings.NewReplacer(`"env"`, `"eny"`, `"args"`, `"argz"`, `"value"`, `"valve"`).Replace(raw))
		b.SetBytes(int64(len(quiet)))
		for b.Loop() {
			if _, err := r.Redact("pods", quiet); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Apply", func(b *testing.B) {
		obj := decode(b, raw)
		for b.Loop() {
			if _, err := r.Apply("pods", obj); err != nil {
				b.Fatal(err)
			}
		}
	})
}
