package capture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

// TestHidden checks the shortcuts: an object that is left unchanged has nothing to hide, in any reading of it.
func TestHidden(t *testing.T) {
	r := hiding(t, "data.greeting")
	for _, tc := range []struct {
		why, resource, raw string
		same               bool // the bytes are left unchanged
	}{
		{"nothing that calls for a look", "pods", `{"spec":{"a":1}}`, true},
		{"looked at, and nothing found", "pods", `{"spec":{"z":1,"a":"x"},"env":[{"name":"LOG","value":"x"}]}`, true},
		{"a variable of a credential", "pods", `{"env":[{"name":"DB_PASSWORD","value":"CANARY"}]}`, false},
		{"a Secret", "secrets", `{"kind":"Secret","data":{"a":"CANARY"}}`, false},
		{"a user's rule", "configmaps", `{"data":{"greeting":"CANARY"}}`, false},
		{"a user's rule that finds nothing", "configmaps", `{"data":{"other":"x"}}`, true},
		{"managed fields stay as they are", "pods", `{"env":[{"name":"DB_PASSWORD","value":"CANARY"}],"metadata":{"managedFields":[{"fieldsV1":{"f:b":{},"f:a":{}},"manager":"m"}]}}`, false},
		{"a value that a second one of its name covers", "pods", `{"env":[{"name":"DB_PASSWORD","value":"CANARY","value":"$(A)"}]}`, false},
		{"the same, far away", "pods", `{"spec":{"args":["--password","CANARY"]},"spec":{"args":[]}}`, false},
		{"the same, written differently", "pods", `{"env":[{"name":"DB_PASSWORD","value":"CANARY","valu\u0065":"$(A)"}]}`, false},
		{"the same, beside what the quick decoder does not read", "pods", `{"env":[{"name":"DB_PASSWORD","value":"CANARY","value":"$(A)"}],"a":1.5}`, false},
		{"the element of a set, in managed fields", "widgets.example.com", `{"spec":{"urls":["https://u:CANARY@h"]},"metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"f:urls":{"v:\"https://u:CANARY@h\"":{}}}}}]}}`, false},
		{"the same, where it is escaped", "widgets.example.com", `{"spec":{"urls":["https://u:CANARY&@h"]},"metadata":{"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"f:urls":{"v:\"https://u:CANARY\\u0026@h\"":{}}}}}]}}`, false},
		{"a set that a user's rule hides, in managed fields", "configmaps", `{"data":{"greeting":["CANARY"]},"metadata":{"managedFields":[{"fieldsV1":{"f:data":{"f:greeting":{"v:\"CANARY\"":{}}}}}]}}`, false},
		{"merge keys, in managed fields", "pods", `{"spec":{"list":[{"name":"DB_PASSWORD","value":"CANARY"}]},"metadata":{"managedFields":[{"fieldsV1":{"f:spec":{"f:list":{"k:{\"name\":\"DB_PASSWORD\",\"value\":\"CANARY\"}":{}}}}}]}}`, false},
		{"a number, in managed fields", "configmaps", `{"data":{"greeting":{"CODE":12345}},"metadata":{"managedFields":[{"fieldsV1":{"f:data":{"f:x":{"k:{\"CANARY\":12345}":{}}}}}]}}`, false},
		{"broken managed fields", "configmaps", `{"data":{"greeting":"CANARY"},"metadata":{"managedFields":[{"fieldsV1":{"v:CANARY":{}}}]}}`, false},
		{"managed fields that name an element differently", "pods", `{"env":[{"name":"DB_PASSWORD","value":"pw"}],"metadata":{"managedFields":[{"fieldsV1":{"f:c":{"k:{\"name\":\"pw-app\"}":{}}}}]}}`, false},
		{"a credential in another writer's escapes", "controllerrevisions.apps", `{"data":{"env":[{"name":"A","value":"postgres:\/\/u:CANARY@db\/x"}]}}`, false},
		{"the same, with characters by number", "controllerrevisions.apps", `{"data":{"x":"p\u006fstgres:\u002f/u:CANARY@db/x"}}`, false},
	} {
		raw := []byte(tc.raw)
		got, err := r.Redact(tc.resource, raw)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		if strings.Contains(string(got), "CANARY") {
			t.Errorf("%s: left %s", tc.why, got)
		}
		if string(got) == tc.raw != tc.same {
			t.Errorf("%s: made %s of %s", tc.why, got, raw)
		}
		// The reference: decode, redact, encode.
		var obj, out map[string]any
		if err := json.Unmarshal(raw, &obj); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(tc.resource, obj); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &out); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(obj, out); d != "" {
			t.Errorf("%s: (-as decoded +as returned)\n%s", tc.why, d)
		}
	}
	for _, raw := range []string{`null`, `[]`, `{`, `{"env":[}`, ``, `{"env":1}x`} {
		if got, err := r.Redact("secrets", []byte(raw)); err == nil {
			t.Errorf("%s passed as %s", raw, got)
		}
	}
}
