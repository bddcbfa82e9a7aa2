package redact

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/rules"
)

// hostile are objects that anyone who may write a custom resource can create to cause high costs.
func hostile() map[string]map[string]any {
	nested := func(depth int, inner any) any {
		v := inner
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	leaves := func(n int, key string) map[string]any {
		m := map[string]any{}
		for i := range n {
			m[fmt.Sprintf("%s%d", key, i)] = fmt.Sprintf("v%d", i)
		}
		return m
	}
	levels := any("x")
	for i := range 5_000 {
		levels = map[string]any{"password": fmt.Sprintf("p%d", i), "n": levels}
	}
	lists := any([]any{"TOKEN=x1"})
	for range 2_000 {
		lists = []any{lists, "TOKEN=x1"}
	}
	var pairs []any
	for i := range 5_000 {
		pairs = append(pairs, map[string]any{"name": fmt.Sprintf("TOKEN_%d", i), "value": fmt.Sprintf("v%d", i)})
	}
	longKeys := any(leaves(2_000, "password"))
	for range 5 {
		longKeys = map[string]any{strings.Repeat("k", 100_000): longKeys}
	}
	inJSON := any("x")
	for range 14 {
		text, err := json.Marshal(map[string]any{"password": "x1", "n": inJSON})
		if err != nil {
			panic(err)
		}
		inJSON = string(text)
	}
	trees := make([]any, 50)
	for i := range trees {
		fields := map[string]any{}
		for j := range 100 {
			fields[fmt.Sprintf(`k:{"name":"TOKEN_%d"}`, i*100+j)] = map[string]any{}
		}
		trees[i] = map[string]any{"manager": fmt.Sprint("m", i), "fieldsV1": fields}
	}
	objects := map[string]map[string]any{
		"3,000 levels and 5,000 leaves":     {"spec": nested(3_000, leaves(5_000, "password"))},
		"10,000 levels":                     {"spec": nested(9_998, map[string]any{"password": "x1"})},
		"5,000 levels and a secret in each": {"spec": levels},
		"20,000 leaves":                     {"spec": leaves(20_000, "token")},
		"lists in lists":                    {"spec": lists},
		"many pairs":                        {"spec": pairs},
		"long keys above many secrets":      {"spec": longKeys},
		"long keys that are names":          {"spec": leaves(200, strings.Repeat("Password_", 500))},
		"a secret that is large":            {"kind": "Secret", "data": leaves(10_000, "k")},
		"JSON in JSON":                      {"spec": map[string]any{"a": inJSON}},
		"many managers of many secrets":     {"metadata": map[string]any{"managedFields": trees}, "spec": pairs},
		"a file of passwords":               {"spec": map[string]any{"a": strings.Repeat("password: x1\n", 10_000)}},
		"a file of names without values":    {"spec": map[string]any{"a": strings.Repeat("password:\n ", 10_000) + "\npassword: x1"}},
		"a file of quotes that do not end":  {"spec": map[string]any{"a": strings.Repeat("a: b\npassword='\n", 1) + strings.Repeat("token=\\\"", 10_000)}},
		"a command line of flags":           {"spec": map[string]any{"args": []any{strings.Repeat("mysql -px1 --token ", 5_000)}}},
	}
	for why, text := range map[string][3]string{ // what is repeated, and what is before and after it
		"YAML's anchors":                   {"- &a x\n", "password: x1\nlist:\n"},
		"YAML's tags":                      {"- !t x\n", "password: x1\nlist:\n"},
		"YAML in one long line":            {"a, ", "password: x1\nlist: [", "]\n"},
		"YAML's fields in one long line":   {"{a=b: c}, ", "password: x1\nlist: [", "]\n"},
		"a long block in YAML":             {"  a\n", "a: b\nblock: |\n  password=x1\n"},
		"XML's texts between elements":     {"a<b/>", "<a>\n<password>x1</password>", "</a>"},
		"XML's attributes":                 {`b="" `, "<a>\n<password>x1</password><b ", "/></a>"},
		"a key that comes often":           {`"key":"api-key",`, `{"password":"x1",`, `"value":"word"}`},
		"variables in one long line":       {"$password=", "password=x1\n"},
		"words that may be a credential's": {"license=", "password=x1\n", " x"},
	} {
		objects[why] = map[string]any{"spec": map[string]any{"x": text[1] + strings.Repeat(text[0], (1<<17)/len(text[0])) + text[2]}}
	}
	return objects
}

// maxLooks is how many bytes redaction may look at for each byte of an object: where names are dense, each may look at
// a bounded part of what is behind it.
const maxLooks = 700

// looks returns how many bytes redaction looks at.
func looks(t *testing.T, r *Redactor, resource string, obj map[string]any) (n int, hid bool) {
	t.Helper()
	looked = &n
	defer func() { looked = nil }()
	hid, err := r.Apply(resource, obj)
	if err != nil {
		t.Fatal(err)
	}
	return n, hid
}

// TestCost checks that redaction costs at most a multiple of the object's size. Values under rules are selected
// a second time, at every depth.
func TestCost(t *testing.T) {
	const fixed = 1 << 20
	rule := rules.Rule{Resources: []string{"widgets.example.com"}, Paths: []string{"**.password*", "spec.**.n.x"}}
	for _, r := range []*Redactor{redactor(t), redactor(t, rule)} {
		for why, obj := range hostile() {
			size := len(canonical(obj))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, hid := looks(t, r, "widgets.example.com", obj)
			runtime.ReadMemStats(&after)
			if !hid {
				t.Errorf("%s: nothing is hidden", why)
			}
			spent := after.TotalAlloc - before.TotalAlloc
			if spent > uint64(perByte*size+fixed) {
				t.Errorf("%s: %d bytes took %d of memory, more than %d for each", why, size, spent, perByte)
			}
			if n > maxLooks*size {
				t.Errorf("%s: %d bytes were looked at %d times each, more than %d", why, size, n/size, maxLooks)
			}
			t.Logf("%s: %d bytes, %.1f of memory for each, %.1f looks", why, size, float64(spent)/float64(size), float64(n)/float64(size))
		}
	}
}

// TestLinear checks the search for credentials against texts made to slow it: an object may have 1.5 MiB, for which a
// quadratic search takes minutes. Four times the text may cost four times as much, and somewhat more because of the
// parts that are shorter at its end; not sixteen times.
func TestLinear(t *testing.T) {
	const size, more = 1 << 12, 4
	r := redactor(t)
	for _, piece := range []string{"=", "a=", "://", "://a:", "eyJ", "eyJaaaaa.", "LS0tLS1CRUdJTi", "-token ", "token: ", "aA", "-----BEGIN ",
		"chpasswd\n", "pgpass ", "from-literal=a=b ", "~* ", "%3a%2f%2f", ";base64,", "kind: Secret ", "key: ", " key:\n", "credentials:\n",
		"  tokens:\n x: ", "- name: token\n  x: y\n", "path: /token\n", "<name>token</name>", "password: <<A\n", "identified with ", "set $token ", "token", "curl -u ",
		`:\/\/a:`, "http://a:b'", "tokens: [", "tokens: [a,\n", "password: &a\n", "password: # a\n", "? password\n: ", "<password ", "<password><![CDATA[", "\"password\">",
		"password: a\n  b\n", "{value: x, name: token ", "password: {a: b, value: ", "\rpassword: a", "\u00a0token: ", "a=$(mysql ", "env mysql ", "password=\n", "set password for ",
		`{"a":1}`, `{"token":`, "[", `"\`, "\\n  password: ", "LS0tLS1CRUdJTi\n", "x{token=\"a\",", "user identified by ", "abcdef.", "- password:\n  - ", "YTogYgpwYXNzd29yZDogeDEK ", "{password:", "a: *a\n",
		"token:{", "webhook=/", "webhook=", "a, ", "password=$(", "token={{", "token=&", "token=\"", "token='", "$token=", "token: # ", "password: [", "token: <", "set-header token ", "x.x ",
		"password https://", "password(", "key: '", "--token ", "a:b@tcp(", "user=a:", "login=a:",
		"insert into a (password) values ('", "insert into a (password) values ((", "insert into a (", "insert into ", "password(\"$A\",\"", "password(a,", "token(\"a\",\"b\",", "if ($http_token != ",
		"hdr(token) ", "var(a.token) -m str ", "kinit <<< a ", "echo a | kinit ", "(echo a", "user a on >", "user ", "/AKIA", "/AKIA0a0a0a0a0a0a0a0a", "password: str = \"", "token := ", "{ token a; ", "{;token \"a\"",
		"password hunter2 ", "token ||= ", "secure_link_md5 ", "Token: the a. ", "nats://a@b ", "<<<"} {
		object := func(size int) map[string]any {
			text := strings.Repeat(piece, size/len(piece))
			return map[string]any{"args": []any{text, text}, text: text, "env": []any{map[string]any{"name": text, "value": text}}}
		}
		small, _ := looks(t, r, "pods", object(size))
		large, _ := looks(t, r, "pods", object(size*more))
		if large > 2*more*small || large > maxLooks*len(canonical(object(size*more))) {
			t.Errorf("a text of %q: %d looks, and %d at one %d times as long", piece, small, large, more)
		}
	}
}
