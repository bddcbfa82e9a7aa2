package redact

import (
	"regexp"
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
