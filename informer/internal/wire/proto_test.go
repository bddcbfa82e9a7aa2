package wire

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// The tests build protobuf by hand, since no encoder writes invalid messages.

// text is a length-delimited field.
func text(num protowire.Number, parts ...string) string {
	v := strings.Join(parts, "")
	return string(protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), v))
}

// number is a field that is a varint.
func number(num protowire.Number, v uint64) string {
	return string(protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v))
}

// long is a field whose length says n bytes, with none following.
func long(num protowire.Number, n uint64) string {
	return string(protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.BytesType), n))
}

const (
	group     = "\xfb\x01\xfc\x01" // field 31: a group, empty
	fixed32   = "\xfd\x01abcd"     // field 31
	fixed64   = "\xf9\x01abcdefgh" // field 31
	badType   = "\xfe\x01"         // field 31 of wire type 6
	noNumber  = "\x02\x00"         // field 0
	overflow  = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	farNumber = "\x82\x80\x80\x80\x80\x01\x00" // field 2^32, of bytes
)

var unknownFields = number(31, 1<<63) + fixed32 + fixed64 + text(31, "unknown")

func listOf(apiVersion, kind string, fields ...string) string {
	return protoPrefix + text(1, text(1, apiVersion), text(2, kind)) + text(2, fields...) + text(3) + text(4)
}

func pods(fields ...string) string { return listOf("v1", "PodList", fields...) }

// object is an object with a name, and more fields after its metadata.
func object(name string, more ...string) string {
	return text(1, text(1, name)) + strings.Join(more, "")
}

var protoListCases = []struct {
	name, in string
	items    []string
	meta     ListMeta
	err      string
}{
	{"a list", pods(text(1, text(2, "7"), text(3, "c"), number(4, 5)), text(2, text(1, text(1, "a"), text(3, "n"), text(5, "u"), text(6, "5")), text(2, "spec"))),
		[]string{"n/a u 5 " + text(1, text(1, "a"), text(3, "n"), text(5, "u"), text(6, "5")) + text(2, "spec")}, ListMeta{"7", "c"}, ""},
	{"metadata after the items", pods(text(2, object("a")), text(1, text(2, "7"))), []string{"/a   " + object("a")}, ListMeta{"7", ""}, ""},
	{"metadata in parts is merged, as decoders do", pods(text(1, text(2, "7"), text(3, "b")), text(1, text(3, "c"))), nil, ListMeta{"7", "c"}, ""},
	{"no items", pods(text(1)), nil, ListMeta{}, ""},
	{"nothing in it", pods(), nil, ListMeta{}, ""},
	{"metadata only", listOf("meta.k8s.io/v1", "PartialObjectMetadataList", text(1, text(2, "7")), text(2, object("a"))),
		[]string{"/a   " + object("a")}, ListMeta{"7", ""}, ""},
	{"metadata only, as v1beta1 numbers the fields", listOf("meta.k8s.io/v1beta1", "PartialObjectMetadataList", text(2, text(2, "7")), text(1, object("a"))),
		[]string{"/a   " + object("a")}, ListMeta{"7", ""}, ""},
	{"v1beta1 of something else", listOf("batch/v1beta1", "CronJobList", text(1, text(2, "7")), text(2, object("a"))),
		[]string{"/a   " + object("a")}, ListMeta{"7", ""}, ""},
	{"unknown fields everywhere",
		protoPrefix + unknownFields + text(1, unknownFields, text(2, "PodList")) + unknownFields +
			text(2, unknownFields, text(1, unknownFields, text(2, "7")), unknownFields, text(2, text(1, unknownFields, text(1, "a")), unknownFields)) + unknownFields,
		[]string{"/a   " + text(1, unknownFields, text(1, "a")) + unknownFields}, ListMeta{"7", ""}, ""},
	{"the kind in two parts", protoPrefix + text(1, text(2, "PodList")) + text(1, text(1, "v1")) + text(2, text(2, object("a"))),
		[]string{"/a   " + object("a")}, ListMeta{}, ""},
	{"an object's metadata in parts is merged, as decoders do", pods(text(2, text(1, text(1, "a"), text(5, "u")), text(2, "spec"), text(1, text(1, "b")))),
		[]string{"/b u  " + text(1, text(1, "a"), text(5, "u")) + text(2, "spec") + text(1, text(1, "b"))}, ListMeta{}, ""},
	{"lengths with more digits than they need", protoPrefix + text(1, text(2, "PodList")) + "\x12\x8a\x00" + "\x12\x86\x80\x00" + "\x0a\x83\x00\x0a\x01a",
		[]string{"/a   \x0a\x83\x00\x0a\x01a"}, ListMeta{}, ""},
	{"bad items do not hide the next", pods(
		text(2), text(2, text(1)), text(2, text(2, "spec")), text(2, long(1, 5)), text(2, object("a", long(2, 5))), text(2, text(1, long(1, 5))),
		text(2, number(1, 5)), text(2, text(1, number(1, 5))), text(2, text(1, text(7, "x"))), text(2, object("a", group)), text(2, text(1, text(1, "a"), group)),
		text(2, object("a", badType)), text(2, object("a", noNumber)), text(2, object("a", farNumber)), text(2, object("a", overflow)),
		text(2, object("a", long(2, 1<<63))), text(2, object("a", "\xfd\x01abc")), text(2, object("z"))),
		[]string{
			"bad an item without metadata.name", "bad an item without metadata.name", "bad an item without metadata.name",
			"bad field is longer than its message", "bad a field is longer than its message", "bad metadata: field is longer than its message",
			"bad wrong wire type", "bad metadata: wrong wire type", "bad metadata: wrong wire type", "bad a groups are not supported", "bad metadata: groups are not supported",
			"bad a unknown wire type", "bad a field number out of range", "bad a field number out of range", "bad a number does not end",
			"bad a field is longer than its message", "bad a field is longer than its message",
			"/z   " + object("z")},
		ListMeta{}, ""},
	{"an object instead of a list", listOf("v1", "Pod", text(1, text(1, "a"))), nil, ListMeta{}, "SyntaxError"},
	{"a refusal", listOf("v1", "Status"), nil, ListMeta{}, "SyntaxError"},
	{"no kind", protoPrefix + text(2, text(2, object("a"))), nil, ListMeta{}, "SyntaxError"},
	{"the kind after the list", pods() + text(1, text(2, "PodList")), nil, ListMeta{}, "SyntaxError"},
	{"two lists", pods() + text(2), nil, ListMeta{}, "SyntaxError"},
	{"garbage after the list", pods() + overflow, nil, ListMeta{}, "SyntaxError"},
	{"a list of another wire type", protoPrefix + text(1, text(2, "PodList")) + number(2, 5), nil, ListMeta{}, "SyntaxError"},
	{"items of another wire type", pods(number(2, 5)), nil, ListMeta{}, "SyntaxError"},
	{"metadata of another wire type", pods(number(1, 5)), nil, ListMeta{}, "SyntaxError"},
	{"a version of another wire type", pods(text(1, number(2, 5))), nil, ListMeta{}, "SyntaxError"},
	{"a kind of another wire type", protoPrefix + text(1, number(2, 5)) + text(2), nil, ListMeta{}, "SyntaxError"},
	{"a content type of another wire type", pods() + number(4, 5), nil, ListMeta{}, "SyntaxError"},
	{"a count of another wire type", pods(text(1, text(4, "5"))), nil, ListMeta{}, "SyntaxError"},
	{"an item that is longer than the list", pods(long(2, 1)), nil, ListMeta{}, "SyntaxError"},
	{"metadata that is longer than the list", pods(long(1, 1)), nil, ListMeta{}, "SyntaxError"},
	{"what is skipped is longer than the list", pods(long(31, 1)), nil, ListMeta{}, "SyntaxError"},
	{"a version that is longer than the metadata", pods(text(1, long(2, 1))), nil, ListMeta{}, "SyntaxError"},
	{"a tag that ends after the list", protoPrefix + text(1, text(2, "PodList")) + "\x12\x01\x92" + "\x01\x00", nil, ListMeta{}, "SyntaxError"},
	{"a negative length", pods(long(2, 1<<63)), nil, ListMeta{}, "SyntaxError"},
	{"a negative length of the list", protoPrefix + text(1, text(2, "PodList")) + long(2, 1<<63), nil, ListMeta{}, "SyntaxError"},
	{"a list that never ends", protoPrefix + text(1, text(2, "PodList")) + long(2, 1<<62), nil, ListMeta{}, "cut"},
	{"a length beyond 64 bits", pods("\x12" + overflow), nil, ListMeta{}, "SyntaxError"},
	{"a group in the list", pods(group), nil, ListMeta{}, "SyntaxError"},
	{"a group in the envelope", protoPrefix + group, nil, ListMeta{}, "SyntaxError"},
	{"field 0", pods(noNumber), nil, ListMeta{}, "SyntaxError"},
	{"a field beyond 32 bits, which decoders take for another", pods(farNumber), nil, ListMeta{}, "SyntaxError"},
	{"an item beyond the limit", pods(long(2, MaxObject+1)) + strings.Repeat("x", 100), nil, ListMeta{}, "SyntaxError"},
	{"JSON", `{"kind":"PodList","items":[]}`, nil, ListMeta{}, "SyntaxError"},
	{"a page of HTML", `<html>`, nil, ListMeta{}, "SyntaxError"},
	{"a wrong prefix", `k9`, nil, ListMeta{}, "SyntaxError"},
	{"nothing at all", ``, nil, ListMeta{}, "cut"},
	{"the prefix only", protoPrefix, nil, ListMeta{}, "cut"},
}

// arrivals are ways in which bytes can arrive.
var arrivals = map[string]func(string) io.Reader{
	"whole":      func(s string) io.Reader { return strings.NewReader(s) },
	"bytes":      func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
	"early EOF":  func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
	"half reads": func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
}

func TestProtobufList(t *testing.T) {
	for _, c := range protoListCases {
		for how, reader := range arrivals {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				items, meta, err := readList(Protobuf, reader(c.in))
				if kindOf(err) != c.err {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				if diff := cmp.Diff(c.items, items); err == nil && diff != "" {
					t.Errorf("items (-want +got):\n%s", diff)
				}
				if err == nil && meta != c.meta {
					t.Errorf("metadata %+v, want %+v", meta, c.meta)
				}
			})
		}
	}
}

// event is a frame of a watch with an object of kind Pod.
func event(eventType string, fields ...string) string {
	return framed(text(1, eventType) + text(2, text(1, protoPrefix, text(1, text(1, "v1"), text(2, "Pod")), text(2, fields...), text(3), text(4))))
}

func framed(s string) string { return string(prefixed([]byte(s))) }

func protoWatchCases() []watchCase {
	ending := text(1, text(6, "9"), text(12, text(1, "a"), text(2, "b")), text(12, text(1, initialEnd), text(2, "true")))
	notEnding := text(1, text(6, "9"), text(12, text(1, initialEnd), text(2, "false")), text(11, text(1, initialEnd), text(2, "true")))
	good := event(Added, object("z"))
	after := "ADDED z  " + object("z")
	status := func(kind string) string {
		return framed(text(1, Error) + text(2, text(1, protoPrefix, text(1, text(2, kind)), text(2, text(1), text(2, "Failure")))))
	}
	return []watchCase{
		{"nothing", "", nil, ""},
		{"one of each", event(Added, object("a")) + event(Modified, object("a", text(2, "spec"))) + event(Deleted, object("a")) + event(Bookmark, text(1, text(6, "9"))),
			[]string{"ADDED a  " + object("a"), "MODIFIED a  " + object("a", text(2, "spec")), "DELETED a  " + object("a"), "BOOKMARK  9 " + text(1, text(6, "9"))}, ""},
		{"the bookmark that ends the initial events", event(Bookmark, ending), []string{"BOOKMARK END  9 " + ending}, ""},
		{"a bookmark that does not", event(Bookmark, notEnding), []string{"BOOKMARK  9 " + notEnding}, ""},
		{"an object is not the end of anything", event(Added, text(1, text(1, "a")), ending), []string{"ADDED a 9 " + text(1, text(1, "a")) + ending}, ""},
		{"a status", status("Status"), []string{"ERROR   " + text(1) + text(2, "Failure")}, ""},
		{"an error event without a Status", status("Pod") + good, []string{"bad", after}, ""},
		{"fields in any order, and unknown ones",
			framed(unknownFields + text(2, unknownFields, text(1, protoPrefix, unknownFields, text(2, object("a")), text(1, text(2, "Pod"), text(1, "v1")))) + text(1, Added)),
			[]string{"ADDED a  " + object("a")}, ""},
		{"of a field that comes twice the last counts", framed(text(1, Deleted) + text(1, Added) + text(2, text(1, "x"), text(1, protoPrefix, text(2, "x"), text(2, object("a"))))),
			[]string{"ADDED a  " + object("a")}, ""},
		{"an object in two parts is merged, as decoders do", framed(text(1, Added) + text(2, text(1, protoPrefix, text(2, object("a")))) + text(2, unknownFields)),
			[]string{"ADDED a  " + object("a")}, ""},
		{"frames that are no events", framed("") + framed(text(1, Added)) + framed(text(1, Added)+text(2)) + framed(text(1, Error)) + event("WHAT", object("a")) +
			event(Bookmark) + event(Added) + event(Added, text(1)) + event(Added, number(1, 5)) + event(Added, object("a", group)) + good,
			[]string{"bad", "bad", "bad", "bad", "bad", "bad", "bad", "bad", "bad", "bad ADDED a", after}, ""},
		{"a deletion of an object of which only the metadata can be read", event(Deleted, object("a", group)) + event("WHAT", object("a", group)) + event(Bookmark, object("a", group)) + good,
			[]string{"bad DELETED a", "bad", "bad", after}, ""},
		{"frames that are broken",
			framed(overflow) + framed(long(1, 1)) + framed(number(1, 5)) + framed(text(1, Added)+number(2, 5)) + framed(text(1, Added)+text(2, number(1, 5))) +
				framed(text(1, Added)+text(2, text(1, "{}"))) + framed(text(1, Added)+text(2, text(1, "k8s"))) + framed(text(1, Added)+text(2, text(1, protoPrefix, long(2, 1)))) +
				framed(text(1, Added)+text(2, text(1, protoPrefix, number(2, 1)))) + framed(text(1, Added)+text(2, text(1, protoPrefix, number(1, 1)))) +
				framed(text(1, Added)+text(2, text(1, protoPrefix, text(1, number(1, 1))))) + framed(text(1, Added)+text(2, text(1, protoPrefix, text(2, object("a")), number(3, 1)))) +
				framed(group) + good,
			append(slices.Repeat([]string{"bad"}, 13), after), ""},
		{"JSON in place of frames", `{"type":"ADDED","object":{}}` + "\n", []string{"bad"}, "cut"},
		{"a frame beyond the limit, then a connection that ends", framedLength(MaxObject+1) + good, []string{"bad"}, "cut"},
		{"an implausible length", framedLength(1<<32-1) + good, []string{"bad"}, "cut"},
		{"cut in a length", "\x00\x00\x00", nil, "cut"},
		{"cut in a frame", good[:len(good)-1], nil, "cut"},
	}
}

func TestProtobufWatch(t *testing.T) {
	for _, c := range protoWatchCases() {
		for how, reader := range arrivals {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				events, err := readWatch(Protobuf, reader(c.in))
				if kindOf(err) != c.err {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				if diff := cmp.Diff(c.events, events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func framedLength(n uint32) string {
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func TestTypedIsWhatTheEnvelopeNames(t *testing.T) {
	for envelope, want := range map[string]bool{
		text(1, text(1, "v1"), text(2, "Pod")): true, text(1, text(2, "Pod")): false, text(1): false, "": false,
	} {
		in := framed(text(1, Added) + text(2, text(1, protoPrefix, envelope, text(2, object("a")))))
		if ev, err := NewWatch(Protobuf, strings.NewReader(in)).Next(); err != nil || ev.Typed != want {
			t.Errorf("%q: typed %v, %v", envelope, ev.Typed, err)
		}
	}
	if o, err := NewList(Protobuf, strings.NewReader(pods(text(2, object("a"))))).Next(); err != nil || !o.Typed {
		t.Errorf("a list's item: %+v, %v", o, err)
	}
}

func TestUnwrap(t *testing.T) {
	if _, _, err := Unwrap([]byte("{}")); kindOf(err) != "SyntaxError" {
		t.Errorf("JSON: %v", err)
	}
	raw, kind, err := Unwrap([]byte(pods(text(2, object("a")))))
	if err != nil || kind != "PodList" || !bytes.Equal(raw, []byte(text(2, object("a")))) {
		t.Errorf("a list: %q, %q, %v", kind, raw, err)
	}
	if !IsProtobuf([]byte(protoPrefix)) || IsProtobuf([]byte("k8s")) || IsProtobuf(nil) {
		t.Error("the prefix is what makes protobuf")
	}
}
