package redact

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/rules"
)

// TestAgain redacts, by other rules, an object that a Redactor has redacted: the result is as if the original
// had been redacted by those rules, as far as possible.
func TestAgain(t *testing.T) {
	const raw = `{"kind":"ConfigMap","metadata":{"name":"a","uid":"u"},"data":{"a":"1","b":"2","password":"3"}}`
	rule := func(paths ...string) rules.Rule { return rules.Rule{Resources: []string{"configmaps"}, Paths: paths} }
	apply := func(r *Redactor, again bool, obj map[string]any) map[string]any {
		var err error
		if again {
			err = r.Again(configMaps, obj)
		} else {
			_, err = r.Apply(configMaps, obj)
		}
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	few, more := redactor(t, rule("data.a")), redactor(t, rule("data.a", "data.b"))
	hidden := apply(few, false, decode(t, raw))
	if d := cmp.Diff(apply(more, false, decode(t, raw)), apply(more, true, hidden)); d != "" {
		t.Errorf("a rule more (-as it would be +got):\n%s", d)
	}
	if d := cmp.Diff(apply(few, false, decode(t, raw)), apply(few, true, apply(few, false, decode(t, raw)))); d != "" {
		t.Errorf("the same rules change nothing:\n%s", d)
	}
	got := apply(redactor(t), true, apply(few, false, decode(t, raw)))
	if d := cmp.Diff(apply(few, false, decode(t, raw)), got); d != "" {
		t.Errorf("a rule less: hidden values stay hidden:\n%s", d)
	}
	// A text that only looks like a marker reveals nothing, whoever wrote it.
	spoof := decode(t, `{"kind":"ConfigMap","metadata":{"uid":"u"},"data":{"a":"hidden #0123456789abcde","b":"hidden #0123456789abcdeX"}}`)
	data, _ := apply(more, true, spoof)["data"].(map[string]any)
	if data["a"] == "hidden #0123456789abcde" || data["b"] == "hidden #0123456789abcdeX" {
		t.Errorf("a text that is not a marker is left: %v", data)
	}
	if err := few.Again(configMaps, nil); err == nil {
		t.Error("no object is taken")
	}
}

// TestReveal shows values that a removed rule had hidden, if they have not changed.
func TestReveal(t *testing.T) {
	const raw = `{"kind":"ConfigMap","metadata":{"name":"a","uid":"u"},"data":{"a":"1","b":"2","password":"3"},"spec":{"deep":{"n":1.5},"list":[{"a":"1"}]}}`
	const later = `{"kind":"ConfigMap","metadata":{"name":"a","uid":"u"},"data":{"a":"1","b":"9","password":"3","c":"hidden #0123456789abcdef"},"spec":{"deep":{"n":1.5},"list":[{"a":"1"}]}}`
	rule := rules.Rule{Resources: []string{"configmaps"}, Paths: []string{"data.*", "spec.deep", "spec.list[*].a"}}
	hide := func(r *Redactor, raw string) map[string]any {
		obj := decode(t, raw)
		if _, err := r.Apply(configMaps, obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	obj := hide(redactor(t, rule), raw)
	want := hide(redactor(t, rule), raw)
	now := hide(redactor(t), later)
	redactor(t).Reveal(configMaps, obj, now)
	data, _ := want["data"].(map[string]any)
	data["a"] = "1" // b was another, the password is hidden still
	spec, _ := want["spec"].(map[string]any)
	spec["deep"] = map[string]any{"n": 1.5}
	if d := cmp.Diff(want, obj); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(hide(redactor(t), later), now); d != "" {
		t.Errorf("the later one is another:\n%s", d)
	}
	obj = hide(redactor(t, rule), raw)
	other, err := New([]byte("another key, as long as this"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other.Reveal(configMaps, obj, now)
	if d := cmp.Diff(hide(redactor(t, rule), raw), obj); d != "" {
		t.Errorf("another key proves nothing:\n%s", d)
	}
}

// TestAgainInTexts redacts every shape, and then by another key: all markers stay, in every kind of text.
func TestAgainInTexts(t *testing.T) {
	first := redactor(t)
	second, err := New([]byte("another key of the tests, long enough"), nil)
	if err != nil {
		t.Fatal(err)
	}
	again := []struct{ why, resource, object string }{
		{"comments", "configmaps", `{"data":{"app.yaml":"a: b\n# password: CANARY\nc: d # token=CANARY\npassword: x # CANARY\nl: [{password: x, a: b}]\n"}}`},
		{"comments in XML", "configmaps", `{"data":{"app.xml":"<a>\n<!-- password=CANARY --><b>c</b></a>"}}`},
		{"texts in texts", "configmaps", `{"data":{"app.yaml":"a: |\n  b: |\n    password: CANARY\n  c: d\n"}}`},
	}
	for _, tc := range slices.Concat(shapes, products, tools, units, attacks, again) {
		obj := decode(t, inJSON(canonicalForms.Replace(tc.object)))
		if _, err := first.Apply(tc.resource, obj); err != nil {
			t.Fatal(err)
		}
		before := encode(t, obj)
		if err := second.Again(tc.resource, obj); err != nil {
			t.Fatal(err)
		}
		if after := encode(t, obj); after != before {
			t.Errorf("%s: was\n%s\nis\n%s", tc.why, before, after)
		}
	}
}

// canonicalForms replace the canary in shapes by one that is always the same.
var canonicalForms = canaryForms(&canaries{})
