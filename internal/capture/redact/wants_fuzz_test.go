package redact

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// spares checks the decision for an object's text: if Wants is false, the text must be valid JSON, and Apply must find
// nothing to redact in it. The oracle decodes the very text, by encoding/json. spares reports whether Wants is false.
func spares(t *testing.T, r *Redactor, resource string, raw []byte) bool {
	t.Helper()
	if r.Wants(resource, raw) {
		return false
	}
	if !json.Valid(raw) {
		t.Fatalf("Wants is false for invalid JSON: %q", raw)
	}
	var obj map[string]any
	if json.Unmarshal(raw, &obj) != nil || obj == nil {
		return true // not an object, or a number that no decoder can hold
	}
	hid, err := r.Apply(resource, obj)
	if err != nil {
		t.Fatal(err)
	}
	if hid {
		t.Fatalf("Wants is false for\n%s\nbut Apply made\n%s", raw, encode(t, obj))
	}
	return true
}

// TestWantsOfAnySpelling generates random objects and writes their text in random ways, also with duplicate fields.
func TestWantsOfAnySpelling(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := speller{objects{rand.New(rand.NewPCG(seed, 2))}}
	r := redactor(t)
	spared := 0
	for range 10000 {
		var b strings.Builder
		g.write(&b, g.object(5))
		if spares(t, r, g.pick("pods", "nodes", "widgets.example.com", crds), []byte(b.String())) {
			spared++
		}
	}
	if spared < 250 {
		t.Errorf("only %d of 10000 objects were spared", spared)
	}
}

// FuzzWants checks the decision for arbitrary texts.
func FuzzWants(f *testing.F) {
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
		spares(t, r, [...]string{"pods", "nodes", "widgets.example.com", crds}[resource%4], raw)
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
