package wire

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// readList returns the items as text, the metadata, and the error that ended the list.
func readList(f Format, r io.Reader) (items []string, meta ListMeta, err error) {
	l := NewList(f, r)
	for {
		o, err := l.Next()
		var bad *ObjectError
		switch {
		case errors.Is(err, io.EOF):
			return items, l.Meta(), nil
		case errors.As(err, &bad):
			items = append(items, "bad "+strings.TrimPrefix(o.Name+" "+shortly(bad.Msg), " "))
		case err != nil:
			return items, l.Meta(), err
		default:
			items = append(items, fmt.Sprintf("%s/%s %s %s %s", o.Namespace, o.Name, o.UID, o.ResourceVersion, o.Raw))
		}
	}
}

func readWatch(f Format, r io.Reader) (events []string, err error) {
	w := NewWatch(f, r)
	for {
		ev, err := w.Next()
		switch {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil && Unreadable(err):
			events = append(events, strings.TrimSpace(fmt.Sprintf("bad %s %s %s", ev.Type, ev.Name, ev.ResourceVersion)))
		case err != nil:
			return events, err
		default:
			end := ""
			if ev.InitialEnd {
				end = " END"
			}
			events = append(events, fmt.Sprintf("%s%s %s %s %s", ev.Type, end, ev.Name, ev.ResourceVersion, ev.Raw))
		}
	}
}

// shortly removes the offset from an error message.
func shortly(msg string) string {
	if _, rest, ok := strings.Cut(msg, "read protobuf: byte "); ok {
		_, msg, _ = strings.Cut(rest, ": ")
	}
	return msg
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

// nested is deeper than allowed; end continues the innermost array.
func nested(end string) string {
	return strings.Repeat("[", maxDepth+1) + end + strings.Repeat("]", maxDepth)
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
	{"decoders disagree about what comes twice",
		`{"items":[{"metadata":{"name":"a"},"metadata":{"name":"b"}},{"metadata":{"labels":{},"labels":{}}},{"metadata":{"uid":"a","name":"c","uid":null}}]}`,
		[]string{"bad b " + twice, "bad " + twice, "bad c " + twice}, ListMeta{}, ""},
	{"elsewhere what comes twice does no harm", `{"items":[{"kind":"a","kind":"b","metadata":{"name":"a","x":1,"x":2},"x":1,"x":2}]}`,
		[]string{`/a   {"kind":"a","kind":"b","metadata":{"name":"a","x":1,"x":2},"x":1,"x":2}`}, ListMeta{}, ""},
	{"metadata further down is not the object's", `{"items":[{"spec":{"metadata":{"name":"x"}},"metadata":{"name":"a","labels":{"name":"y"}}}]}`,
		[]string{`/a   {"spec":{"metadata":{"name":"x"}},"metadata":{"name":"a","labels":{"name":"y"}}}`}, ListMeta{}, ""},
	{"a bad item does not hide the next", `{"items":[{"metadata":{"name":5}},7,{"metadata":[]},{},{"metadata":{"name":"a"}}]}`,
		[]string{"bad a field of metadata must be a string", "bad not an object", "bad metadata is not an object",
			"bad an item without metadata.name", `/a   {"metadata":{"name":"a"}}`}, ListMeta{}, ""},
	{"null is as absent", `{"items":[{"metadata":{"name":"a","uid":null}}]}`,
		[]string{`/a   {"metadata":{"name":"a","uid":null}}`}, ListMeta{}, ""},
	{"an object instead of a list", `{"kind":"Pod","metadata":{"name":"a"}}`, nil, ListMeta{}, "SyntaxError"},
	{"no object", `[]`, nil, ListMeta{}, "SyntaxError"},
	{"a page of HTML", `<html>`, nil, ListMeta{}, "SyntaxError"},
	{"nothing at all", ``, nil, ListMeta{}, "cut"},
	{"cut in an item", `{"items":[{"metadata":{"name":"a`, nil, ListMeta{}, "cut"},
	{"cut after the items", `{"items":[]`, nil, ListMeta{}, "cut"},
	{"more after the list", `{"items":[]}{}`, nil, ListMeta{}, "SyntaxError"},
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
	{"an item that is nested too deeply does not hide the next",
		`{"items":[{"a":` + nested("]") + `,"metadata":{"name":"a"}},` + nested("]") + `,{"metadata":{"name":"b"},"a":` + nested(`"]\"}"]`) + `},{"metadata":{"name":"c"}}]}`,
		[]string{"bad a " + tooDeep, "bad not an object", "bad b " + tooDeep, `/c   {"metadata":{"name":"c"}}`}, ListMeta{}, ""},
	{"outside of items it ends the list", `{"items":[{"metadata":{"name":"a"}}],"a":` + nested("]") + `}`, nil, ListMeta{}, "SyntaxError"},
	{"a deep item that is cut", `{"items":[{"a":` + nested(""), nil, ListMeta{}, "cut"},
	{"wide, but not deep", `{"a":[` + strings.Repeat("[{}],", maxDepth) + `[]],"items":[]}`, nil, ListMeta{}, ""},
	{"as deep as allowed", `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,"items":[]}`, nil, ListMeta{}, ""},
}

func TestList(t *testing.T) {
	for _, c := range listCases {
		for how, reader := range arrivals {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				items, meta, err := readList(JSON, reader(c.in))
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

type watchCase struct {
	name, in string
	events   []string
	err      string
}

var watchCases = []watchCase{
	{"nothing", "", nil, ""},
	{"two frames and a bookmark", `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}}` + "\n" +
		`{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"6"}}}{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`,
		[]string{`ADDED a 5 {"metadata":{"name":"a","resourceVersion":"5"}}`, `DELETED a 6 {"metadata":{"name":"a","resourceVersion":"6"}}`,
			`BOOKMARK  9 {"metadata":{"resourceVersion":"9"}}`}, ""},
	{"the bookmark that ends the initial events", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"a":"b","k8s.io/initial-events-end":"true"}}}}`,
		[]string{`BOOKMARK END  9 {"metadata":{"resourceVersion":"9","annotations":{"a":"b","k8s.io/initial-events-end":"true"}}}`}, ""},
	{"bookmarks that do not", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"false"}}}}` +
		`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":null,"labels":{"k8s.io/initial-events-end":"true"}}}}`,
		[]string{`BOOKMARK  9 {"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"false"}}}`,
			`BOOKMARK  9 {"metadata":{"resourceVersion":"9","annotations":null,"labels":{"k8s.io/initial-events-end":"true"}}}`}, ""},
	{"an object is not the end of anything", `{"type":"ADDED","object":{"metadata":{"name":"a","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
		[]string{`ADDED a  {"metadata":{"name":"a","annotations":{"k8s.io/initial-events-end":"true"}}}`}, ""},
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
	{"only white space after a frame", `{"type":"ADDED","object":{"metadata":{"name":"a"}}}` + "\n \n", []string{`ADDED a  {"metadata":{"name":"a"}}`}, ""},
	{"nested too deeply, then as deep as allowed",
		`{"a":` + strings.Repeat("[", maxDepth+1) + "\n" + `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,"type":"ADDED","object":{"metadata":{"name":"a"}}}`,
		[]string{"bad", `ADDED a  {"metadata":{"name":"a"}}`}, ""},
	{"garbage at depth, then as deep as allowed",
		`{"a":[[[x` + "\n" + `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,"type":"ADDED","object":{"metadata":{"name":"a"}}}`,
		[]string{"bad", `ADDED a  {"metadata":{"name":"a"}}`}, ""},
	{"an object that is nested too deeplyis identified", `{"type":"MODIFIED","object":{"a":` + nested("]") + `,"metadata":{"name":"a","resourceVersion":"5"}}}{"type":"ADDED","object":{"metadata":{"name":"b"}}}`,
		[]string{"bad MODIFIED a 5", "ADDED b  {\"metadata\":{\"name\":\"b\"}}"}, ""},
	{"an object with bad metadata is identified; one with an unknown event type is not", `{"object":{"metadata":{"name":"a","uid":7}},"type":"DELETED"}{"type":"WHAT","object":{"metadata":{"name":"a"}}}` + "\n" + `{"type":"ADDED","object":{"metadata":{"name":"b"}}}`,
		[]string{"bad DELETED a", "bad", "ADDED b  {\"metadata\":{\"name\":\"b\"}}"}, ""},
	{"garbage without an end", `garbage`, []string{"bad"}, "cut"},
}

func TestWatch(t *testing.T) {
	for _, c := range watchCases {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				events, err := readWatch(JSON, r)
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
