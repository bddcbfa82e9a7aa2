package informer

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tattler-dev/tattler/informer/internal/wire"
)

func TestPanicOfTransformHidesValues(t *testing.T) {
	tr := &Transform{Name: "redact", Apply: func(u *unstructured.Unstructured) error { panic(u.Object["data"]) }}
	_, err := tr.run(wire.JSON, []byte(`{"data":"CANARY"}`))
	if err == nil || !strings.Contains(err.Error(), "transform redact: panic with a string") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "CANARY") {
		t.Errorf("the error contains the value: %v", err)
	}
}
