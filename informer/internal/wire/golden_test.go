package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	sigsjson "sigs.k8s.io/json"
)

// goldenObject is one of the fully populated objects with which k8s.io/api pins its encodings.
type goldenObject struct {
	name string
	gvk  schema.GroupVersionKind
	raw  map[Format][]byte
	meta metav1.ObjectMeta
}

// noObjects have golden files but no ObjectMeta in field 1: they are never listed.
var noObjects = map[string]bool{
	"AdmissionReview": true, "APIGroup": true, "APIVersions": true, "CreateOptions": true, "DeleteOptions": true,
	"DeploymentRollback": true, "GetOptions": true, "ListOptions": true, "NodeProxyOptions": true, "PatchOptions": true,
	"PodAttachOptions": true, "PodExecOptions": true, "PodLogOptions": true, "PodPortForwardOptions": true,
	"PodProxyOptions": true, "SerializedReference": true, "ServiceProxyOptions": true, "Status": true, "UpdateOptions": true,
	"": true, // WatchEvent
}

// goldens reads the golden files once.
var goldens = sync.OnceValues(func() (all []*goldenObject, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		return nil, fmt.Errorf("find k8s.io/api: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "testdata", "*", "*.pb"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		g, err := readGolden(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if g != nil {
			all = append(all, g)
		}
	}
	if len(all) < 5*150 {
		return nil, fmt.Errorf("only %d golden objects of %d files: k8s.io/api has more", len(all), len(files))
	}
	return all, nil
})

// eachGolden calls f for each golden object of every Kubernetes version present.
func eachGolden(t *testing.T, f func(t *testing.T, g *goldenObject)) {
	t.Helper()
	all, err := goldens()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range all {
		f(t, g)
	}
}

// readGolden returns nil if the file does not hold an object.
func readGolden(file string) (*goldenObject, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var u runtime.Unknown
	if err := u.Unmarshal(b[len(protoPrefix):]); err != nil || noObjects[u.Kind] {
		return nil, err
	}
	raw, kind, err := Unwrap(b)
	if err != nil || kind != u.Kind || !bytes.Equal(raw, u.Raw) {
		return nil, fmt.Errorf("unwrapped: kind %q, %w", kind, err)
	}
	var p metav1.PartialObjectMetadata
	if err := p.Unmarshal(u.Raw); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(strings.TrimSuffix(file, ".pb") + ".json")
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return nil, err
	}
	return &goldenObject{
		name: filepath.Join(filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".pb")),
		gvk:  u.GroupVersionKind(),
		raw:  map[Format][]byte{Protobuf: u.Raw, JSON: line.Bytes()},
		meta: p.ObjectMeta,
	}, nil
}

func (g *goldenObject) decode(t *testing.T, f Format, raw []byte) metav1.Object {
	t.Helper()
	o, err := scheme.Scheme.New(g.gvk)
	if err != nil { // a removed kind, or one that no client type exists for
		o = &metav1.PartialObjectMetadata{}
	}
	if f == JSON {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(raw, o)
	} else {
		err = o.(interface{ Unmarshal([]byte) error }).Unmarshal(raw)
	}
	if err != nil {
		t.Fatalf("%s: decode %s: %v", g.name, f, err)
	}
	return o.(metav1.Object)
}

func (g *goldenObject) want() Meta {
	m := g.meta
	return Meta{Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), ResourceVersion: m.ResourceVersion}
}

func (g *goldenObject) check(t *testing.T, what string, f Format, o Object, err error) {
	t.Helper()
	want := g.want()
	want.Typed = true
	switch {
	case err != nil:
		t.Errorf("%s: %s %s: %v", g.name, f, what, err)
	case o.Meta != want || o.Format != f:
		t.Errorf("%s: %s %s: %+v in %s, want %+v", g.name, f, what, o.Meta, o.Format, want)
	case !bytes.Equal(o.Raw, g.raw[f]):
		t.Errorf("%s: %s %s: different bytes", g.name, f, what)
	}
}

func TestGoldensAreCutUnchanged(t *testing.T) {
	eachGolden(t, func(t *testing.T, g *goldenObject) {
		apiVersion, kind := g.gvk.ToAPIVersionAndKind()
		for f, raw := range g.raw {
			item := raw
			if f == JSON { // items of a typed list have no kind
				head := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind, apiVersion)
				item = append([]byte("{"), bytes.TrimPrefix(raw, []byte(head))...)
			}
			meta := metav1.ListMeta{ResourceVersion: "7", Continue: "c"}
			body := rawList{meta, [][]byte{item, item}}.body(t, f, apiVersion, kind+"List")
			l := NewList(f, iotest.HalfReader(bytes.NewReader(body)))
			for range 2 {
				o, err := l.Next()
				g.check(t, "item", f, o, err)
			}
			if _, err := l.Next(); !errors.Is(err, io.EOF) || l.Meta() != (ListMeta{"7", "c"}) {
				t.Errorf("%s: end of the list: %v, %+v", g.name, err, l.Meta())
			}
			var stream []byte
			for _, e := range []string{Added, Modified, Deleted} {
				stream = append(stream, frame(t, f, e, apiVersion, kind, raw)...)
			}
			w := NewWatch(f, iotest.HalfReader(bytes.NewReader(stream)))
			for _, e := range []string{Added, Modified, Deleted} {
				ev, err := w.Next()
				g.check(t, e, f, ev.Object, err)
				if ev.Type != e || ev.InitialEnd {
					t.Errorf("%s: event %+v, want %s", g.name, ev, e)
				}
			}
			if _, err := w.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: end of the watch: %v", g.name, err)
			}
		}
	})
}

func TestGoldensAreRead(t *testing.T) {
	eachGolden(t, func(t *testing.T, g *goldenObject) {
		for f, raw := range g.raw {
			want := g.want()
			want.Typed = f == JSON
			if m, err := ReadMeta(f, raw); err != nil || m != want {
				t.Errorf("%s: %s: %+v, %v, want %+v", g.name, f, m, err, want)
			}
			if labels, err := labelsOf(f, raw); err != nil || !reflect.DeepEqual(labels, g.meta.Labels) {
				t.Errorf("%s: %s: labels %v, %v", g.name, f, labels, err)
			}
			if sum, ok := Fingerprint(f, raw); !ok || sum != plainFingerprint(g.meta, len(raw)) {
				t.Errorf("%s: %s: fingerprint %x, %v", g.name, f, sum, ok)
			}
			if p, err := DecodeMetadata(f, raw); err != nil || !reflect.DeepEqual(p.ObjectMeta, g.decodedMeta(t, f)) {
				t.Errorf("%s: %s: metadata %+v, %v", g.name, f, p, err)
			}
		}
	})
}

// decodedMeta decodes the metadata with the format's plain decoder.
func (g *goldenObject) decodedMeta(t *testing.T, f Format) metav1.ObjectMeta {
	t.Helper()
	if f == Protobuf {
		return g.meta
	}
	var p metav1.PartialObjectMetadata
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(g.raw[JSON], &p); err != nil {
		t.Fatal(err)
	}
	return p.ObjectMeta
}

func TestGoldensWithoutManagedFields(t *testing.T) {
	eachGolden(t, func(t *testing.T, g *goldenObject) {
		for f, raw := range g.raw {
			before := bytes.Clone(raw)
			less := DropManagedFields(f, raw)
			if !bytes.Equal(raw, before) {
				t.Errorf("%s: %s: the object's own bytes were changed", g.name, f)
			}
			want := g.decode(t, f, raw)
			if want.GetManagedFields() == nil {
				t.Fatalf("%s: %s: nothing to drop", g.name, f)
			}
			want.SetManagedFields(nil)
			if got := g.decode(t, f, less); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s: %s", g.name, f, less)
			}
			if again := DropManagedFields(f, less); &again[0] != &less[0] {
				t.Errorf("%s: %s: copied although there was nothing to drop", g.name, f)
			}
		}
	})
}
