package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
)

var seeds = []string{
	`{}`, ` { "a" : [ ] } `, `null`, `nul`, `nulll`, `true`, `false`, `[true,false,null]`, `[tru]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `]`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `{"a":1}x`, `{"a":[}`, `{"a":{]}`,
	`0`, `-0`, `01`, `-`, `-01`, `1.`, `.5`, `1.5`, `1e`, `1E+5`, `1e-`, `1e5.5`, `+1`, `12345678901234567890`,
	`""`, `"a`, `"\"`, `"\\"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u00e9\n\t\"\/\b\f\r"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, "\"\n\"", "\"\xff\"", "\"é\xc3\"", `"12345678\"12345678"`, "\"1234567\x00\"",
	"\v1", "\u00a01", "\x00", ``, ` `, "\t\r\n 1 \t",
	strings.Repeat(`[`, MaxDepth) + strings.Repeat(`]`, MaxDepth), strings.Repeat(`{"a":`, MaxDepth+1) + `1` + strings.Repeat(`}`, MaxDepth+1),
}

// checkValue compares Value with encoding/json.
func checkValue(t *testing.T, raw []byte) {
	t.Helper()
	end := Value(raw, Space(raw, 0), MaxDepth)
	if got, want := end >= 0 && Space(raw, end) == len(raw), json.Valid(raw); got != want {
		t.Fatalf("%.200q: valid is %v, want %v", raw, got, want)
	}
}

// checkString compares String and Unquote with encoding/json.
func checkString(t *testing.T, raw []byte) {
	t.Helper()
	if len(raw) == 0 || raw[0] != '"' {
		return
	}
	var want string
	err := json.Unmarshal(raw, &want)
	end, form := String(raw, 1)
	if ok := form != Invalid && Space(raw, end+1) == len(raw); ok != (err == nil) {
		t.Fatalf("%.200q: form %d up to %d, want %v", raw, form, end, err)
	}
	if err != nil {
		return
	}
	text := raw[1:end]
	if got := string(Unquote(nil, text)); got != want {
		t.Fatalf("%.200q is %q, want %q", raw, got, want)
	}
	wantForm := ASCII
	if strings.ContainsFunc(string(text), func(r rune) bool { return r >= 0x80 }) {
		wantForm = Plain
	}
	if strings.Contains(string(text), `\`) {
		wantForm = Escaped
	}
	if form != wantForm {
		t.Errorf("%.200q has form %d, want %d", raw, form, wantForm)
	}
}

func TestValue(t *testing.T) {
	for _, raw := range seeds {
		for cut := range min(len(raw), 200) {
			checkValue(t, []byte(raw[:cut]))
			checkString(t, []byte(raw[:cut]))
		}
		checkValue(t, []byte(raw))
		checkString(t, []byte(raw))
	}
}

// TestEveryByte has each byte in each role: within a string, after a backslash, as a digit, and between tokens.
func TestEveryByte(t *testing.T) {
	for c := range 256 {
		b := string([]byte{byte(c)})
		for _, raw := range []string{`"` + b + `"`, `"1234567` + b + `12345678"`, `"\` + b + `"`, `"\u` + b + `041"`, `"\u004` + b + `"`, b, `[1` + b + `]`, `[` + b + `1]`, `1` + b, `{"a"` + b + `:1}`} {
			checkValue(t, []byte(raw))
			checkString(t, []byte(raw))
		}
	}
}

// TestMiddle: the functions read from any position and stop at the end of their value.
func TestMiddle(t *testing.T) {
	raw := []byte(`{"a":[1,-2.5e3],"b":"x\ny"} ,`)
	for at, want := range map[int]int{0: 27, 1: 4, 5: 15, 6: 7, 8: 14, 20: 26} {
		if end := Value(raw, at, 2); end != want {
			t.Errorf("the value at %d ends at %d, want %d", at, end, want)
		}
	}
	if end := Value(raw, 0, 1); end != -1 {
		t.Errorf("nested too deeply: %d", end)
	}
	for _, at := range []int{4, 7, 27, 28, len(raw)} {
		if end := Value(raw, at, 2); end != -1 {
			t.Errorf("no value at %d: %d", at, end)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw))
	}
	f.Fuzz(checkValue)
}

func FuzzString(f *testing.F) {
	for _, raw := range seeds[:len(seeds)-2] {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkString(t, raw)
		checkString(t, append(append([]byte{'"'}, raw...), '"'))
	})
}
