package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// readList returns the items as text, the metadata, and the error that ended the list.
func readList(r io.Reader) (items []string, meta ListMeta, err error) {
	l := NewList(r)
	for {
		o, err := l.Next()
		var bad *ObjectError
		switch {
		case errors.Is(err, io.EOF):
			return items, l.Meta(), nil
		case errors.As(err, &bad):
			items = append(items, "bad "+bad.Msg)
		case err != nil:
			return items, l.Meta(), err
		default:
			items = append(items, fmt.Sprintf("%s/%s %s %s %s", o.Namespace, o.Name, o.UID, o.ResourceVersion, o.Raw))
		}
	}
}

func readWatch(r io.Reader) (events []string, err error) {
	w := NewWatch(r)
	for {
		ev, err := w.Next()
		switch {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil && Unreadable(err):
			events = append(events, "bad")
		case err != nil:
			return events, err
		default:
			events = append(events, fmt.Sprintf("%s %s %s %s", ev.Type, ev.Name, ev.ResourceVersion, ev.Raw))
		}
	}
}

// kindOf names an error's type, for the tables.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut"
	case errors.Is(err, io.EOF):
		return "end"
	}
	return strings.TrimPrefix(reflect.TypeOf(err).String(), "*wire.")
}

var listCases = []struct {
	name, in string
	items    []string
	meta     ListMeta
	err      string
}{
	{"a typed list: metadata first, items without a kind",
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c"},"items":[{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}}]}`,
		[]string{`n/a u 5 {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"}}`},
		ListMeta{"7", "c"}, ""},
	{"a list of custom resources: metadata last, items typed",
		`{"apiVersion":"e.com/v1","items":[{"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"a"}}],"kind":"WList","metadata":{"resourceVersion":"7"}}`,
		[]string{`/a   {"apiVersion":"e.com/v1","kind":"W","metadata":{"name":"a"}}`}, ListMeta{"7", ""}, ""},
	{"no items", `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[]}`, nil, ListMeta{"7", ""}, ""},
	{"what Go makes of a nil slice", `{"kind":"PodList","metadata":{},"items":null}`, nil, ListMeta{}, ""},
	{"white space everywhere, as for a browser",
		" {\n\"items\" : [ {\t\"metadata\" : { \"name\" : \"a\" } }\r , {\"metadata\":{\"name\":\"b\"}} ] } \n",
		[]string{"/a   {\t\"metadata\" : { \"name\" : \"a\" } }", `/b   {"metadata":{"name":"b"}}`}, ListMeta{}, ""},
	{"escapes in keys and values", `{"\u0069tems":[{"met\u0061data":{"name":"\u00e4\"\\"}}]}`,
		[]string{`/ä"\   {"met\u0061data":{"name":"\u00e4\"\\"}}`}, ListMeta{}, ""},
	{"brackets within strings do not count", `{"items":[{"metadata":{"name":"a"},"x":"]}\"}"}]}`,
		[]string{`/a   {"metadata":{"name":"a"},"x":"]}\"}"}`}, ListMeta{}, ""},
	{"of a field that comes twice the last counts", `{"items":[{"metadata":{"name":"a","uid":"u"},"metadata":{"name":"b","name":"c"}}]}`,
		[]string{`/c   {"metadata":{"name":"a","uid":"u"},"metadata":{"name":"b","name":"c"}}`}, ListMeta{}, ""},
	{"metadata further down is not the object's", `{"items":[{"spec":{"metadata":{"name":"x"}},"metadata":{"name":"a","labels":{"name":"y"}}}]}`,
		[]string{`/a   {"spec":{"metadata":{"name":"x"}},"metadata":{"name":"a","labels":{"name":"y"}}}`}, ListMeta{}, ""},
	{"a bad item does not hide the next", `{"items":[{"metadata":{"name":5}},7,{"metadata":[]},{},{"metadata":{"name":"a"}}]}`,
		[]string{"bad a field of metadata that must be a string is none", "bad not an object", "bad metadata is not an object",
			"bad an item without metadata.name", `/a   {"metadata":{"name":"a"}}`}, ListMeta{}, ""},
	{"null is as absent", `{"items":[{"metadata":{"name":"a","uid":null}}]}`,
		[]string{`/a   {"metadata":{"name":"a","uid":null}}`}, ListMeta{}, ""},
	{"an object instead of a list", `{"kind":"Pod","metadata":{"name":"a"}}`, nil, ListMeta{}, "SyntaxError"},
	{"no object", `[]`, nil, ListMeta{}, "SyntaxError"},
	{"a page of HTML", `<html>`, nil, ListMeta{}, "SyntaxError"},
	{"nothing at all", ``, nil, ListMeta{}, "cut"},
	{"cut in an item", `{"items":[{"metadata":{"name":"a`, nil, ListMeta{}, "cut"},
	{"cut behind the items", `{"items":[]`, nil, ListMeta{}, "cut"},
	{"more behind the list", `{"items":[]}{}`, nil, ListMeta{}, "SyntaxError"},
	{"items twice", `{"items":[],"items":[]}`, nil, ListMeta{}, "SyntaxError"},
	{"items that are no array", `{"items":{}}`, nil, ListMeta{}, "SyntaxError"},
	{"a trailing comma", `{"items":[{"metadata":{"name":"a"}},]}`,
		nil, ListMeta{}, "SyntaxError"},
	{"metadata of the wrong type", `{"metadata":{"resourceVersion":7},"items":[]}`, nil, ListMeta{}, "SyntaxError"},
	{"broken literals", `{"a":tru,"items":[]}`, nil, ListMeta{}, "SyntaxError"},
	{"numbers with leading zeros", `{"a":01,"items":[]}`, nil, ListMeta{}, "SyntaxError"},
	{"a control character in a string", "{\"a\":\"\n\",\"items\":[]}", nil, ListMeta{}, "SyntaxError"},
	{"an unknown escape", `{"a":"\x","items":[]}`, nil, ListMeta{}, "SyntaxError"},
	{"all kinds of values", `{"a":[true,false,null,-0.5e+10,1E3,"\ud83d\ude00",[],{},[[{}]],{"b":{}}],"items":[]}`, nil, ListMeta{}, ""},
	{"nested too deeply to be decoded later", `{"a":` + strings.Repeat("[", maxDepth+1), nil, ListMeta{}, "SyntaxError"},
	{"as deep as allowed", `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,"items":[]}`, nil, ListMeta{}, ""},
}

func TestList(t *testing.T) {
	readers := map[string]func(string) io.Reader{
		"whole":      func(s string) io.Reader { return strings.NewReader(s) },
		"bytes":      func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"early EOF":  func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
		"half reads": func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
	}
	for _, c := range listCases {
		for how, reader := range readers {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				items, meta, err := readList(reader(c.in))
				if kindOf(err) != c.err {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				if err != nil {
					return
				}
				if diff := cmp.Diff(c.items, items); diff != "" {
					t.Errorf("items (-want +got):\n%s", diff)
				}
				if meta != c.meta {
					t.Errorf("metadata %+v, want %+v", meta, c.meta)
				}
			})
		}
	}
}

func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name, in string
		events   []string
		err      string
	}{
		{"nothing", "", nil, ""},
		{"two frames and a bookmark", `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}` + "\n" +
			`{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"6"}}}{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`,
			[]string{`ADDED a 5 {"metadata":{"name":"a","resourceVersion":"5"}}`, `DELETED a 6 {"metadata":{"name":"a","resourceVersion":"6"}}`,
				`BOOKMARK  9 {"metadata":{"resourceVersion":"9"}}`}, ""},
		{"the object before the type", `{"object":{"metadata":{"name":"a"}},"type":"MODIFIED"}`,
			[]string{`MODIFIED a  {"metadata":{"name":"a"}}`}, ""},
		{"an error is handed on as it is", `{"type":"ERROR","object":{"kind":"Status","code":410}}`,
			[]string{`ERROR   {"kind":"Status","code":410}`}, ""},
		{"garbage, then a line that can be read", `{"type":"ADDED","object":{"a":x}}` + "\n" + `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`,
			[]string{"bad", `ADDED a  {"metadata":{"name":"a"}}`}, ""},
		{"well-formed frames that are no events",
			`{"type":"ADDED","object":{"metadata":{}}}{"type":"ADDED","object":7}{"type":"WHAT","object":{}}{"type":"BOOKMARK","object":{}}{"type":"ERROR"}{}{"type":"ADDED","object":{"metadata":{"name":"a"}}}`,
			[]string{"bad", "bad", "bad", "bad", "bad", "bad", `ADDED a  {"metadata":{"name":"a"}}`}, ""},
		{"cut in a frame", `{"type":"ADDED","object":{"metadata"`, nil, "cut"},
		{"only white space behind a frame", `{"type":"ADDED","object":{"metadata":{"name":"a"}}}` + "\n \n", []string{`ADDED a  {"metadata":{"name":"a"}}`}, ""},
		{"garbage without an end", `garbage`, []string{"bad"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				events, err := readWatch(r)
				if kindOf(err) != c.err {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				if diff := cmp.Diff(c.events, events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestLargeObjects(t *testing.T) {
	frame := func(n int) string {
		return `{"type":"ADDED","object":{"metadata":{"name":"a"},"data":"` + strings.Repeat("x", n) + `"}}` + "\n"
	}
	w := NewWatch(strings.NewReader(frame(3<<20) + frame(1)))
	if ev, err := w.Next(); err != nil || len(ev.Raw) < 3<<20 {
		t.Fatalf("3 MiB: %d bytes, %v", len(ev.Raw), err)
	}
	if _, err := w.Next(); err != nil {
		t.Fatal(err)
	}
	if n := cap(w.s.buf); n > 2*maxIdle {
		t.Errorf("a window of %d bytes stays behind a large object", n)
	}
	w = NewWatch(strings.NewReader(frame(1<<20) + frame(1)))
	w.s.limit = 1 << 18
	_, err := w.Next()
	var large *TooLargeError
	if !errors.As(err, &large) || !Unreadable(err) {
		t.Fatalf("above the limit: %v", err)
	}
	if ev, err := w.Next(); err != nil || ev.Name != "a" {
		t.Errorf("behind the large object: %+v, %v", ev, err)
	}
}

func TestReadErrorIsPassedOn(t *testing.T) {
	broken := errors.New("connection reset")
	r := io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{`), iotest.ErrReader(broken))
	if _, err := readWatch(r); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestWithType(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:           `{"kind":"Pod","apiVersion":"v1"}`,
		` { }`:         `{"kind":"Pod","apiVersion":"v1" }`,
		`{"a":1}`:      `{"kind":"Pod","apiVersion":"v1","a":1}`,
		"{\n \"a\":1}": "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\n \"a\":1}",
	} {
		if got := string(WithType([]byte(in), "v1", "Pod")); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
		ok   bool
	}{
		{"9", "10", -1, true},
		{"10", "9", 1, true},
		{"10", "10", 0, true},
		{"340282366920938463463374607431768211455", "99999999999999999999", 1, true}, // beyond uint64
		{"", "1", 0, false},
		{"0", "1", 0, false},
		{"01", "1", 0, false},
		{"a", "b", 0, false},
		{"-1", "1", 0, false},
	} {
		if got, ok := CompareVersions(c.a, c.b); got != c.want || ok != c.ok {
			t.Errorf("%q, %q: %d, %v", c.a, c.b, got, ok)
		}
	}
}

// golden is k8s.io/api's golden pod, with every field set, on one line.
func golden(tb testing.TB) string {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "pod.json"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}
