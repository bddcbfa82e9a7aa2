package field

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// aPod is a typical pod: two containers, managed fields, about 7 KB of protobuf.
func aPod() *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-5d7f9c8b6d-x2x7k", Namespace: "shop", UID: "6f1c4a0e-8f5f-4a53-9a36-2d5f0a3a7c11", ResourceVersion: "123456789",
			Labels:        map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "5d7f9c8b6d", "team": "shop"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{` + strings.Repeat(`"f:some":{".":{}},`, 180) + `"f:x":{}}}`)}},
		},
		Spec:   corev1.PodSpec{NodeName: "node-123", ServiceAccountName: "web"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7", PodIPs: []corev1.PodIP{{IP: "10.0.0.7"}}},
	}
	for _, name := range []string{"main", "proxy"} {
		c := corev1.Container{Name: name, Image: "registry.example.com/shop/" + name + ":1.2.3"}
		for i := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", i), Value: fmt.Sprint("http://", name, ".shop.svc.cluster.local:", 8000+i)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Image: c.Image, Ready: true})
	}
	for i := range 5 {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprint("Condition", i)), Status: "True"})
	}
	return pod
}

// BenchmarkRead compares reading a field with decoding its object.
func BenchmarkRead(b *testing.B) {
	pod := aPod()
	raw, err := pod.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		b.Fatal(err)
	}
	typ := reflect.TypeFor[corev1.Pod]()
	for _, path := range []string{"spec.nodeName", `metadata.labels["team"]`, "spec.containers[*].image"} {
		for name, of := range map[string]struct {
			typ reflect.Type
			f   wire.Format
			raw []byte
		}{"protobuf": {typ, wire.Protobuf, raw}, "JSON": {typ, wire.JSON, text}, "JSON, unstructured": {nil, wire.JSON, text}} {
			p, err := Compile(of.typ, path)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(path+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(of.raw)))
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := p.Read(of.f, of.raw); !ok {
						b.Fatal("Read gave up")
					}
				}
			})
		}
	}
	plan, table := decode.For(typ), decode.NewTable(1<<20)
	for name, f := range map[string]func() bool{
		"decode/generated":    func() bool { return new(corev1.Pod).Unmarshal(raw) == nil },
		"decode/plan":         func() bool { _, ok := plan.Decode(nil, raw, new(corev1.Pod)); return ok },
		"decode/plan, shared": func() bool { _, ok := plan.Decode(table, raw, new(corev1.Pod)); return ok },
		"decode/JSON, unstructured": func() bool {
			var u map[string]any
			return utiljson.Unmarshal(text, &u) == nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !f() {
					b.Fatal("cannot decode")
				}
			}
		})
	}
	b.Run("decode/Size", func(b *testing.B) {
		for b.Loop() {
			if pod.Size() != len(raw) {
				b.Fatal("another size")
			}
		}
	})
}
