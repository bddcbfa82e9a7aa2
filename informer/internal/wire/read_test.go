package wire

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func labelsOf(f Format, raw []byte) (map[string]string, error) {
	var labels map[string]string
	err := ReadLabels(f, raw, func(key, value []byte) bool {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[string(key)] = string(value)
		return true
	})
	return labels, err
}

// plainFingerprint computes a fingerprint from decoded metadata.
func plainFingerprint(m metav1.ObjectMeta, size int) uint64 {
	h := uint64(14695981039346656037)
	add := func(what byte, value string) {
		if value != "" {
			for _, c := range []byte(string(what) + value + "\x00") {
				h = (h ^ uint64(c)) * 1099511628211
			}
		}
	}
	owner := ""
	for _, o := range m.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			owner = o.Kind
		}
	}
	add('o', owner)
	app := ""
	for _, key := range appLabels {
		if app == "" {
			app = m.Labels[key]
		}
	}
	part := m.Labels["app.kubernetes.io/component"]
	switch {
	case app+part != "":
		add('a', app)
		add('c', part)
	case m.GenerateName != "":
		add('g', string(withoutHash([]byte(m.GenerateName))))
	default:
		add('s', string(rune(bits.Len(uint(size)))))
	}
	return h
}

func TestFingerprint(t *testing.T) {
	type fields struct {
		owner, generate string
		labels          map[string]string
	}
	sum := func(f Format, of fields) uint64 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", GenerateName: of.generate, Labels: of.labels}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Controller: new(false)}}
		if of.owner != "" {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: of.owner, Controller: new(true)})
		}
		raw := encode(t, f, p)
		sum, ok := Fingerprint(f, raw)
		if want := plainFingerprint(p.ObjectMeta, len(raw)); !ok || sum != want {
			t.Errorf("%s: %+v: %x, %v, want %x", f, of, sum, ok, want)
		}
		return sum
	}
	app := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, c := range []struct {
		why  string
		a, b fields
		same bool
	}{
		{"revisions of one Deployment look alike",
			fields{"ReplicaSet", "web-7d4b9c6f5-", nil}, fields{"ReplicaSet", "web-54c8bd9c9b-", nil}, true},
		{"so do runs of one CronJob",
			fields{"Job", "backup-29377041-", nil}, fields{"Job", "backup-29356841-", nil}, true},
		{"a word is no hash", fields{"", "db-primary-", nil}, fields{"", "db-replicas-", nil}, false},
		{"nor is a short one", fields{"", "cache-db-", nil}, fields{"", "cache-kv-", nil}, false},
		{"nor is a short number", fields{"", "shard-1-", nil}, fields{"", "shard-2-", nil}, false},
		{"a hash alone stays", fields{"", "7d4b9c6f5-", nil}, fields{"", "54c8bd9c9b-", nil}, false},
		{"the application says more than the name",
			fields{"Job", "a-", app("app", "x")}, fields{"Job", "b-", app("app", "x", "team", "y")}, true},
		{"applications differ", fields{"", "a-", app("app", "x")}, fields{"", "a-", app("app", "y")}, false},
		{"what owns them differs", fields{"DaemonSet", "a-", app("app", "x")}, fields{"Job", "a-", app("app", "x")}, false},
		{"parts of one application differ",
			fields{"", "", app("app", "x", "app.kubernetes.io/component", "server")},
			fields{"", "", app("app", "x", "app.kubernetes.io/component", "worker")}, false},
		{"the surest label counts",
			fields{"", "", app("app", "x", "app.kubernetes.io/name", "n")}, fields{"", "", app("app", "y", "app.kubernetes.io/name", "n")}, true},
		{"also where another comes after it",
			fields{"", "", app("app", "x", "k8s-app", "y")}, fields{"", "", app("app", "x", "k8s-app", "z")}, true},
		{"an empty label is ignored",
			fields{"", "", app("app", "x", "app.kubernetes.io/name", "")}, fields{"", "", app("app", "x")}, true},
		{"a label's value is not another's",
			fields{"", "", app("app", "x")}, fields{"", "", app("app.kubernetes.io/component", "x")}, false},
		{"nothing but the size: near enough",
			fields{"", "", nil}, fields{"", "", app("z", "")}, true},
		{"nothing but the size: far apart",
			fields{"", "", nil}, fields{"", "", app("z", strings.Repeat("z", 5000))}, false},
	} {
		for _, f := range []Format{JSON, Protobuf} {
			if (sum(f, c.a) == sum(f, c.b)) != c.same {
				t.Errorf("%s, %s: same is %v", f, c.why, !c.same)
			}
		}
	}
}

// TestFingerprintIsStable pins values that other processes may have stored.
func TestFingerprintIsStable(t *testing.T) {
	pods := samplePods(t)
	for f, objects := range map[Format][][]byte{JSON: sampleObjects(t, JSON), Protobuf: sampleObjects(t, Protobuf)} {
		var got []uint64
		for i, raw := range objects {
			sum, _ := Fingerprint(f, raw)
			if want := plainFingerprint(pods[i].ObjectMeta, len(raw)); sum != want {
				t.Errorf("%s: pod %d: %x, want %x", f, i, sum, want)
			}
			got = append(got, sum)
		}
		if diff := cmp.Diff([]uint64{2020390457003718640, 16614306777675836605}, got[:2]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f, diff)
		}
	}
}

func TestHotReadsAllocateNothing(t *testing.T) {
	for _, f := range []Format{JSON, Protobuf} {
		raw := sampleObjects(t, f)[0]
		for what, read := range map[string]func(){
			"Fingerprint": func() { _, _ = Fingerprint(f, raw) },
			"ReadLabels":  func() { _ = ReadLabels(f, raw, func(_, _ []byte) bool { return true }) },
		} {
			if n := testing.AllocsPerRun(100, read); n > 0 {
				t.Errorf("%s of %s: %v allocations", what, f, n)
			}
		}
	}
}

func TestReadMetaOfWhatIsNoObject(t *testing.T) {
	for raw, want := range map[string]string{
		`{"metadata":{"name":"a"}} `:           "",
		`{"metadata":{"name":"a"}}{}`:          "SyntaxError",
		`{"metadata":{"name":"a"}`:             "SyntaxError",
		``:                                     "SyntaxError",
		`[]`:                                   "ObjectError",
		`{"metadata":null}`:                    "ObjectError",
		`{"metadata":{"name":["a"]}}`:          "ObjectError",
		`{"metadata":{"name":"a"},"spec":nul}`: "SyntaxError",
	} {
		m, err := ReadMeta(JSON, []byte(raw))
		if kindOf(err) != want || (m.Name != "") != (err == nil) {
			t.Errorf("%s: %+v, %v", raw, m, err)
		}
	}
	for why, raw := range map[string]string{
		"cut in the metadata":      object("a")[:3],
		"broken after it":          object("a", long(2, 1)),
		"a name that is no string": text(1, number(1, 1)),
	} {
		if m, err := ReadMeta(Protobuf, []byte(raw)); kindOf(err) != "SyntaxError" || m != (Meta{}) {
			t.Errorf("%s: %+v, %v", why, m, err)
		}
	}
}

func TestReadLabels(t *testing.T) {
	for _, c := range []struct {
		why, raw string
		want     map[string]string
		err      string
	}{
		{"none", `{"metadata":{"name":"a"}}`, nil, ""},
		{"no metadata", `{"spec":{}}`, nil, ""},
		{"null is empty", `{"metadata":{"labels":null}}`, nil, ""},
		{"no metadata as null", `{"metadata":null}`, nil, ""},
		{"escapes", `{"metadata":{"l\u0061bels":{"\u00e4":"\n","b":null}}}`, map[string]string{"ä": "\n", "b": ""}, ""},
		{"others further down", `{"spec":{"metadata":{"labels":{"x":"y"}}},"metadata":{"annotations":{"x":"y"},"labels":{"a":"b"}}}`,
			map[string]string{"a": "b"}, ""},
		{"a number", `{"metadata":{"labels":{"a":5}}}`, nil, "SyntaxError"},
		{"no map", `{"metadata":{"labels":[]}}`, nil, "SyntaxError"},
		{"no object", `[]`, nil, "SyntaxError"},
		{"cut", `{"metadata":{"labels":{"a"`, nil, "SyntaxError"},
	} {
		labels, err := labelsOf(JSON, []byte(c.raw))
		if kindOf(err) != c.err || c.err == "" && !reflect.DeepEqual(labels, c.want) {
			t.Errorf("%s: %v, %v", c.why, labels, err)
		}
	}
	for _, f := range []Format{JSON, Protobuf} {
		n := 0
		err := ReadLabels(f, sampleObjects(t, f)[0], func(_, _ []byte) bool {
			n++
			return n < 2
		})
		if n != 2 || err != nil {
			t.Errorf("%s: stopped after %d labels, %v", f, n, err)
		}
	}
}

func TestDropManagedFields(t *testing.T) {
	for in, want := range map[string]string{
		`{"metadata":{"managedFields":[{"a":[1]}]},"x":1}`:                       `{"metadata":{},"x":1}`,
		`{"metadata":{"managedFields":[],"name":"a"}}`:                           `{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a","managedFields":[]}}`:                           `{"metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a" , "managedFields" : null , "uid":"u"}}`:         `{"metadata":{"name":"a" , "uid":"u"}}`,
		`{"metadata": { "managedFields" : [] , "uid":"u"}}`:                      `{"metadata": { "uid":"u"}}`,
		`{"metadata":{"managedFields":1,"managedFields":2,"managedFields":3}}`:   `{"metadata":{}}`,
		`{"metadata":{"managedFields":1,"a":2,"managedFields":3,"b":4}}`:         `{"metadata":{"a":2,"b":4}}`,
		`{"metadata":{"managed\u0046ields":1}}`:                                  `{"metadata":{}}`,
		`{"spec":{"managedFields":1},"metadata":{"labels":{"managedFields":1}}}`: "",
		`{"managedFields":1}`:           "",
		`{"metadata":[],"x":1}`:         "",
		`{"metadata":{"managedFields":`: "",
		`garbage`:                       "",
	} {
		got := DropManagedFields(JSON, []byte(in))
		if want == "" {
			want = in // as it is
		}
		// White space may stay or go.
		if string(got) != want && (!json.Valid(got) || compact(got) != compact([]byte(want))) {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for why, raw := range map[string][]byte{
		"garbage after the metadata": {0x0a, 0x03, 0x8a, 0x01, 0x00, 0xff},
		"garbage in the metadata":    {0x0a, 0x04, 0x8a, 0x01, 0x00, 0xff},
		"no metadata":                {0x12, 0x03, 0x8a, 0x01, 0x00},
		"nothing":                    {},
	} {
		if got := DropManagedFields(Protobuf, raw); !bytes.Equal(got, raw) {
			t.Errorf("%s: %x becomes %x", why, raw, got)
		}
	}
	// Metadata may come in parts.
	raw := []byte{0x12, 0x01, 0x07, 0x0a, 0x03, 0x8a, 0x01, 0x00, 0x0a, 0x06, 0x8a, 0x01, 0x00, 0x0a, 0x01, 'a', 0x18, 0x05}
	want := []byte{0x12, 0x01, 0x07, 0x0a, 0x00, 0x0a, 0x03, 0x0a, 0x01, 'a', 0x18, 0x05}
	if got := DropManagedFields(Protobuf, raw); !bytes.Equal(got, want) {
		t.Errorf("in parts: %x, want %x", got, want)
	}
}

func compact(b []byte) string {
	var to bytes.Buffer
	_ = json.Compact(&to, b)
	return to.String()
}

func TestDecodeStatus(t *testing.T) {
	st := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
		Message: "too old", Reason: metav1.StatusReasonExpired, Code: 410,
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: "t", Message: "m"}}},
	}
	for _, f := range []Format{JSON, Protobuf} {
		ev, err := NewWatch(f, bytes.NewReader(frame(t, f, Error, "v1", "Status", encode(t, f, st)))).Next()
		if err != nil || ev.Type != Error || ev.Format != f {
			t.Fatalf("%s: %+v, %v", f, ev, err)
		}
		if got, err := DecodeStatus(f, ev.Raw); err != nil || !reflect.DeepEqual(got, st) {
			t.Errorf("%s: %+v, %v", f, got, err)
		}
		if _, err := DecodeStatus(f, []byte{0xff}); err == nil {
			t.Errorf("%s: garbage is a status", f)
		}
	}
	if _, err := DecodeStatus(JSON, []byte(`{"kind":"Pod"}`)); err == nil {
		t.Error("a Pod is a status")
	}
}

func TestDecodeMetadata(t *testing.T) {
	for _, c := range []struct{ why, raw, err string }{
		{"only metadata", `{"kind":"K","apiVersion":"v1","metadata":{"name":"a","generation":3}}`, ""},
		{"more than metadata", `{"spec":{"metadata":{"name":"b"}},"kind":"K","apiVersion":"v1","metadata":{"name":"a","generation":3}} `, ""},
		{"a wrong type", `{"metadata":{"generation":"x"}}`, "decode"},
		{"broken elsewhere", `{"metadata":{"name":"a"},"spec":x}`, "decode"},
		{"cut", `{"metadata":{"name":"a"}`, "decode"},
		{"more than an object", `{"metadata":{"name":"a"}}{}`, "decode"},
	} {
		p, err := DecodeMetadata(JSON, []byte(c.raw))
		if (err != nil) != (c.err != "") {
			t.Errorf("%s: %v", c.why, err)
		}
		if err == nil && (p.Name != "a" || p.Generation != 3 || p.Kind != "K" || p.APIVersion != "v1") {
			t.Errorf("%s: %+v", c.why, p)
		}
	}
	if _, err := DecodeMetadata(Protobuf, []byte{0x0a, 0x05}); err == nil {
		t.Error("cut protobuf has metadata")
	}
}
