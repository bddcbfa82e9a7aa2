package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// agrees checks that an object's text is redacted as the decoded object is, and reports whether anything is hidden.
// The oracle decodes the very text, by encoding/json. Of fields that occur twice, it has only the last.
func agrees(t *testing.T, r *Redactor, resource string, raw []byte) (hid bool) {
	t.Helper()
	var obj map[string]any
	valid := json.Unmarshal(raw, &obj) == nil && obj != nil
	got, err := r.Redact(resource, raw)
	if !valid {
		if err == nil && !json.Valid(raw) {
			t.Fatalf("no error for %q", raw)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%v for %q", err, raw)
	}
	hid, err = r.Apply(resource, obj)
	if err != nil {
		t.Fatal(err)
	}
	if hid && string(got) == string(raw) {
		t.Fatalf("left\n%s\nbut Apply made\n%s", raw, encode(t, obj))
	}
	var out map[string]any
	if err := json.Unmarshal(got, &out); err != nil {
		t.Fatalf("made %s of %s: %v", got, raw, err)
	}
	if twice(raw) {
		return hid
	}
	if d := cmp.Diff(obj, out); d != "" {
		t.Fatalf("(-decoded +text) of %s\n%s", raw, d)
	}
	return hid
}

// twice reports whether a field occurs twice in an object of a JSON text, or the text is not JSON.
func twice(raw []byte) bool {
	if !json.Valid(raw) {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	var value func() bool
	value = func() bool {
		t, err := d.Token()
		if err != nil {
			return true
		}
		open, ok := t.(json.Delim)
		if !ok {
			return false
		}
		seen := map[json.Token]bool{}
		for d.More() {
			if open == '{' {
				field, err := d.Token()
				if err != nil || seen[field] {
					return true
				}
				seen[field] = true
			}
			if value() {
				return true
			}
		}
		_, err = d.Token() // the end
		return err != nil
	}
	return value()
}

// TestTextAndObjectAgree generates random objects and writes their text in random ways, also with duplicate fields.
func TestTextAndObjectAgree(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := speller{objects{rand.New(rand.NewPCG(seed, 2))}}
	r := redactor(t)
	hidden, spared := 0, 0
	for range 10000 / slower {
		var b strings.Builder
		g.write(&b, g.object(5))
		if agrees(t, r, g.pick("pods", "nodes", "widgets.example.com", crds), []byte(b.String())) {
			hidden++
		} else {
			spared++
		}
	}
	if hidden < 250 || spared < 250 {
		t.Errorf("%d objects had something to hide, %d were spared: the test says little", hidden, spared)
	}
}

// FuzzRedact checks the same for arbitrary texts.
func FuzzRedact(f *testing.F) {
	g := speller{objects{rand.New(rand.NewPCG(1, 2))}}
	for range 200 {
		var b strings.Builder
		g.write(&b, g.object(4))
		f.Add(uint8(g.IntN(4)), []byte(b.String()))
	}
	for _, raw := range benchObjects() {
		f.Add(uint8(0), []byte(raw))
	}
	for _, raw := range []string{
		`{"a":tru}`, `{"a":01}`, `{"a":1e999}`, "{\"a\":\"\n\"}", "\v{}", "{}\x00", `{"a":"\q"}`, `{"env":[{"name":"T\u004fKEN","value":"x"}]}`, `{"a":{"kind":"\u0053ecret"}}`,
		`{"metadata":{"managedFields":[{"a":}]}}`, `{"metadata":{"ownerReferences":{]}}`, `{"a":"\ud83d\ude00 \ud83d","b":"` + "\xff" + `"}`, `{"password":"a","password":null}`, `{"password":null,"password":"a"}`,
		`{"metadata":{"annotations":{"a":"{\"apiVersion\":\"v1\",\"kind\":\"X\"}"}}}`, `[1]`, `null`, `"password=x1"`,
	} {
		f.Add(uint8(0), []byte(raw))
	}
	r := redactor(f)
	f.Fuzz(func(t *testing.T, resource uint8, raw []byte) {
		agrees(t, r, [...]string{"pods", "nodes", "widgets.example.com", crds}[resource%4], raw)
	})
}

// speller writes JSON in unusual ways: with white space, escapes, duplicate fields, and numbers of every form.
type speller struct{ objects }

func (g speller) write(b *strings.Builder, v any) {
	g.space(b)
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		first := true
		for k, child := range v {
			for range 1 + g.IntN(20)/19 {
				if !first {
					b.WriteByte(',')
				}
				first = false
				g.space(b)
				g.quote(b, k)
				g.space(b)
				b.WriteByte(':')
				g.write(b, child)
				child = g.value(1)
			}
		}
		g.space(b)
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, child := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			g.write(b, child)
		}
		g.space(b)
		b.WriteByte(']')
	case string:
		g.quote(b, v)
	case float64:
		b.WriteString(g.pick("0", "-0", "7", "-1.5", "1e3", "2E-7", "12345678901234567890", "0.1e+2"))
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
	g.space(b)
}

func (g speller) space(b *strings.Builder) {
	if g.IntN(8) == 0 {
		b.WriteString(g.pick(" ", "\n", "\t", "\r\n", "  "))
	}
}

func (g speller) quote(b *strings.Builder, s string) {
	if g.IntN(3) > 0 {
		text, _ := json.Marshal(s)
		b.Write(text)
		return
	}
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '/' && g.IntN(2) == 0:
			b.WriteString(`\/`)
		case r == '\n' && g.IntN(2) == 0:
			b.WriteString(`\n`)
		case r < ' ', r == '"', r == '\\', r < 0x10000 && g.IntN(10) == 0:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
