package wire

import "testing"

// TestSum compares the sums of one version in a list and in a watch, and the sums of different versions.
func TestSum(t *testing.T) {
	watched := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"kind":"x"}}`
	for _, c := range []struct {
		name, raw string
		same      bool
	}{
		{"apiVersion first", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"kind":"x"}}`, true},
		{"an item of a list of a built-in kind has no type", `{"metadata":{"name":"a"},"spec":{"kind":"x"}}`, true},
		{"another version of the API", `{"kind":"Pod","apiVersion":"v2","metadata":{"name":"a"},"spec":{"kind":"x"}}`, true},
		{"another value", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"kind":"y"}}`, false},
		{"a new default", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"kind":"x","size":1}}`, false},
		{"nothing", ``, false},
	} {
		if same := Sum(JSON, []byte(c.raw)) == Sum(JSON, []byte(watched)); same != c.same {
			t.Errorf("%s: same sum: %t, want %t", c.name, same, c.same)
		}
	}
	custom := `{"apiVersion":"x/v1","data":1,"kind":"W","metadata":{"name":"a"}}`
	if got := string(Content(JSON, []byte(custom))); got != `"data":1,"kind":"W","metadata":{"name":"a"}}` {
		t.Errorf("content of a custom resource: %s", got)
	}
	for _, raw := range []string{"", "{", "{}", `{"kind":"`, `{"kind":"x"}`, `{"apiVersion":"v1","kind":"x"}`, "null"} {
		if Sum(JSON, []byte(raw)) == 0 {
			t.Errorf("the sum of %q is 0", raw)
		}
	}
	if Sum(Protobuf, []byte(custom)) == Sum(JSON, []byte(custom)) {
		t.Error("protobuf is summed without its first bytes")
	}
}
