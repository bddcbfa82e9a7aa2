package clientgo

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	plans "github.com/tattler-dev/tattler/informer/internal/decode"
	"github.com/tattler-dev/tattler/informer/internal/wire"
)

// someMetadata returns metadata in every shape that servers send.
func someMetadata() map[string]metav1.PartialObjectMetadata {
	then := metav1.NewTime(time.Unix(1_700_000_000, 0))
	kind := metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}
	return map[string]metav1.PartialObjectMetadata{
		"empty": {},
		"small": {TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "u1", ResourceVersion: "1"}},
		"full": {TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{
			Name: "web-0", GenerateName: "web-", Namespace: "shop", UID: "u1", ResourceVersion: "12", Generation: 3,
			CreationTimestamp: then, DeletionTimestamp: &then, DeletionGracePeriodSeconds: new(int64),
			Labels: map[string]string{"app": "web", "empty": ""}, Annotations: map[string]string{"note": "é <&>"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: types.UID("u2"), Controller: ptr(true)}},
			Finalizers:      []string{"example.com/finalizer"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &then, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`), Subresource: "status",
			}},
		}},
	}
}

// TestMetadataShares: metadata with shared parts equals what apimachinery's decoders make of the same bytes.
func TestMetadataShares(t *testing.T) {
	for name, m := range someMetadata() {
		protobuf := must[[]byte](t)(m.Marshal())
		text := must[[]byte](t)(json.Marshal(&m))
		for f, raw := range map[wire.Format][]byte{wire.Protobuf: protobuf, wire.JSON: text} {
			c := metadataCodec(f, 2, plans.NewTable(1<<20))
			want := must[any](t)(c.decode(raw))
			var objs [3]*metav1.PartialObjectMetadata
			for i := range objs {
				obj, _, ok := c.share(raw)
				if !ok || !reflect.DeepEqual(obj, want) {
					t.Fatalf("%s, %v: %+v, %v, want %+v", name, f, obj, ok, want)
				}
				objs[i] = obj.(*metav1.PartialObjectMetadata)
			}
			if name != "full" {
				continue
			}
			a, b := objs[1], objs[2]
			if reflect.ValueOf(a.Labels).Pointer() != reflect.ValueOf(b.Labels).Pointer() || &a.ManagedFields[0] != &b.ManagedFields[0] {
				t.Errorf("%v: equal parts are there twice", f)
			}
		}
	}
}

// TestMetadataThatSharesNothing: metadata that protobuf cannot represent is decoded from the JSON unchanged.
func TestMetadataThatSharesNothing(t *testing.T) {
	for _, raw := range []string{
		`{"metadata":{"name":"a","labels":{}}}`,
		`{"metadata":{"name":"a","finalizers":[]}}`,
		`{"metadata":{"name":"a","managedFields":[]}}`,
		`{"metadata":{"name":1}}`,
		`{"metadata":`,
	} {
		c := metadataCodec(wire.JSON, 2, plans.NewTable(1<<20))
		want, wantErr := wire.DecodeMetadata(wire.JSON, []byte(raw))
		got, _, err := c.shared([]byte(raw))
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s: %+v, %v, want %+v, %v", raw, got, err, want, wantErr)
		}
		if _, _, ok := c.share([]byte(raw)); ok {
			t.Errorf("%s was encoded as protobuf", raw)
		}
	}
}
