package redact

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/rules"
)

// canaries creates values that must not be found afterwards in any form.
type canaries struct{ all []string }

func (c *canaries) text() string {
	s := "x7x" + rand.Text() // each with a digit, and not base64
	c.all = append(c.all, s)
	return s
}

func (c *canaries) base64() string { return base64.StdEncoding.EncodeToString([]byte(c.text())) }

func (c *canaries) pem() string {
	body := base64.StdEncoding.EncodeToString([]byte(c.base64()))
	c.all = append(c.all, body)
	return "-----BEGIN RSA PRIVATE KEY-----\n" + body + "\n-----END RSA PRIVATE KEY-----\n"
}

func (c *canaries) jwt() string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	s := part(`{"alg":"HS256"}`) + "." + part(`{"sub":"`+c.text()+`"}`) + "." + part(c.text())
	c.all = append(c.all, s)
	return s
}

// leaked returns the canaries that a text contains, verbatim, in base64 (at any alignment), or in hexadecimal.
func (c *canaries) leaked(text string) (out []string) {
	for _, canary := range c.all {
		forms := []string{canary, hex.EncodeToString([]byte(canary))}
		for pad := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(".", pad) + canary))
			if len(encoded) > 16 { // the part that neighbours do not change, and that is specific
				forms = append(forms, encoded[4:len(encoded)-4])
			}
		}
		for _, form := range forms {
			if strings.Contains(text, form) {
				out = append(out, form)
			}
		}
	}
	return out
}

// check redacts an object's text.
func (c *canaries) check(t *testing.T, r *Redactor, resource, raw string) {
	t.Helper()
	got, err := r.Redact(resource, []byte(raw))
	if err != nil || len(c.leaked(string(got))) > 0 {
		t.Errorf("%s: %v, leaked %q in\n%s", resource, err, c.leaked(string(got)), got)
	}
}

func TestNoCanaryIsLeft(t *testing.T) {
	user := []rules.Rule{
		{Resources: []string{"widgets.example.com"}, Paths: []string{"spec.db.*pin*", "spec.users[*].phrase", `spec["a.b/c"]`, "spec.whole", "spec.list"}},
		{Resources: []string{"widgets.*"}, Paths: []string{"metadata.annotations[\"example.com/hint\"]"}},
	}
	r, err := New(NewRandomKey(), user)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		why      string
		resource string
		object   func(c *canaries) string
	}{
		{"a Secret's data, in base64", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"db","uid":"u"},"data":{"a":"` + c.base64() + `","b":"` + c.base64() + `"},"type":"Opaque"}`
		}},
		{"a Secret written with stringData", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","stringData":{"a":"` + c.text() + `"}}`
		}},
		{"a Secret's annotations, by kubectl and by anybody", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"a\":\"` + c.base64() + `\"}}","example.com/copy":"` + c.text() + `","helm.sh/chart":"c"}}}`
		}},
		{"a Helm release, twice in base64", "secrets", func(c *canaries) string {
			release := base64.StdEncoding.EncodeToString([]byte(c.base64()))
			c.all = append(c.all, release)
			return `{"kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.web.v1"},"data":{"release":"` + release + `"}}`
		}},
		{"a Secret of the wrong shape: data is text", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","data":"` + c.text() + `","stringData":["` + c.text() + `"]}`
		}},
		{"a Secret of the wrong shape: values are not texts", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","data":{"a":{"b":"` + c.text() + `"},"c":["` + c.text() + `"]}}`
		}},
		{"a Secret of the wrong shape: annotations and metadata are lists", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","metadata":{"annotations":["` + c.text() + `"]},"spec":{"a":"` + c.text() + `"}}`
		}},
		{"a Secret whose metadata is text", "secrets", func(c *canaries) string {
			return `{"kind":"Secret","metadata":"` + c.text() + `"}`
		}},
		{"a Secret that says it is something else", "secrets", func(c *canaries) string {
			return `{"kind":"Cloak","apiVersion":"x/v9","data":{"a":"` + c.base64() + `"}}`
		}},
		{"a Secret served as another resource", "things.example.com", func(c *canaries) string {
			return `{"kind":"Secret","apiVersion":"v1","data":{"a":"` + c.base64() + `"}}`
		}},
		{"a Secret within a custom resource", "manifestworks.work.open-cluster-management.io", func(c *canaries) string {
			return `{"kind":"ManifestWork","spec":{"workload":{"manifests":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","annotations":{"x":"` + c.text() + `"}},"data":{"a":"` + c.base64() + `"}},{"kind":"ConfigMap","data":{"db-password":"` + c.text() + `"}}]}}}`
		}},
		{"stringData of a template", "things.example.com", func(c *canaries) string {
			return `{"kind":"Thing","spec":{"template":{"stringData":{"a":"` + c.text() + `"}}}}`
		}},
		{"last-applied-configuration of every kind", "deployments.apps", func(c *canaries) string {
			return `{"kind":"Deployment","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"x\":\"` + c.text() + `\"}"}},"spec":{"template":{"metadata":{"annotations":{"example.com/last-applied":"` + c.text() + `"}}}}}`
		}},
		{"env of every kind of container", "deployments.apps", func(c *canaries) string {
			env := func() string {
				return `"env":[{"name":"A","value":"b"},{"name":"DB_PASSWORD","value":"` + c.text() + `"}]`
			}
			return `{"kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"a",` + env() + `},{"name":"b",` + env() + `}],"initContainers":[{` + env() + `}],"ephemeralContainers":[{` + env() + `}]}}}}`
		}},
		{"env deep in a cron job and in a custom resource", "cronjobs.batch", func(c *canaries) string {
			return `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"API_TOKEN","value":"` + c.text() + `"}]}]}}}},"x":[[{"env":[{"name":"token","value":{"a":"` + c.text() + `"}}]}]]}}`
		}},
		{"env as a map and as NAME=value", "things.example.com", func(c *canaries) string {
			return `{"spec":{"env":{"CLIENT_SECRET":"` + c.text() + `","OK":"b"},"sub":{"env":["CLIENT_SECRET=` + c.text() + `"]}}}`
		}},
		{"a command alone", "things.example.com", func(c *canaries) string {
			return `{"spec":{"command":["a","--password=` + c.text() + `"]}}`
		}},
		{"a private key in base64 alone", "things.example.com", func(c *canaries) string {
			return `{"spec":{"key":"` + base64.StdEncoding.EncodeToString([]byte(c.pem())) + `"}}`
		}},
		{"a ConfigMap alone within another object", "things.example.com", func(c *canaries) string {
			return `{"spec":{"template":{"kind":"ConfigMap","data":{"password":"` + c.text() + `"}}}}`
		}},
		{"applied by Rancher", "things.example.com", func(c *canaries) string {
			return `{"metadata":{"annotations":{"objectset.rio.cattle.io/applied":"` + c.text() + `"}}}`
		}},
		{"applied by kapp", "things.example.com", func(c *canaries) string {
			return `{"metadata":{"annotations":{"kapp.k14s.io/original":"` + c.text() + `"}}}`
		}},
		{"parameters of Argo, Tekton and the like; headers of probes", "applications.argoproj.io", func(c *canaries) string {
			return `{"spec":{"parameters":[{"name":"db.password","value":"` + c.text() + `"}],"probe":{"httpGet":{"httpHeaders":[{"name":"Authorization","value":"Bearer ` + c.text() + `"}]}}}}`
		}},
		{"innocent names with telling values", "pods", func(c *canaries) string {
			return fmt.Sprintf(`{"spec":{"containers":[{"env":[{"name":"A","value":%q},{"name":"B","value":"postgres://app:%s@db/x"},{"name":"C","value":%q},{"name":"D","value":"https://%s@github.com/x"}]}]}}`,
				c.pem(), c.text(), c.jwt(), c.text())
		}},
		{"command lines", "pods", func(c *canaries) string {
			return `{"spec":{"containers":[{"command":["app","--db-password=` + c.text() + `","--token","` + c.text() + `"],"args":["sh","-c","PGPASSWORD=` + c.text() + ` psql; app --api-key ` + c.text() + `","--set=a=b,db.password=` + c.text() + `","--password=-` + c.text() + `"],"livenessProbe":{"exec":{"command":["curl","-H","Authorization: ` + c.text() + `"]}}}]}}`
		}},
		{"a flag at the end of a command, and its value in args", "pods", func(c *canaries) string {
			return `{"spec":{"containers":[{"command":["app","--db-password"],"args":["` + c.text() + `"]}]}}`
		}},
		{"a user's flag at the end of a command", "pods", func(c *canaries) string {
			return `{"spec":{"containers":[{"args":["app:` + c.text() + `"],"command":["wrap","-u"]}]}}`
		}},
		{"a header at the end of a command", "pods", func(c *canaries) string {
			return `{"spec":{"containers":[{"command":["wrap","Authorization:"],"args":["` + c.text() + `"]}]}}`
		}},
		{"a command line as one text", "things.example.com", func(c *canaries) string {
			return `{"spec":{"args":"--verbose --secret-key=` + c.text() + `"}}`
		}},
		{"a ConfigMap's keys", "configmaps", func(c *canaries) string {
			return `{"kind":"ConfigMap","data":{"password":"` + c.text() + `","apiKey":"` + c.text() + `",".dockerconfigjson":"{\"a\":\"` + c.text() + `\"}","mysql.rootpassword":"` + c.text() + `"},"binaryData":{"private_key":"` + c.base64() + `"}}`
		}},
		{"a ConfigMap's telling values", "configmaps", func(c *canaries) string {
			kubeconfig := "client-key-data: " + base64.StdEncoding.EncodeToString([]byte(c.pem())) + "\n"
			return fmt.Sprintf(`{"kind":"ConfigMap","data":{"a":%q,"b":"url=redis://:%s@r:1","c":%q,"kubeconfig":%q},"binaryData":{"d":%q}}`,
				c.pem(), c.text(), c.jwt(), kubeconfig, base64.StdEncoding.EncodeToString([]byte(c.pem())))
		}},
		{"a ConfigMap of the wrong shape", "configmaps", func(c *canaries) string {
			return `{"kind":"ConfigMap","data":["` + c.text() + `"],"binaryData":{"a":"` + c.text() + `","b":["` + c.text() + `"]}}`
		}},
		{"Helm releases in ConfigMaps", "configmaps", func(c *canaries) string {
			return `{"kind":"ConfigMap","metadata":{"labels":{"owner":"helm"}},"data":{"release":"` + c.base64() + `"}}`
		}},
		{"Helm releases in ConfigMaps, by name", "configmaps", func(c *canaries) string {
			return `{"kind":"ConfigMap","metadata":{"name":"sh.helm.release.v1.a.v2"},"data":{"release":"` + c.base64() + `"}}`
		}},
		{"JSON with something behind it", "things.example.com", func(c *canaries) string {
			var fields []string
			for i, behind := range []string{"}", "]", "}}", "]}", " } ", "}\n{}", "\n", " x", ",", "}\n---\n", "\x00"} {
				for j, begin := range []string{`{"a":1}`, `[1]`, `{"a":{"password":"x"}}`} {
					for k, credential := range []string{"\npassword: " + c.text(), "\n{\"password\":\"" + c.text() + "\"}", " postgres://app:" + c.text() + "@db/x", "\nexport API_KEY=" + c.text(), "\n" + c.pem()} {
						fields = append(fields, fmt.Sprintf(`"f%d-%d-%d":%s`, i, j, k, canonical(begin+behind+credential)))
					}
				}
			}
			return `{"metadata":{"annotations":{` + strings.Join(fields, ",") + `}},"spec":{` + strings.Join(fields, ",") + `}}`
		}},
		{"the user's rules", "widgets.example.com", func(c *canaries) string {
			return `{"metadata":{"annotations":{"example.com/hint":"` + c.text() + `"}},"spec":{"db":{"mypins":"` + c.text() + `"},"users":[{"name":"a","phrase":"` + c.text() + `"},{"phrase":["` + c.text() + `"]}],"a.b/c":"` + c.text() + `","whole":{"a":["` + c.text() + `"]},"list":["` + c.text() + `"]}}`
		}},
	} {
		t.Run(tc.why, func(t *testing.T) {
			c := &canaries{}
			raw := tc.object(c)
			if len(c.leaked(raw)) == 0 {
				t.Fatal("the case has no canary")
			}
			c.check(t, r, tc.resource, raw)
			obj := decode(t, raw)
			if _, err := r.Apply(tc.resource, obj); err != nil {
				t.Fatal(err)
			}
			if got := encode(t, obj); len(c.leaked(got)) > 0 {
				t.Errorf("leaked %q in %s", c.leaked(got), got)
			}
		})
	}
}

func decode(tb testing.TB, raw string) map[string]any {
	tb.Helper()
	var obj map[string]any
	if err := json.Unmarshal([]byte(raw), &obj); err != nil {
		tb.Fatalf("%v in %s", err, raw)
	}
	return obj
}

func encode(tb testing.TB, obj map[string]any) string {
	tb.Helper()
	b, err := json.Marshal(obj)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
