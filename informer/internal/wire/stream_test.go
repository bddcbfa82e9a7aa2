package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// small returns two objects that are quick to cut at every byte.
func small(t *testing.T, f Format) [][]byte {
	var objects [][]byte
	for _, name := range []string{"a", "bb"} {
		objects = append(objects, encode(t, f, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u", ResourceVersion: "12", Labels: map[string]string{"k": "v"}},
			Data:       map[string]string{"k": "v\u00e4\n"},
		}))
	}
	return objects
}

// TestListCutAtEveryByte checks that a cut is noticed and that the items before it are right.
func TestListCutAtEveryByte(t *testing.T) {
	for _, f := range []Format{JSON, Protobuf} {
		body := string(rawList{metav1.ListMeta{ResourceVersion: "7", Continue: "c"}, small(t, f)}.body(t, f, "v1", "ConfigMapList"))
		all, meta, err := readList(f, strings.NewReader(body))
		if err != nil || len(all) != 2 || meta != (ListMeta{"7", "c"}) {
			t.Fatalf("%s: %q, %+v, %v", f, all, meta, err)
		}
		for n := range len(body) {
			for how, reader := range arrivals {
				items, meta, err := readList(f, reader(body[:n]))
				want := "cut"
				if f == Protobuf && (n == len(body)-4 || n == len(body)-2) {
					want = "" // only empty fields of the envelope are missing
				}
				if kindOf(err) != want {
					t.Errorf("%s, %d of %d bytes, %s: %v", f, n, len(body), how, err)
				}
				if !slices.Equal(items, all[:len(items)]) || err == nil && (len(items) != 2 || meta != ListMeta{"7", "c"}) {
					t.Errorf("%s, %d of %d bytes, %s: %q, %+v", f, n, len(body), how, items, meta)
				}
			}
		}
	}
}

func TestWatchCutAtEveryByte(t *testing.T) {
	for _, f := range []Format{JSON, Protobuf} {
		var body string
		ends := map[int]bool{0: true}
		add := func(eventType string, raw []byte) {
			body += string(frame(t, f, eventType, "v1", "ConfigMap", raw))
			ends[len(body)] = true
			ends[len(body)-1] = f == JSON // the newline adds nothing
		}
		for _, raw := range small(t, f) {
			add(Added, raw)
		}
		add(Bookmark, encode(t, f, bookmark("9", map[string]string{initialEnd: "true"})))
		all, err := readWatch(f, strings.NewReader(body))
		if err != nil || len(all) != 3 {
			t.Fatalf("%s: %q, %v", f, all, err)
		}
		for n := range len(body) {
			for how, reader := range arrivals {
				events, err := readWatch(f, reader(body[:n]))
				want := "cut"
				if ends[n] {
					want = ""
				}
				if kindOf(err) != want || !slices.Equal(events, all[:len(events)]) {
					t.Errorf("%s, %d of %d bytes, %s: %q, %v", f, n, len(body), how, events, err)
				}
			}
		}
	}
}

// TestObjectsArriveAtOnce checks that an object is returned without waiting for bytes after it.
func TestObjectsArriveAtOnce(t *testing.T) {
	for _, f := range []Format{JSON, Protobuf} {
		objects := small(t, f)
		list := rawList{items: objects}.body(t, f, "v1", "ConfigMapList")
		first := list[:bytes.Index(list, objects[0])+len(objects[0])]
		if o, err := NewList(f, stalled(t, first)).Next(); err != nil || o.Name != "a" {
			t.Errorf("%s: the first item: %+v, %v", f, o, err)
		}
		stream := frame(t, f, Added, "v1", "ConfigMap", objects[0])
		if ev, err := NewWatch(f, stalled(t, stream)).Next(); err != nil || ev.Name != "a" {
			t.Errorf("%s: the first event: %+v, %v", f, ev, err)
		}
	}
}

// stalled fails the test if more than b is read.
func stalled(t *testing.T, b []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(b), readerFunc(func([]byte) (int, error) {
		t.Error("reads beyond an object, where bytes may be minutes away")
		return 0, io.EOF
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestLargeObjects(t *testing.T) {
	for _, f := range []Format{JSON, Protobuf} {
		object := func(n int) []byte {
			return encode(t, f, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": strings.Repeat("x", n)}})
		}
		event := func(n int) string { return string(frame(t, f, Added, "v1", "ConfigMap", object(n))) }
		w := NewWatch(f, strings.NewReader(event(3<<20)+event(1)))
		if ev, err := w.Next(); err != nil || len(ev.Raw) < 3<<20 {
			t.Errorf("%s: 3 MiB: %d bytes, %v", f, len(ev.Raw), err)
		}
		if _, err := w.Next(); err != nil {
			t.Error(err)
		}
		if n := cap(windowOf(w).buf); n > maxIdle {
			t.Errorf("%s: a window of %d bytes remains after a large object", f, n)
		}

		w = NewWatch(f, strings.NewReader(event(1<<20)+event(1)))
		windowOf(w).limit = 1 << 19
		var large *TooLargeError
		if _, err := w.Next(); !errors.As(err, &large) || !Unreadable(err) {
			t.Errorf("%s: above the limit: %v", f, err)
		}
		if n := cap(windowOf(w).buf); n > 1<<21 {
			t.Errorf("%s: a window of %d bytes for what is given up", f, n)
		}
		if ev, err := w.Next(); err != nil || ev.Name != "a" {
			t.Errorf("%s: after the large object: %+v, %v", f, ev, err)
		}

		body := rawList{items: [][]byte{object(1 << 20), object(1)}}.body(t, f, "v1", "ConfigMapList")
		l := NewList(f, bytes.NewReader(body))
		for _, want := range []int{1 << 20, 1} {
			if o, err := l.Next(); err != nil || len(o.Raw) < want {
				t.Errorf("%s: item of %d bytes: %d, %v", f, want, len(o.Raw), err)
			}
		}
		l = NewList(f, bytes.NewReader(body))
		windowOf(l).limit = 1 << 19
		o, err := l.Next()
		if f == JSON { // JSON has an end where it was read to
			if !errors.As(err, &large) {
				t.Errorf("%s: an item above the limit: %v", f, err)
			}
			continue
		}
		if kindOf(err) != "ObjectError" || o.Name != "a" || o.Raw != nil {
			t.Errorf("%s: an item above the limit: %+v, %v", f, o, err)
		}
		if o, err := l.Next(); err != nil || o.Name != "a" {
			t.Errorf("%s: after the large item: %+v, %v", f, o, err)
		}
		if _, err := l.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", f, err)
		}
	}
}

// TestErrorsTellTheirPlace checks offsets in a window that has moved and shrunk.
func TestErrorsTellTheirPlace(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": strings.Repeat("x", 200_000)}}
	for f, bad := range map[Format]string{JSON: `{"type":x}`, Protobuf: framed(overflow)} {
		good := string(frame(t, f, Added, "v1", "ConfigMap", encode(t, f, object)))
		at := map[Format]int{JSON: len(`{"type":`), Protobuf: len(bad)}[f]
		for _, reader := range arrivals {
			w := NewWatch(f, reader(good+bad))
			if _, err := w.Next(); err != nil {
				t.Fatal(err)
			}
			var syntax *SyntaxError
			if _, err := w.Next(); !errors.As(err, &syntax) || syntax.Offset != int64(len(good)+at) {
				t.Errorf("%s: %v, want byte %d", f, err, len(good)+at)
			}
		}
	}
}

// TestLengthsCostNothing checks that a length allocates nothing before its bytes arrive.
func TestLengthsCostNothing(t *testing.T) {
	l := newProtoList(strings.NewReader(protoPrefix + text(1, text(2, "PodList")) + long(2, 1<<40) + long(2, MaxObject) + "x"))
	if _, err := l.Next(); kindOf(err) != "cut" || cap(l.w.buf) > listWindow {
		t.Errorf("an item: %v, a window of %d bytes", err, cap(l.w.buf))
	}
	l = newProtoList(strings.NewReader(protoPrefix + text(1, text(2, "PodList")) + long(2, 1<<40) + long(2, MaxObject+1) + "x"))
	if _, err := l.Next(); kindOf(err) != "cut" || cap(l.w.buf) > listWindow {
		t.Errorf("an item above the limit: %v, a window of %d bytes", err, cap(l.w.buf))
	}
	w := newProtoWatch(strings.NewReader(framedLength(MaxObject) + "x"))
	if _, err := w.Next(); kindOf(err) != "cut" || cap(w.w.buf) > watchWindow {
		t.Errorf("an event: %v, a window of %d bytes", err, cap(w.w.buf))
	}
}

// TestWhatIsSkippedIsNotHeld checks that a large unused field is not collected.
func TestWhatIsSkippedIsNotHeld(t *testing.T) {
	unknown := text(31, strings.Repeat("x", 1<<20))
	for _, in := range []string{
		protoPrefix + unknown + text(1, text(2, "PodList")) + text(2, text(2, object("a"))),
		pods(unknown, text(2, object("a"))),
	} {
		l := newProtoList(strings.NewReader(in))
		if o, err := l.Next(); err != nil || o.Name != "a" || cap(l.w.buf) > listWindow {
			t.Errorf("%+v, %v, a window of %d bytes", o, err, cap(l.w.buf))
		}
	}
}

func windowOf(reader any) *window {
	switch r := reader.(type) {
	case *jsonList:
		return &r.s.window
	case *jsonWatch:
		return &r.s.window
	case *protoList:
		return &r.w
	case *protoWatch:
		return &r.w
	}
	return nil
}

func TestReadErrorIsPassedOn(t *testing.T) {
	broken := errors.New("connection reset")
	for f, begin := range map[Format]string{JSON: `{"type":"ADDED","object":{`, Protobuf: event(Added)[:9]} {
		r := io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken))
		if _, err := readWatch(f, r); !errors.Is(err, broken) || Unreadable(err) {
			t.Errorf("%s: a watch: %v", f, err)
		}
	}
	for f, begin := range map[Format]string{JSON: `{"items":[`, Protobuf: pods(object("a"))[:9]} {
		r := io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken))
		if _, _, err := readList(f, r); !errors.Is(err, broken) {
			t.Errorf("%s: a list: %v", f, err)
		}
	}
	nothing := readerFunc(func([]byte) (int, error) { return 0, nil })
	if _, err := readWatch(Protobuf, nothing); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that reads nothing: %v", err)
	}
}
