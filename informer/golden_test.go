package informer

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tattler-dev/tattler/informer/internal/compact"
	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/lossy.txt")

// golden is one object of k8s.io/api/testdata, in one of the formats.
type golden struct {
	release string // HEAD, v1.36.0, …
	kind    schema.GroupVersionKind
	format  wire.Format
	body    []byte // what the API server would send
}

func (g *golden) String() string {
	return fmt.Sprintf("%s %s.%s.%s %v", g.release, cmp.Or(g.kind.Group, "core"), g.kind.Version, g.kind.Kind, g.format)
}

// goldens reads the objects from the module cache.
func goldens(t *testing.T) []golden {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "*", "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	for _, f := range files {
		base, ext := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f)), filepath.Ext(f)
		format := map[string]wire.Format{".pb": wire.Protobuf, ".json": wire.JSON}[ext]
		parts := strings.Split(base, ".")
		if format == 0 || strings.Contains(base, "after_roundtrip") || len(parts) < 3 {
			continue
		}
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n := len(parts)
		group := strings.Join(parts[:n-2], ".")
		if group == "core" {
			group = ""
		}
		all = append(all, golden{filepath.Base(filepath.Dir(f)), schema.GroupVersionKind{Group: group, Version: parts[n-2], Kind: parts[n-1]}, format, body})
	}
	return all
}

// TestGoldens slices, packs and decodes every object, and compares the result with that of Kubernetes' decoder.
func TestGoldens(t *testing.T) {
	var p compact.Packer
	kinds := map[schema.GroupVersionKind]bool{}
	lossy := map[string]bool{}
	for _, g := range goldens(t) {
		obj, err := scheme.Scheme.New(g.kind)
		if err != nil {
			continue // not a storable kind: a list or options
		}
		if _, ok := obj.(Object); !ok {
			continue
		}
		o := g.slice(t)
		v := p.Pack(o.Format, o.UID, o.ResourceVersion, o.Raw)
		raw, err := v.Append(nil)
		if err != nil || string(raw) != string(o.Raw) {
			t.Errorf("%v: packing changed the bytes: %v", &g, err)
		}
		if g.format == wire.JSON {
			g.checkMaps(t, raw)
		}
		if g.checkTyped(t, obj, raw) {
			lossy[fmt.Sprintf("%s %s.%s.%s", g.release, cmp.Or(g.kind.Group, "core"), g.kind.Version, g.kind.Kind)] = true
		}
		kinds[g.kind] = true
	}
	if len(kinds) < 100 {
		t.Errorf("only %d kinds were compared", len(kinds))
	}
	compareLossy(t, lossy)
}

// slice cuts the object out of a list, as read from the wire.
func (g *golden) slice(t *testing.T) wire.Object {
	t.Helper()
	if g.format == wire.JSON {
		body := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"7"},"items":[%s]}`,
			g.kind.Kind+"List", g.kind.GroupVersion(), g.body)
		return g.first(t, wire.NewList(wire.JSON, strings.NewReader(body)))
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(g.body[4:]); err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	unknown.Kind += "List"
	unknown.Raw = protobufList("7", unknown.Raw)
	body, err := unknown.Marshal()
	if err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	return g.first(t, wire.NewList(wire.Protobuf, strings.NewReader("k8s\x00"+string(body))))
}

func (g *golden) first(t *testing.T, l wire.List) wire.Object {
	t.Helper()
	o, err := l.Next()
	if err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	o.Raw = slices.Clone(o.Raw)
	return o
}

// checkMaps proves that a view of JSON as maps loses nothing.
func (g *golden) checkMaps(t *testing.T, raw []byte) {
	t.Helper()
	var want map[string]any
	if err := utiljson.Unmarshal(g.body, &want); err != nil {
		t.Fatal(err)
	}
	var obj Object
	parts := plans.NewTable(1 << 20)
	for round, parts := range []*plans.Table{parts, parts, parts, nil} { // shares nothing, adds parts, reuses them; private
		var err error
		if obj, _, err = decodeUnstructured(parts, wire.JSON, raw); err != nil {
			t.Errorf("%v: %v", g, err)
			return
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || !reflect.DeepEqual(u.Object, want) {
			t.Errorf("%v: in round %d the map differs:\n%s", g, round, gocmp.Diff(want, u.Object))
		}
	}
	back, err := encodeUnstructured(wire.JSON, obj)
	if err != nil {
		t.Fatal(err)
	}
	var again map[string]any
	if err := utiljson.Unmarshal(back, &again); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("%v: the map written again differs: %v", g, err)
	}
}

// checkTyped compares the view with the plain decode, and reports whether fields were lost.
func (g *golden) checkTyped(t *testing.T, want runtime.Object, raw []byte) (lossy bool) {
	t.Helper()
	c := newCodec(reflect.TypeOf(want), g.kind)
	got, r, err := c.decode(nil, g.format, raw)
	if err != nil {
		t.Errorf("%v: %v", g, err)
		return false
	}
	if g.format == wire.JSON {
		err = json.Unmarshal(g.body, want)
	} else {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(g.body, nil, want)
	}
	if err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	want.GetObjectKind().SetGroupVersionKind(g.kind)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v: the object differs:\n%s", g, gocmp.Diff(want, got))
	}
	return r.Lossy
}

// compareLossy compares the kinds that lose fields with the list that is checked in.
func compareLossy(t *testing.T, lossy map[string]bool) {
	t.Helper()
	var lines []string
	for line := range lossy {
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	got, file := strings.Join(lines, ""), filepath.Join("testdata", "lossy.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("kinds whose typed view loses fields differ from %s (run with -update):\n%s", file, diff)
	}
}

// protobufList is the message of a list with one item.
func protobufList(version string, item []byte) []byte {
	meta := append([]byte{2<<3 | 2, byte(len(version))}, version...)
	list := append([]byte{1<<3 | 2, byte(len(meta))}, meta...)
	list = append(list, 2<<3|2)
	for n := len(item); ; n >>= 7 {
		if n < 0x80 {
			list = append(list, byte(n))
			break
		}
		list = append(list, byte(n)|0x80)
	}
	return append(list, item...)
}
