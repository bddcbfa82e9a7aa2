package clientgo

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer/internal/samples"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// rawItems packs versions of pods as the server sends them, in order for each pod.
func rawItems(p *packing, pods, versions int) [][]*item {
	c := newCodec(reflect.TypeFor[*corev1.Pod](), p.parts)
	f := &form{codec: c, undecodable: &undecodableLog{}}
	g := samples.New(1)
	all := make([][]*item, pods)
	for i := range all {
		pod := g.Pod(g.App(i/10), i%10)
		for v := range versions {
			pod.ResourceVersion = fmt.Sprint(1000 + v)
			pod.Status.Conditions[0].LastTransitionTime = metav1.Unix(int64(v+1), 0)
			o := samples.Encode(wire.Protobuf, pod)
			all[i] = append(all[i], &item{v: p.packer.Pack(wire.Protobuf, string(pod.UID), pod.ResourceVersion, o.Raw), form: f, weight: c.weigh(len(o.Raw))})
		}
	}
	return all
}

// TestDecodeNear: an object decoded from another version equals one decoded alone, and shares the unchanged parts.
func TestDecodeNear(t *testing.T) {
	p := newPacking(false)
	for _, versions := range rawItems(p, 20, 3) {
		was := versions[0].decode()
		for _, it := range versions[1:] {
			want := must[any](t)(it.form.codec.decode(must[[]byte](t)(it.v.Append(nil))))
			got := it.decodeNear(versions[0], was)
			if it.heap() < versions[0].heap() {
				t.Errorf("it weighs %d, and the version that it shares with %d", it.heap(), versions[0].heap())
			}
			if !reflect.DeepEqual(got, must[any](t)(it.tryDecode())) || got.(*corev1.Pod).ResourceVersion != want.(*corev1.Pod).ResourceVersion {
				t.Fatalf("%+v, want %+v", got, want)
			}
			if &got.(*corev1.Pod).Spec.Containers[0] != &was.(*corev1.Pod).Spec.Containers[0] {
				t.Error("containers are decoded again")
			}
		}
		if versions[1].decodeNear(nil, was) == nil || versions[1].decodeNear(versions[0], nil) == nil {
			t.Error("without another version, it is not decoded")
		}
	}
}

// BenchmarkUpdate decodes both versions of an update of 2,000 pods, as for a handler that finds neither decoded.
func BenchmarkUpdate(b *testing.B) {
	for _, near := range []bool{false, true} {
		b.Run(map[bool]string{false: "each anew", true: "the old from the new"}[near], func(b *testing.B) {
			all := rawItems(newPacking(false), 2000, 2)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				was, is := all[n%len(all)][0], all[n%len(all)][1]
				obj := is.decode()
				if near {
					_ = was.decodeNear(is, obj)
				} else {
					_ = was.decode()
				}
			}
		})
	}
}
