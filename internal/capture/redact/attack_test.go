package redact

import (
	"regexp"
	"strings"
	"testing"
)

// attacks are places where a search for gaps found credentials; see shapes.
var attacks = []struct{ why, resource, object string }{
	{"a Secret whose data is an alias", "configmaps", `{"data":{"app.yaml":"x: &d\n  foo: CANARY64\nkind: Secret\ndata: *d\n"}}`},
	{"a Secret that merges its data", "configmaps", `{"data":{"app.yaml":"x: &d\n  foo: CANARY64\nkind: Secret\ndata:\n  <<: *d\n"}}`},
	{"a Secret that merges its kind", "configmaps", `{"data":{"app.yaml":"b: &b\n  kind: Secret\na:\n  <<: [*b]\n  data:\n    foo: CANARY64\n"}}`},
	{"a merged map that is written in place", "configmaps", `{"data":{"app.yaml":"a:\n  <<: {kind: Secret}\n  data:\n    foo: CANARY64\n"}}`},
	{"a map that is an alias", "configmaps", `{"data":{"app.yaml":"x: &c\n  value: CANARY\ny: *c\npassword: *c\n"}}`},
	{"a list that is an alias", "configmaps", `{"data":{"app.yaml":"x: &c\n- CANARY\npasswords: *c\n"}}`},
	{"a folded text that was meant to have lines", "configmaps", `{"data":{"app.yaml":"a: b\nconf: >\n  x: y\n  password: CANARY\n"}}`},
	{"a field without a space in braces", "configmaps", `{"data":{"app.yaml":"a: b\nx: {password:CANARY}\n"}}`},
	{"a value's field in YAML that is not valid", "configmaps", `{"data":{"app.yaml":"env:\n  DB_PASSWORD:\n    description: x\n    value: CANARY\npassword:\n  value: CANARY\nx: [\n"}}`},
	{"instructions in XML", "configmaps", `{"data":{"app.xml":"<c><?cfg password=\"CANARY\"?>\n<a>b</a></c>"}}`},
	{"entities in XML", "configmaps", `{"data":{"app.xml":"<!DOCTYPE c [\n<!ENTITY password \"CANARY\">\n]>\n<c><a>&password;</a></c>"}}`},
	{"a flag in a message", "events", `{"message":"command [app --password CANARY --x] failed"}`},
	{"a quoted flag in a message", "events", `{"message":"exec [\"app\" \"--password\" \"CANARY\"] failed"}`},
	{"a secret's data in Helm's values", "applications.argoproj.io", `{"spec":{"source":{"helm":{"valuesObject":{"secret":{"data":{"x":"CANARY"}},"secrets":{"main":{"data":{"x":"CANARY"}},"other":{"value":"CANARY"}}}}}}}`},
	{"a password with its encoding", "configmaps", `{"data":{"app.properties":"a=b\nspring.security.user.password={noop}CANARY\nldap.password={SSHA}CANARY\n"}}`},
	{"an element with a namespace, in a page that is not XML", "configmaps", `{"data":{"a.html":"x\n<a:password>CANARY</a:password>\n"}}`},
	{"an element with attributes, in a page that is not XML", "configmaps", `{"data":{"a.html":"x\n<password enc=\"no\">CANARY</password>\n"}}`},
	{"an element with CDATA, in a page that is not XML", "configmaps", `{"data":{"a.html":"x\n<password><![CDATA[CANARY]]></password>\n"}}`},
	{"a pair of elements, in a page that is not XML", "configmaps", `{"data":{"a.html":"x\n<p>\n<name>password</name>\n<value>CANARY</value></p>\n"}}`},
	{"an element in another, in a page that is not XML", "configmaps", `{"data":{"a.html":"x\n<p name=\"password\"><value>CANARY</value></p>\n"}}`},
	{"XML with an entity of HTML", "configmaps", `{"data":{"a.xml":"<a>\n<b>x&nbsp;y & z</b><p><value>CANARY</value><name>password</name></p></a>"}}`},
	{"a key about keys whose value is no word", "widgets.example.com", `{"spec":{"a":[{"key":"apiKey","value":{"value":"CANARY"}},{"key":"apiKey","value":["CANARY"]}]}}`},
	{"a password that begins with a brace", "configmaps", `{"data":{"app.properties":"a=b\npassword={CANARY\n"}}`},
	{"maps of secrets in Helm's values", "widgets.example.com", `{"spec":{"values":{"extraSecrets":{"main":{"data":{"x":"CANARY"}},"a":"CANARY"},"secretEnv":{"DB":"CANARY"},"secret_envs":{"DB":"CANARY"}}}}`},
	{"maps of secrets in Helm's values, as a file", "configmaps", `{"data":{"values.yaml":"secretEnv:\n  DB: CANARY\nextraSecrets:\n  x: CANARY\n"}}`},
	{"numbers in containers and lists", "widgets.example.com", `{"spec":{"credentials":{"x":90210},"passwords":[90210],"apiKeys":["90210"]}}`},
	{"numbers in containers and lists, as a file", "configmaps", `{"data":{"a.yaml":"credentials:\n  x: 90210\npasswords:\n- 90210\n","a.json":«{"credentials":{"x":90210},"passwords":[90210]}»}}`},
	{"kustomize's literals", "widgets.example.com", `{"spec":{"secretGenerator":[{"name":"a","literals":["pin=CANARY","CANARY"]}]}}`},
	{"kustomize's literals, as a file", "configmaps", `{"data":{"kustomization.yaml":"secretGenerator:\n- name: a\n  literals:\n  - pin=CANARY\n"}}`},
	{"an invalid value in a message", "events", `{"message":"Widget.example.com \"a\" is invalid: spec.password: Invalid value: \"CANARY\": too short"}`},
	{"an unsupported value in a status", "widgets.example.com", `{"status":{"conditions":[{"message":"cannot apply: spec.auth[0].token: Unsupported value: \"CANARY\": supported values: \"a\""}]}}`},
	{"values of their own in templates", "configmaps", `{"data":{"a.yaml":"a: b\npassword: {{ coalesce .Values.x \"CANARY\" }}\ntoken: {{ \"CANARY\" | b64enc }}\nsecret: {{ or .Values.a \"CANARY\" }}\napi_key: {{ ternary \"CANARY\" \"CANARY\" .Values.b }}\n"}}`},
	{"the same in properties", "configmaps", `{"data":{"a.conf":"a=b\npassword={{ coalesce .Values.x \"CANARY\" }}\ntoken={{- \"CANARY\" | quote }}\n"}}`},
	{"fields that end with pat or auth", "widgets.example.com", `{"spec":{"githubPat":"CANARY","pat":"CANARY","auth":"CANARY","proxyAuth":"CANARY"}}`},
	{"a key about keys whose value has hyphens", "widgets.example.com", `{"spec":{"a":[{"key":"apiKey","value":"correct-horse-battery"},{"key":"api_key","value":"hunter-CANARYx"}]}}`},
	{"inner fields", "widgets.example.com", `{"spec":{"password":{"raw":"CANARY"},"token":{"val":"CANARY"},"apiKey":{"string":"CANARY"}}}`},
	{"inner fields in a file", "configmaps", `{"data":{"a.yaml":"password:\n  raw: CANARY\ntoken: {val: CANARY}\nx: y\n"}}`},
	{"a comment close behind a credential", "configmaps", `{"data":{"a.yaml":"a: b\npassword: foo #CANARY\nc: d\n","b.yaml":"password: 'foo' #CANARY\n"}}`},
	{"a Secret whose annotations or data come twice", "configmaps", `{"data":{"a.json":«{"kind":"Secret","metadata":{"annotations":{"a":"x1"},"annotations":{"b":"CANARY"}},"data":{"a":"eA=="},"data":{"b":"CANARY64"}}»}}`},
	{"the key of a JWT", "configmaps", `{"data":{"app.yaml":"jwt:\n  key: CANARY\na: b\n"}}`},
}

// TestXMLStaysXML checks that what is around a credential in a text of XML stays escaped.
func TestXMLStaysXML(t *testing.T) {
	r := redactor(t)
	for before, after := range map[string]string{
		"<a>\n<b>&lt;c&gt;\npassword=x1y2\n&amp;</b></a>":             "<a>\n<b>&lt;c&gt;\npassword=#\n&amp;</b></a>",
		"<a>\n<b><![CDATA[<c>\npassword=x1y2\nd]]></b></a>":           "<a>\n<b><![CDATA[<c>\npassword=#\nd]]></b></a>",
		"<a>\n<b c=\"{&quot;password&quot;:&quot;x1y2&quot;}\"/></a>": "<a>\n<b c=\"{&quot;password&quot;:&quot;#&quot;}\"/></a>",
	} {
		obj := map[string]any{"spec": map[string]any{"x": before}}
		if _, err := r.Apply("widgets.example.com", obj); err != nil {
			t.Fatal(err)
		}
		spec, _ := obj["spec"].(map[string]any)
		text, _ := spec["x"].(string)
		if got := regexp.MustCompile(`hidden #[0-9a-f]{16}`).ReplaceAllString(text, "#"); got != after {
			t.Errorf("%s\nbecame\n%s\nwant\n%s", before, got, after)
		}
	}
}

// TestOtherAttacks: a number in attacks, and a passphrase, is a credential, too.
func TestOtherAttacks(t *testing.T) {
	for _, tc := range attacks {
		obj := decode(t, inJSON(canonicalForms.Replace(tc.object)))
		if _, err := redactor(t).Apply(tc.resource, obj); err != nil {
			t.Fatal(err)
		}
		if got := encode(t, obj); strings.Contains(got, "90210") || strings.Contains(got, "horse") {
			t.Errorf("%s: %s", tc.why, got)
		}
	}
}

// TestSameNameInText: values of one name in a text have marks of their own, also if they are equal.
func TestSameNameInText(t *testing.T) {
	for _, text := range []string{"x y\npassword=same1\npassword=same1\n", "a: b\n# password=same1\nc: d\n# password=same1\n"} {
		obj := map[string]any{"spec": map[string]any{"x": text}}
		if _, err := redactor(t).Apply("widgets.example.com", obj); err != nil {
			t.Fatal(err)
		}
		marks := regexp.MustCompile(`hidden #[0-9a-f]{16}`).FindAllString(encode(t, obj), -1)
		if len(marks) != 2 || marks[0] == marks[1] {
			t.Errorf("%q has the marks %q", text, marks)
		}
	}
}
