package openapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// files are documents of a 1.36 API server, reduced to the kinds that the tests name.
var files = map[string]string{
	"/openapi/v3/api/v1":                       "core.json",
	"/openapi/v3/apis/apps/v1":                 "apps.json",
	"/openapi/v3/apis/batch/v1":                "batch.json",
	"/openapi/v3/apis/apiextensions.k8s.io/v1": "apiextensions.json",
	"/openapi/v3/apis/resource.k8s.io/v1":      "resource.json",
	"/openapi/v3/apis/example.com/v1":          "widgets.json",
}

func fromFiles(_ context.Context, p string) ([]byte, error) {
	name, ok := files[p]
	if !ok {
		return nil, errors.New("not found: " + p)
	}
	return os.ReadFile(path.Join("testdata", name))
}

func mustFor(t *testing.T, s *Schemas, group, version, kind string) diff.Schema {
	t.Helper()
	root, err := s.For(t.Context(), group, version, kind)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// walk follows a text such as spec.ports[].x; nil if the schema ends before.
func walk(s diff.Schema, text string) diff.Schema {
	for _, name := range strings.Split(text, ".") {
		name, isElem := strings.CutSuffix(name, "[]")
		if s == nil {
			return nil
		}
		if s = s.Field(name); s != nil && isElem {
			s = s.Elem()
		}
	}
	return s
}

func TestLists(t *testing.T) {
	s := New(fromFiles)
	for _, tc := range []struct {
		why                        string
		group, version, kind, path string
		typ                        diff.ListType
		keys                       []string
	}{
		{"one key, behind references", "apps", "v1", "Deployment", "spec.template.spec.containers", diff.ListMap, []string{"name"}},
		{"the list's keys win over the patch's", "apps", "v1", "Deployment", "spec.template.spec.containers[].ports", diff.ListMap, []string{"containerPort", "protocol"}},
		{"of the core group", "", "v1", "Service", "spec.ports", diff.ListMap, []string{"port", "protocol"}},
		{"a set", "", "v1", "Service", "metadata.finalizers", diff.ListSet, nil},
		{"atomic", "apps", "v1", "Deployment", "spec.template.spec.containers[].args", diff.ListAtomic, nil},
		{"atomic wins over a patch merge key", "batch", "v1", "Job", "status.conditions", diff.ListAtomic, nil},
		{"four keys, of which one may be absent", "resource.k8s.io", "v1", "ResourceClaim", "status.devices", diff.ListMap, []string{"driver", "device", "pool", "shareID"}},
		{"a custom resource", "example.com", "v1", "Widget", "spec.endpoints", diff.ListMap, []string{"host", "port"}},
		{"its set", "example.com", "v1", "Widget", "spec.tags", diff.ListSet, nil},
		{"below a key of the user's", "example.com", "v1", "Widget", "spec.pools.any.members", diff.ListMap, []string{"id"}},
		{"its metadata", "example.com", "v1", "Widget", "metadata.ownerReferences", diff.ListMap, []string{"uid"}},
		{"a schema that holds itself", "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "spec.versions[].schema.openAPIV3Schema.properties.a.properties.b.allOf[].x-kubernetes-validations", diff.ListMap, []string{"rule"}},
	} {
		at := walk(mustFor(t, s, tc.group, tc.version, tc.kind), tc.path)
		if at == nil {
			t.Errorf("%s: %s %s: no schema", tc.why, tc.kind, tc.path)
			continue
		}
		if typ, keys := at.List(); typ != tc.typ || !reflect.DeepEqual(keys, tc.keys) {
			t.Errorf("%s: %s %s: %v %v, want %v %v", tc.why, tc.kind, tc.path, typ, keys, tc.typ, tc.keys)
		}
	}
	for _, nothing := range []string{"spec.steps", "spec.free", "spec.nope", "spec.free.a.b"} {
		if at := walk(mustFor(t, s, "example.com", "v1", "Widget"), nothing); at != nil {
			t.Errorf("%s: a schema that says nothing was kept", nothing)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := New(fromFiles)
	for _, tc := range []struct {
		why, group, kind, elem, field string
		want                          any
	}{
		{"of a built-in kind", "", "Service", "spec.ports[]", "protocol", "TCP"},
		{"of a custom resource", "example.com", "Widget", "spec.endpoints[]", "port", 443.0},
		{"no default", "example.com", "Widget", "spec.endpoints[]", "host", nil},
		{"no field", "example.com", "Widget", "spec.endpoints[]", "nope", nil},
		{"no scalar", "apps", "Deployment", "spec.template", "spec", nil},
	} {
		if got := walk(mustFor(t, s, tc.group, "v1", tc.kind), tc.elem).Default(tc.field); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.why, got, tc.want)
		}
	}
}

// TestOddDocuments covers older and unusual servers.
func TestOddDocuments(t *testing.T) {
	const head = `{"components":{"schemas":{"K":{"x-kubernetes-group-version-kind":[{"group":"g","version":"v","kind":"K"}],"properties":{"l":`
	for _, tc := range []struct {
		why, list string
		typ       diff.ListType
		keys      []string
	}{
		{"only a patch merge key, as old conditions have", `{"x-kubernetes-patch-merge-key":"type","x-kubernetes-patch-strategy":"merge"}`, diff.ListMap, []string{"type"}},
		{"with a second strategy", `{"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"retainKeys,merge"}`, diff.ListMap, []string{"name"}},
		{"a patch that replaces", `{"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"replace"}`, diff.ListUnknown, nil},
		{"a map without keys", `{"x-kubernetes-list-type":"map"}`, diff.ListUnknown, nil},
		{"an unknown type", `{"x-kubernetes-list-type":"bag"}`, diff.ListUnknown, nil},
		{"references that go in a circle", `{"$ref":"#/components/schemas/loop"}`, diff.ListUnknown, nil},
		{"a reference to nothing", `{"$ref":"#/components/schemas/nope"}`, diff.ListUnknown, nil},
		{"a type next to a reference", `{"$ref":"#/components/schemas/nope","x-kubernetes-list-type":"set"}`, diff.ListSet, nil},
	} {
		doc := head + tc.list + `}},"loop":{"$ref":"#/components/schemas/loop"},"null":null}}}`
		s := New(func(context.Context, string) ([]byte, error) { return []byte(doc), nil })
		l := mustFor(t, s, "g", "v", "K").Field("l")
		if l == nil {
			t.Errorf("%s: no schema", tc.why)
			continue
		}
		if typ, keys := l.List(); typ != tc.typ || !reflect.DeepEqual(keys, tc.keys) {
			t.Errorf("%s: %v %v", tc.why, typ, keys)
		}
		if l.Elem() != nil || l.Field("x") != nil {
			t.Errorf("%s: has elements or fields", tc.why)
		}
	}
	for _, bad := range []string{"", "null", "{}", "<html>", `{"components":{"schemas":[]}}`} {
		s := New(func(context.Context, string) ([]byte, error) { return []byte(bad), nil })
		if root, err := s.For(t.Context(), "g", "v", "K"); err == nil || root != nil {
			t.Errorf("%q: %v, %v", bad, root, err)
		}
	}
}

// TestWithDiff: the differ uses the merge keys.
func TestWithDiff(t *testing.T) {
	s := mustFor(t, New(fromFiles), "", "v1", "Service")
	port := func(m map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(53), "protocol": "UDP"}, m}}}
	}
	changes := diff.Objects(port(map[string]any{"port": int64(53)}), port(map[string]any{"port": int64(53), "nodePort": int64(30053)}), s)
	if len(changes) != 1 || changes[0].Path.String() != "spec.ports[port=53,protocol=TCP].nodePort" {
		t.Errorf("got %v", changes)
	}
}

func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int32
		release := make(chan struct{})
		s := New(func(ctx context.Context, p string) ([]byte, error) {
			fetches.Add(1)
			<-release
			return fromFiles(ctx, p)
		})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := s.For(t.Context(), "example.com", "v1", "Widget"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.For(ctx, "example.com", "v1", "Widget"); !errors.Is(err, context.Canceled) {
			t.Errorf("a waiter that was cancelled got %v", err)
		}
		close(release)
		wg.Wait()
		if n := fetches.Load(); n != 1 {
			t.Errorf("%d fetches for one document", n)
		}
	})
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("server is away")
		fetches, answer := 0, away
		s := New(func(ctx context.Context, p string) ([]byte, error) {
			fetches++
			if answer != nil {
				return nil, answer
			}
			return fromFiles(ctx, p)
		})
		ask := func(kind string, want error, wantFetches int) {
			t.Helper()
			root, err := s.For(t.Context(), "example.com", "v1", kind)
			if !errors.Is(err, want) || (err == nil) != (root != nil) || fetches != wantFetches {
				t.Fatalf("%v, %v after %d fetches, want %v after %d", root, err, fetches, want, wantFetches)
			}
		}
		ask("Widget", away, 5) // after 0, 1, 3, 7 and 15 seconds; the next would be after 31
		ask("Widget", away, 5) // returned without a request
		time.Sleep(15 * time.Second)
		ask("Widget", away, 5)
		time.Sleep(time.Second)
		ask("Widget", away, 6) // and without another wait
		for range 10 {
			time.Sleep(lastRetry)
			ask("Widget", away, fetches+1) // and has an upper bound
		}
		answer = nil
		time.Sleep(lastRetry)
		ask("Widget", nil, fetches+1)
		n := fetches
		ask("Widget", nil, n) // kept
		time.Sleep(lastRetry)
		ask("Gadget", ErrUnknownKind, n+3) // perhaps not published yet: looked up again for a while,
		ask("Gadget", ErrUnknownKind, n+3) // but not at once,
		answer = away
		ask("Widget", nil, n+3) // while what is known stays known,
		time.Sleep(lastRetry)
		ask("Gadget", away, n+4)
		ask("Widget", nil, n+4) // also when the server is away
		s.Invalidate("example.com", "v1")
		ask("Widget", nil, n+5) // and when it may have changed
		ask("Gadget", away, n+9)
		answer = nil
		time.Sleep(lastRetry)
		ask("Widget", nil, n+10)
	})
}

// TestWait: a document that cannot be read for a moment is waited for, so that no list is compared without it. One that the
// server does not have is not.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		away := func() bool { return time.Since(begun) < 5*time.Second }
		s := New(func(ctx context.Context, p string) ([]byte, error) {
			if away() {
				return nil, errors.New("unavailable for a moment")
			}
			return fromFiles(ctx, p)
		})
		mustFor(t, s, "", "v1", "Service")
		if waited := time.Since(begun); waited != 7*time.Second {
			t.Errorf("waited for %v", waited)
		}
		begun = time.Now()
		s = New(func(context.Context, string) ([]byte, error) { return nil, fmt.Errorf("%w: forbidden", ErrRefused) })
		if _, err := s.For(t.Context(), "", "v1", "Service"); !errors.Is(err, ErrRefused) || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		s = New(func(context.Context, string) ([]byte, error) { cancel(); return nil, errors.New("away") })
		begun = time.Now()
		if _, err := s.For(ctx, "", "v1", "Service"); err == nil || time.Since(begun) != 0 {
			t.Errorf("the caller has ended: %v after %v", err, time.Since(begun))
		}
	})
}

// TestCancelled: a caller that goes away does not make others wait for the retry.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(func(ctx context.Context, p string) ([]byte, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return fromFiles(ctx, p)
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.For(ctx, "", "v1", "Service"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		mustFor(t, s, "", "v1", "Service")
	})
}

// TestTimeout: a server that never answers costs limited time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		start := time.Now()
		if _, err := s.For(t.Context(), "", "v1", "Service"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != fetchTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
