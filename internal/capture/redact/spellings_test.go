package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// spellings are unusual ways to write texts of which docs/security.md says that a credential is found. CANARY
// stands for it.
var spellings = []struct{ why, text string }{
	// line ends and white space
	{"lines that end with CR alone", "a: b\rpassword: |\r  CANARY\rc: d\r"},
	{"a zero byte, a vertical tab, a form feed", "a: b\x00password: CANARY\vtoken: CANARY\fapi_key: CANARY\n"},
	{"a line separator of Unicode", "a: b\u2028password: CANARY\n"},
	{"a deep indentation", "a:\n" + strings.Repeat(" ", 200) + "password: CANARY\n"},
	{"a name longer than what is read of it", "a: b\n" + strings.Repeat("x", 300) + "_password: CANARY\n"},
	// JSON
	{"a field written with escapes", `{"\u0070\u0061\u0073\u0073\u0077\u006f\u0072\u0064":"CANARY"}`},
	{"a JSON text with escapes", `"{\"\\u0070\\u0061\\u0073\\u0073\":\"CANARY\"}"`},
	{"a byte order mark before JSON", "\ufeff" + `{"pass\u0077ord":"CANARY"}`},
	{"JSON, a value each line", `{"a":1}` + "\n" + `{"value":"CANARY","name":"DB_PASSWORD"}` + "\n" + `{"password":{"value":"CANARY"}}`},
	{"JSON over lines, after other JSON", "{\"a\":1}\n{\"tokens\":[\n  \"CANARY\"\n]}"},
	{"JSON without any word of a credential", `{"outputs":{"pin":{"value":["CANARY"],"sensitive":true}}}`},
	{"JSON with a command line", `{"run":["mysql","-pCANARY"]}`},
	{"JSON with a comment", "{\"password\": // x\n \"CANARY\"}"},
	{"slashes with escapes, in something like JSON", `{"url":"postgres:\/\/app:CANARY@db\/x",}`},
	// YAML
	{"an anchor before a block", "a: b\npassword: &x |\n  CANARY\nc: *x\n"},
	{"a tag, and the value below", "a: b\npassword: !!str\n  CANARY\n"},
	{"a comment before a block", "a: b\npassword: | # x\n  CANARY\n"},
	{"a comment, and the value below", "a: b\npassword: # x\n  # y\n  CANARY\n"},
	{"a value over two lines", "a: b\npassword: x\n  CANARY\nc: d\n"},
	{"a quote in a quoted value", "a: b\npassword: 'x''CANARY'\nc: d\n"},
	{"a list over lines", "a: b\ntokens: [\n  x1,\n  CANARY\n]\n"},
	{"a value in a map on the same line", "a: b\npassword: {type: x, value: CANARY}\n"},
	{"a value in a list of maps", "a: b\ntokens:\n  - value: CANARY\n"},
	{"a quoted field below a credential's name", "a: b\npassword:\n  \"value\":\n    CANARY\n"},
	{"explicit keys", "a:\n  ? password # x\n  : CANARY\n"},
	{"a pair with its value first, in a map on one line", "a: b\nenv: [{value: CANARY, name: DB_PASSWORD}]\n"},
	{"a pair with its value first, in quotes", "env:\n- \"value\": \"CANARY\"\n  \"name\": \"DB_PASSWORD\"\n"},
	{"a pair with a block", "env:\n- name: DB_PASSWORD\n  value: |\n    CANARY\n"},
	{"a pair with a block first", "env:\n- value: |\n    CANARY\n  name: DB_PASSWORD\n"},
	{"a pair with much between", "env:\n- name: DB_PASSWORD\n  a: 1\n  b:\n    c: 3\n  d: |\n    text\n  e: 5\n  value: CANARY\n"},
	{"a pair with tabs and an anchor", "env:\n- name:\t&n DB_PASSWORD\n  value:\tCANARY\n"},
	{"stringData with a space or in quotes", "x: y\n'stringData' :\n  a: CANARY\n"},
	{"YAML in a quoted text", "a: b\nc: \"q: r\\npassword: CANARY\\n\"\n"},
	{"a default in a template", "a: b\npassword: {{ .Values.x | default \"CANARY\" }}\n"},
	{"a variable before a literal rest", "A=b\nDB_PASSWORD=${X}CANARY\n"},
	{"a literal in a command", "A=b\nDB_PASSWORD=$(echo CANARY)\n"},
	// XML
	{"an element with an attribute", "<a>\n<password type=\"x\">CANARY</password>\n</a>"},
	{"an element in a namespace", "<a>\n<db:password>\n  CANARY\n</db:password>\n</a>"},
	{"a CDATA section", "<a>\n<password><![CDATA[CANARY]]></password>\n</a>"},
	{"a comment in an element, and an element in one", "<a>\n<password><!-- x -->CANARY</password>\n<token><value>CANARY</value></token></a>"},
	{"an attribute on the next line", "<a>\n<x password=\n\"CANARY\"/>\n</a>"},
	{"the value's attribute first", "<a>\n<property value=\"CANARY\" name=\"password\"/>\n</a>"},
	{"the value's element first", "<p>\n<value>CANARY</value>\n<name>password</name>\n</p>"},
	{"a property with a description", "<p>\n<name>\n password\n</name>\n<description>x</description>\n<value>CANARY</value>\n</p>"},
	{"an element that an attribute names", "<a>\n<entry key=\"db.password\">CANARY</entry>\n<Set name=\"password\">\n CANARY\n</Set></a>"},
	// what a reading as YAML could miss
	{"a comment behind a credential", "a: b\npassword: x1y2 # was CANARY\nc: d\n"},
	{"a pair in comments", "a: b\n# env:\n# - name: DB_PASSWORD\n#   value: CANARY\nc: d\n"},
	{"a credential in a name", "a: b\nhttps://app:CANARY@db/x: y\n? redis://:CANARY@r\n: z\n"},
	{"a template around a field", "a: b\n{{- if .x }}password: CANARY{{ end }}\n{{ $password := \"CANARY\" }}\nc: d\n"},
	{"a list over lines in TOML", "a = \"b\"\napi_tokens = [\n  \"x1\",\n  \"CANARY\",\n]\n"},
	{"an assignment in a value of YAML", "a: b\nc: run with password=CANARY or die\nd: [--token, CANARY]\n"},
	{"a file in a file", "a: b\nfiles:\n- content: |\n    [client]\n    password=CANARY\n  x: \"y: z\\npassword: CANARY\\n\"\n"},
	{"two documents, the second one a list", "a: b\n---\n- password: CANARY\n...\n---\ntoken: CANARY\n"},
	{"a folded value with a comment's character", "a: b\npassword: >-\n  x\n  #CANARY\nc: d\n"},
	{"letters before it", "größe: ä\nпароль: x\n\"ключ\": {password: CANARY, \"ä\": b}\n"},
	{"fields on one line", "user: x, password: CANARY, host: /y\nsize: 3, token: CANARY\n"},
	{"a command in a list", "a: b\ncommand:\n- mysql\n- -u\n- root\n- -pCANARY\nb: [\"redis-cli\", \"-a\", \"CANARY\"]\n"},
	{"a variable that is sensitive", "a: b\nvars:\n- {name: x, value: CANARY, sensitive: true}\n"},
	{"an alias", "a: &x CANARY\nb: c\npassword: *x\n"},
	// URLs
	{"quotes in a URL's password", "see postgres://app:a'CANARY@db/x and postgres://app:a<CANARY@db/x"},
	{"a long URL", "postgres://app:" + strings.Repeat("a", 9<<10) + "CANARY@db/x"},
	{"a token before a colon", "https://CANARY:@h/x"},
	// base64
	{"base64 with an indentation", "YAML64 "},
	{"a key in base64 over lines in YAML", "a: b\nx: |\n  PEMLINES\nc: d\n"},
	{"base64 of bytes that are not UTF-8", "BYTES64"},
	{"base64 of UTF-16", "UTF16"},
	{"base64 in quotes", `"YAML64"`},
	{"compressed, after white space", " \nGZIP64"},
	{"compressed, in JSON", `{"x":"GZIP64"}`},
	// beside what is visible_test.go's
	{"a default of a look-up", "a: b\npassword = os.getenv(\"A\", \"CANARY\")\ntoken = getenv('A') or 'CANARY'\npass = env(\"A\").orElse(\"CANARY\")\n"},
	{"a password in SQL in lower case", "x\ncreate user a identified by \"CANARY\";\ngrant all on *.* to 'a'@'%' identified by 'CANARY';\n"},
	{"a data source's name with a reference and a password", "A=b\nDB_DSN=$(DB_USER):CANARY@tcp(db:3306)/shop\n"},
	{"a password at the start of an index", "a: b\npassword = x.y[\"a\"]CANARY\n"},
	{"headers in a list", "a: b\nheaders:\n- content-type\n- CANARY\n"},
	{"a loop of a template before a value", "a: b\npassword:\n{{- if .Values.x }}\n  CANARY\n{{- end }}\n"},
	{"a flag in a script before a redirection", "#!/bin/sh\ntool --password CANARY 2>/dev/null\n"},
	// others
	{"a web token with white space", "x eyAiYWxnIjoiSFMyNTYifQ.eyAic3ViIjoiYWJjIn0.CANARY"},
	{"RFC 4716's header", "a\n---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nCANARY\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n"},
	{".netrc with the password first", "machine h password CANARY login u\n"},
	{"SQL over lines", "CREATE USER a IDENTIFIED\n  BY  'CANARY';\nALTER USER a PASSWORD\n'CANARY';\nSET PASSWORD FOR 'a'@'%' = 'CANARY';\n"},
	{"a map as Go prints it", "invalid value: map[db:map[user:x password:CANARY]]"},
	{"a script after a byte order mark or an empty line", "\ufeff\n#!/bin/sh\nmysql -uroot -pCANARY\n"},
	{"cloud-init's template", "## template: jinja\n#cloud-config\nruncmd:\n- mysql -uroot -pCANARY\n"},
	{"commands without a space between", "#!/bin/sh\ntrue;mysql -pCANARY\ntrue&&mysql -pCANARY\nX=$(mysql -pCANARY)\nx|mysql\t-pCANARY\n"},
	{"commands over lines", "#!/bin/sh\nmysql -u root \\\n  -pCANARY \\\n  db\ncurl \\\n -u \\\n 'app:a CANARY' https://x\n"},
	{"a here-document of cat", "#!/bin/sh\nDB_PASSWORD=$(cat <<EOF\nCANARY\nEOF\n)\n"},
	{"fish", "#!/usr/bin/fish\nset -x DB_PASSWORD CANARY\n"},
}

// TestSpellings looks for the canary in each spelling, in a field, an annotation, a status, and a file.
func TestSpellings(t *testing.T) {
	r := redactor(t)
	for _, tc := range spellings {
		t.Run(tc.why, func(t *testing.T) {
			c := &canaries{}
			text := spell(c, tc.text)
			for resource, object := range map[string]map[string]any{
				"widgets.example.com": {"spec": map[string]any{"a": text}, "status": map[string]any{"message": text}},
				"services":            {"metadata": map[string]any{"annotations": map[string]any{"example.com/a": text}}},
				"configmaps":          {"data": map[string]any{"a": text}},
			} {
				if len(c.leaked(encode(t, object))) == 0 {
					t.Fatal("the text has no canary")
				}
				c.check(t, r, resource, encode(t, object))
				if _, err := r.Apply(resource, object); err != nil {
					t.Fatal(err)
				}
				if got := encode(t, object); len(c.leaked(got)) > 0 {
					t.Errorf("%s: leaked %q in\n%s", resource, c.leaked(got), got)
				}
			}
		})
	}
}

// spell replaces the canary and its encodings.
func spell(c *canaries, text string) string {
	s := c.text()
	code := base64.StdEncoding.EncodeToString
	yaml := "a: b\npassword: " + s + "\n"
	var wide []byte
	for _, b := range []byte(yaml) {
		wide = append(wide, b, 0)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(yaml)); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	pem := code([]byte("-----BEGIN RSA PRIVATE KEY-----\n" + s + s + s + "\n-----END RSA PRIVATE KEY-----\n"))
	lines := pem[:60] + "\n  " + pem[60:]
	c.all = append(c.all, code(wide), code(zipped.Bytes()), pem[60:])
	return strings.NewReplacer("YAML64 ", code([]byte(yaml))[:20]+"\n  "+code([]byte(yaml))[20:], "YAML64", code([]byte(yaml)), "BYTES64", code([]byte(yaml+"\xff\xfe")),
		"UTF16", code(wide), "GZIP64", code(zipped.Bytes()), "PEMLINES", lines, "CANARY", s).Replace(text)
}

// objectSpellings are such ways in objects, as shapes.
var objectSpellings = []struct{ why, resource, object string }{
	{"a Secret in a policy", "clusterpolicies.kyverno.io", `{"spec":{"generate":{"kind":"Secret","data":{"kind":"Secret","metadata":{"name":"a"},"data":{"a":"CANARY"}}}}}`},
	{"a Secret's data in a policy, without its kind", "clusterpolicies.kyverno.io", `{"spec":{"generate":{"kind":"Secret","data":{"metadata":{"name":"a"},"data":{"a":"CANARY"}}}}}`},
	{"a ConfigMap in a policy", "clusterpolicies.kyverno.io", `{"spec":{"generate":{"kind":"ConfigMap","data":{"metadata":{"name":"a"},"data":{"password":"CANARY"}}}}}`},
	{"secrets by innocent names", "widgets.example.com", `{"spec":{"secrets":{"db":"a-CANARY"}},"status":{"secret":"CANARY"},"summary":{"pass":"CANARY"}}`},
	{"a command, and its arguments apart", "pods", `{"command":["redis-cli"],"args":["-a","CANARY"]}`},
	{"the arguments first", "pods", `{"args":["-pCANARY"],"command":["mysql"]}`},
	{"a program that runs another one", "pods", `{"command":["env","A=b","timeout","5","mysql","-pCANARY"]}`},
	{"a program that runs its arguments", "pods", `{"command":["/sbin/tini","--"],"args":["mysql","-pCANARY"]}`},
	{"a key beside a reference that is empty", "widgets.example.com", `{"spec":{"existingSecret":"","secretKey":"CANARY"}}`},
	{"a key beside a reference", "widgets.example.com", `{"spec":{"secretName":"db","sshKey":"CANARY"}}`},
	{"lists in lists", "widgets.example.com", `{"spec":{"tokens":[["CANARY"]],"password":[["CANARY"]]}}`},
	{"a list of client secrets", "widgets.example.com", `{"spec":{"clientSecrets":["CANARY"]}}`},
	{"a list of hooks", "widgets.example.com", `{"spec":{"webhookUrls":["https://h/x/CANARY"]}}`},
	{"objects in a list", "widgets.example.com", `{"spec":{"credentials":[{"value":"CANARY"}],"tokens":[{"name":"a","value":"CANARY"}]}}`},
	{"numbers", "widgets.example.com", `{"spec":{"a":{"password":[90210]},"b":{"password":{"value":90210}}}}`},
	{"a Secret's fields of the wrong shape", "secrets", `{"kind":"Secret","type":{"a":"CANARY"},"metadata":{"annotations":{"cert-manager.io/x":{"a":"CANARY"}}}}`},
	{"items of the wrong shape", "widgets.example.com", `{"spec":{"a":{"kind":"SecretList","items":{"b":{"data":{"a":"CANARY"}}}},"c":{"kind":"SecretList","items":[[{"data":{"a":"CANARY"}}]]}}}`},
	{"a percent sign first", "widgets.example.com", `{"spec":{"password":"%CANARY"}}`},
	{"binary data in UTF-16", "configmaps", `{"binaryData":{"a":"UTF16"}}`},
	{"managed fields with a text", "widgets.example.com", `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"v:\"a: b\\npassword: CANARY\\n\"":{}}}}]},"spec":{"a":["a: b\npassword: CANARY\n"]}}`},
	{"managed fields with JSON", "widgets.example.com", `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"v:\"{\\\"password\\\":\\\"CANARY\\\"}\"":{}}}}]},"spec":{"a":["{\"password\":\"CANARY\"}"]}}`},
}

func TestObjectSpellings(t *testing.T) {
	r := redactor(t)
	for _, tc := range objectSpellings {
		t.Run(tc.why, func(t *testing.T) {
			c := &canaries{}
			raw := spell(c, tc.object)
			if strings.Contains(raw, "90210") {
				c.all = []string{"90210"}
			}
			obj := decode(t, raw)
			if len(c.leaked(raw)) == 0 || !json.Valid([]byte(raw)) {
				t.Fatal("the object has no canary")
			}
			c.check(t, r, tc.resource, raw)
			if _, err := r.Apply(tc.resource, obj); err != nil {
				t.Fatal(err)
			}
			if got := encode(t, obj); len(c.leaked(got)) > 0 {
				t.Errorf("leaked %q in\n%s", c.leaked(got), got)
			}
		})
	}
}
