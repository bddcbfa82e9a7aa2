package informer_test

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// memory is a range of memory that is writable through an object.
type memory struct {
	begin, end uintptr
	what       string
}

// writable returns all memory that is writable through v: pointer targets, arrays of slices, maps.
func writable(v reflect.Value, path string, all []memory) []memory {
	add := func(p unsafe.Pointer, size uintptr) bool {
		m := memory{uintptr(p), uintptr(p) + size, path}
		if size == 0 || slices.Contains(all, m) {
			return false
		}
		all = append(all, m)
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*time.Location]() && !v.IsNil() && add(v.UnsafePointer(), v.Type().Elem().Size()) {
			all = writable(v.Elem(), path, all)
		}
	case reflect.Interface:
		if !v.IsNil() {
			all = writable(v.Elem(), path, all)
		}
	case reflect.Slice:
		if add(v.UnsafePointer(), uintptr(v.Cap())*v.Type().Elem().Size()) {
			for i := range v.Len() {
				all = writable(v.Index(i), fmt.Sprintf("%s[%d]", path, i), all)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			all = writable(v.Index(i), fmt.Sprintf("%s[%d]", path, i), all)
		}
	case reflect.Map:
		if !v.IsNil() && add(v.UnsafePointer(), 1) {
			for i := v.MapRange(); i.Next(); {
				all = writable(i.Value(), fmt.Sprintf("%s[%v]", path, i.Key()), all)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			all = writable(v.Field(i), path+"."+v.Type().Field(i).Name, all)
		}
	}
	return all
}

func writableOf(obj any) []memory { return writable(reflect.ValueOf(obj), "", nil) }

// overlap returns one place that is in both; or empty.
func overlap(a, b []memory) string {
	for _, m := range a {
		for _, n := range b {
			if n.begin < m.end && m.begin < n.end {
				return m.what + " and " + n.what
			}
		}
	}
	return ""
}

// richPod has most kinds of parts that pods share.
func richPod(app, node string) map[string]any {
	p := podFields(app, node)
	p["metadata"].(map[string]any)["annotations"] = map[string]any{"a": "b"}
	p["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": true}}
	p["metadata"].(map[string]any)["finalizers"] = []any{"f"}
	p["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
		"manager": "m", "operation": "Update", "time": "2024-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}},
	}}
	p["spec"] = map[string]any{
		"nodeName": node, "terminationGracePeriodSeconds": int64(30), "nodeSelector": map[string]any{"a": "b"},
		"securityContext": map[string]any{"runAsUser": int64(1), "supplementalGroups": []any{int64(1), int64(2)}},
		"tolerations":     []any{map[string]any{"key": "k", "tolerationSeconds": int64(300)}},
		"volumes": []any{
			map[string]any{"name": "tmp", "emptyDir": map[string]any{"sizeLimit": "0.5"}},
			map[string]any{"name": "cm", "configMap": map[string]any{"name": "cm", "defaultMode": int64(420), "items": []any{map[string]any{"key": "k", "path": "p"}}}},
		},
		"containers": []any{map[string]any{
			"name": "main", "image": "web:1", "command": []any{"web", "-v"},
			"env":           []any{map[string]any{"name": "N", "valueFrom": map[string]any{"resourceFieldRef": map[string]any{"resource": "limits.cpu", "divisor": "0.5"}}}},
			"resources":     map[string]any{"limits": map[string]any{"cpu": "0.5", "memory": "1.5Gi", "huge": "123456789012345678901234567890"}},
			"livenessProbe": map[string]any{"httpGet": map[string]any{"port": "web", "httpHeaders": []any{map[string]any{"name": "n", "value": "v"}}}},
		}},
	}
	return p
}

// everyRead reads an object in every way that a view offers.
func everyRead[T informer.Object](t *testing.T, server *informertest.Server, v *informer.Informer[T], put func(node string)) map[string]T {
	t.Helper()
	all := map[string]T{}
	mine := func(what string, seq iter.Seq2[T, error]) {
		for obj, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
			if obj.GetName() == "x7" {
				all[what] = obj
			}
		}
	}
	for i := range 4 { // an object that is read twice is kept decoded
		all[fmt.Sprint("Get ", i)] = must(v.Get("s", "x7"))(t)
	}
	for i := range 3 {
		mine(fmt.Sprint("All ", i), v.All())
		mine(fmt.Sprint("List ", i), v.List("s", nil))
	}
	ix := informer.AddIndex(v, "name", func(obj T) []string { return []string{obj.GetName()} })
	mine("an index that is being built", ix.Get("x7"))
	synctest.Wait()
	for i := range 3 {
		mine(fmt.Sprint("an index ", i), ix.In("s", "x7"))
	}
	s := must(v.Subscribe("all", informer.SubscribeOptions{SkipInitial: true, Mode: informer.Every}))(t)
	defer s.Stop()
	for i := range 3 {
		put(fmt.Sprint("node-", i))
		c := must(s.Next(t.Context()))(t)
		all[fmt.Sprint("Old ", i)], all[fmt.Sprint("New ", i)] = must(c.Old())(t), must(c.New())(t)
		all[fmt.Sprint("Old again ", i)], all[fmt.Sprint("New again ", i)] = must(c.Old())(t), must(c.New())(t)
		all[fmt.Sprint("Get after ", i)] = must(v.Get("s", "x7"))(t)
	}
	return all
}

// testPrivate: modifying an object that a view returned affects no other reader.
func testPrivate[T informer.Object](t *testing.T, storage informer.Storage, open func(*informer.Cluster, ...informer.Option) (*informer.Informer[T], error)) {
	t.Helper()
	bubble(t, informer.Options{AuditEvery: -1}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range 8 {
			server.Put(pods, "s", fmt.Sprint("x", i), richPod("same", "node"))
		}
		v := must(open(c, informer.WithStorage(storage)))(t)
		synced(t, c)
		shared := map[string]T{}
		for obj, err := range v.Shared().All() {
			shared["another "+obj.GetName()] = must(obj, err)(t)
		}
		watcher := must(v.Shared().Subscribe("shared", informer.SubscribeOptions{}))(t)
		defer watcher.Stop()
		put := func(node string) { server.Put(pods, "s", "x7", richPod("same", node)) }
		mine := everyRead(t, server, v, put)
		for what, obj := range everyRead(t, server, v.Shared(), put) {
			shared[what] = obj
		}
		theirs := map[string][]memory{}
		for what, obj := range shared {
			theirs[what] = writableOf(obj)
		}
		names := map[string][]memory{}
		for what, obj := range mine {
			own := writableOf(obj)
			if len(own) < 2 {
				t.Errorf("%s: only %d pieces of memory", what, len(own))
			}
			for other, m := range theirs {
				if both := overlap(own, m); both != "" {
					t.Errorf("%T in storage %d: %s has memory of the shared object of %s: %s", obj, storage, what, other, both)
				}
			}
			for other, m := range names {
				if both := overlap(own, m); both != "" {
					t.Errorf("%T in storage %d: %s and %s have memory in common: %s", obj, storage, what, other, both)
				}
			}
			names[what] = own
		}
	})
}

func TestPrivateObjectsShareNothing(t *testing.T) {
	for _, storage := range []informer.Storage{informer.CompactStorage, informer.AutoStorage, informer.LiveStorage} {
		testPrivate(t, storage, informer.For[*corev1.Pod])
		testPrivate(t, storage, func(c *informer.Cluster, o ...informer.Option) (*informer.Informer[*corev1.Pod], error) {
			return informer.For[*corev1.Pod](c, append(o, func(o *informer.ViewOptions) { // JSON
				o.Transform = &informer.Transform{Name: "none", Apply: func(*unstructured.Unstructured) error { return nil }}
			})...)
		})
		testPrivate(t, storage, func(c *informer.Cluster, o ...informer.Option) (*informer.Informer[*unstructured.Unstructured], error) {
			return informer.Unstructured(c, pods, o...)
		})
		testPrivate(t, storage, func(c *informer.Cluster, o ...informer.Option) (*informer.Informer[*metav1.PartialObjectMetadata], error) {
			return informer.Metadata(c, pods, o...)
		})
	}
}

// TestSharedObjectsShare: the test above would notice sharing.
func TestSharedObjectsShare(t *testing.T) {
	bubble(t, informer.Options{AuditEvery: -1}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range 8 {
			server.Put(pods, "s", fmt.Sprint("x", i), richPod("same", "node"))
		}
		v := must(informer.For[*corev1.Pod](c))(t).Shared()
		synced(t, c)
		a, b := alike(t, v)
		if overlap(writableOf(must(v.Get("s", a.Name))(t)), writableOf(must(v.Get("s", b.Name))(t))) == "" {
			t.Error("the parts that two pods share are not found")
		}
	})
}

// TestTransformsOwnTheirObjects: a transform receives a private object, which it may keep and modify.
func TestTransformsOwnTheirObjects(t *testing.T) {
	var mu sync.Mutex
	var kept []*corev1.Pod
	bubble(t, informer.Options{AuditEvery: -1, DetectMutation: true}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
		for i := range 8 {
			server.Put(pods, "s", fmt.Sprint("x", i), richPod("same", "node"))
		}
		source := must(c.Source(pods, informer.SourceOptions{Format: informer.Protobuf, Storage: informer.LiveStorage,
			Transform: informer.TransformOf("keep", 1, func(p *corev1.Pod) error {
				mu.Lock()
				defer mu.Unlock()
				p.Labels["kept"] = "yes"
				kept = append(kept, p)
				return nil
			})}))(t)
		v := must(informer.For[*corev1.Pod](c, informer.On(source)))(t).Shared()
		informer.AddIndex(v, "app", func(p *corev1.Pod) []string { return []string{p.Labels["app"]} })
		synced(t, c)
		server.Put(pods, "s", "x7", richPod("same", "other"))
		synctest.Wait()
		for p, err := range v.All() {
			theirs := writableOf(must(p, err)(t))
			for _, own := range kept {
				if both := overlap(writableOf(own), theirs); both != "" {
					t.Errorf("%s: a transform's object has memory of a shared one: %s", p.Name, both)
				}
			}
		}
		if len(kept) < 12 {
			t.Errorf("the transform got %d objects", len(kept))
		}
	})
}

// TestSharedQuantities: concurrent readers may call String on a shared object's quantities, which cache their text.
func TestSharedQuantities(t *testing.T) {
	for _, format := range []informer.Format{informer.Protobuf, informer.JSON} {
		bubble(t, informer.Options{AuditEvery: -1}, func(t *testing.T, server *informertest.Server, c *informer.Cluster) {
			for i := range 8 {
				server.Put(pods, "s", fmt.Sprint("x", i), richPod("same", "node"))
			}
			source := must(c.Source(pods, informer.SourceOptions{Format: format}))(t)
			v := must(informer.For[*corev1.Pod](c, informer.On(source)))(t).Shared()
			synced(t, c)
			var readers sync.WaitGroup
			for range 8 {
				readers.Go(func() {
					for p, err := range v.List("s", nil) {
						if err != nil {
							t.Error(err)
							return
						}
						size := p.Spec.Volumes[0].EmptyDir.SizeLimit.String()
						divisor := p.Spec.Containers[0].Env[0].ValueFrom.ResourceFieldRef.Divisor.String()
						if size != "500m" || divisor != "500m" || p.Spec.Containers[0].Resources.Limits.Cpu().String() != "500m" {
							t.Errorf("%s, %s", size, divisor)
						}
					}
				})
			}
			readers.Wait()
		})
	}
}
