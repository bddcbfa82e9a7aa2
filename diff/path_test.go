package diff

import (
	"math"
	"strings"
	"testing"
)

func TestPathText(t *testing.T) {
	f := func(name string) Elem { return Elem{Kind: Field, Name: name} }
	keyed := func(kv ...any) Elem {
		e := Elem{Kind: Keyed}
		for i := 0; i < len(kv); i += 2 {
			e.Keys = append(e.Keys, KeyValue{kv[i].(string), kv[i+1]})
		}
		return e
	}
	set := func(v any) Elem { return Elem{Kind: Value, Value: v} }
	for _, tc := range []struct {
		why  string
		path Path
		text string
	}{
		{"the object itself", nil, ""},
		{"plain", Path{f("spec"), f("replicas")}, "spec.replicas"},
		{"a digit is a key after a dot", Path{f("data"), f("1")}, "data.1"},
		{"dots and slashes need quotes", Path{f("metadata"), f("labels"), f("a.b/c")}, `metadata.labels["a.b/c"]`},
		{"quotes first", Path{f("a.b"), f("c")}, `["a.b"].c`},
		{"the empty key", Path{f("data"), f("")}, `data[""]`},
		{"a key that is no wildcard", Path{f("data"), f("*")}, `data["*"]`},
		{"no escape sequence gets out", Path{f("\x1b[31m\u202e\n")}, `["\x1b[31m\u202e\n"]`},
		{"merge key", Path{f("containers"), keyed("name", "app"), f("image")}, "containers[name=app].image"},
		{"two merge keys", Path{f("ports"), keyed("port", int64(80), "protocol", "TCP")}, "ports[port=80,protocol=TCP]"},
		{"a string that looks like a number", Path{keyed("name", "80")}, `[name="80"]`},
		{"a string that looks like a boolean", Path{keyed("name", "true")}, `[name="true"]`},
		{"a leading zero makes it a string", Path{keyed("name", "08")}, `[name=08]`},
		{"separators in a value", Path{keyed("name", `a,b]="`)}, `[name="a,b]=\""]`},
		{"an image as value", Path{keyed("name", "k8s.io/app:1.4@x")}, "[name=k8s.io/app:1.4@x]"},
		{"a strange key name", Path{keyed("a=b", "x")}, `["a=b"=x]`},
		{"other scalars", Path{keyed("a", true, "b", nil, "c", 1.5)}, "[a=true,b=null,c=1.5]"},
		{"index", Path{f("steps"), {Kind: Index, Index: 3}, f("run")}, "steps[3].run"},
		{"set", Path{f("finalizers"), set("kubernetes.io/pvc")}, "finalizers[=kubernetes.io/pvc]"},
		{"set of numbers", Path{set(int64(-3))}, "[=-3]"},
		{"set with the empty string", Path{set("")}, `[=""]`},
	} {
		if got := tc.path.String(); got != tc.text {
			t.Errorf("%s: String() = %s, want %s", tc.why, got, tc.text)
		}
		got, err := ParsePath(tc.text)
		if err != nil || !got.Equal(tc.path) {
			t.Errorf("%s: ParsePath(%s) = %#v, %v", tc.why, tc.text, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ text, path, pattern string }{
		{"spec..x", "column 6: empty name", "column 6: empty name"},
		{"spec.", "column 6: empty name", "column 6: empty name"},
		{".", "column 2: empty name", "column 2: empty name"},
		{"ä..x", "column 3: empty name", "column 3: empty name"}, // characters, not bytes
		{"spec.x=3", "column 7: unexpected '='", "column 7: unexpected '='"},
		{"spec,status", "column 5: unexpected ','", "column 5: unexpected ','"},
		{"a b", "column 2: unexpected ' '", "column 2: unexpected ' '"},
		{"a[name=x]b", "column 10: want . or [ after ]", "column 10: want . or [ after ]"},
		{"a[", "column 3: want an index", "column 3: want an index"},
		{"a[]", "column 3: want an index", "column 3: want an index"},
		{"a[-1]", "column 3: want an index", "column 3: want an index"},
		{"a[x]", "column 3: want an index", "column 3: want an index"},
		{"a[99999999999]", "column 3: want an index", "column 3: want an index"},
		{"a[3", "column 4: want ]", "column 4: want ]"},
		{"a[b=]", "column 5: empty value", "column 5: empty value"},
		{"a[=]", "column 4: empty value", "column 4: empty value"},
		{"a[b=c,]", "column 7: want key=value", "column 7: want key=value"},
		{"a[b=c,b=d]", `column 8: "b" twice`, `column 8: "b" twice`},
		{"a[b=c d]", "column 6: unexpected ' '", "column 6: unexpected ' '"},
		{`a["b]`, "column 3: unterminated", "column 3: unterminated"},
		{`a["b"`, "column 6: want ]", "column 6: want ]"},
		{"data.*", "column 6: a wildcard where one path is wanted", ""},
		{"a[*]", "column 3: a wildcard where one path is wanted", ""},
		{"**", "column 1: a wildcard where one path is wanted", ""},
		{"a[name=x*]", "column 9: a wildcard where one path is wanted", ""},
		{"", "", "column 1: empty path"},
		{strings.Repeat("a.", 63) + "a", "", "column 1: more than 63 steps"},
	} {
		_, err := ParsePath(tc.text)
		checkParseError(t, "path", tc.text, err, tc.path)
		_, err = ParsePattern(tc.text)
		checkParseError(t, "pattern", tc.text, err, tc.pattern)
	}
}

func checkParseError(t *testing.T, what, text string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s %q: %v", what, text, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), `": `+want)):
		t.Errorf("%s %q: got %v, want %s", what, text, err, want)
	}
}

// FuzzParsePath: a path prints to a text that parses to an equal path, and is a pattern that covers it.
func FuzzParsePath(f *testing.F) {
	for _, s := range []string{"spec.replicas", `metadata.labels["a.b/c"]`, "a[name=x,port=80].b", `[="x"]`, "a[3]", `["*"]["**"]`, ".a", "[a=1e3]", "[=-0.0]", `["\xff"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		checkRoundTrip(t, p)
	})
}

// FuzzPathString starts with keys and values that objects may have.
func FuzzPathString(f *testing.F) {
	f.Add("a.b", "name", "x", int64(3), 1.5)
	f.Add("", "*", "**", int64(-1), 1e300)
	f.Add("\x00\u202e", `"`, "1e999", int64(0), math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, field, key, s string, n int64, x float64) {
		if x != x || x-x != 0 {
			return
		}
		checkRoundTrip(t, Path{
			{Kind: Field, Name: field},
			{Kind: Keyed, Keys: []KeyValue{{key + "k", s}, {"n", n}, {"x", x}}},
			{Kind: Value, Value: s}, {Kind: Value, Value: x},
			{Kind: Index, Index: int(n & 0x7fffffff)},
			{Kind: Field, Name: s},
		})
	})
}

func checkRoundTrip(t *testing.T, p Path) {
	t.Helper()
	text := p.String()
	q, err := ParsePath(text)
	if err != nil || !q.Equal(p) {
		t.Fatalf("%#v prints as %s, which parses as %#v, %v", p, text, q, err)
	}
	if !printable(text) {
		t.Fatalf("%q is not printable", text)
	}
	if len(p) == 0 || len(p) > maxSteps {
		return
	}
	pattern, err := ParsePattern(text)
	if err != nil || !pattern.Covers(p) {
		t.Fatalf("as a pattern, %s does not cover itself: %v", text, err)
	}
}
