package gen

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Widgets is the resource of the custom resources.
var Widgets = schema.GroupVersionResource{Group: "bench.tattler.dev", Version: "v1", Resource: "widgets"}

// Corpus is the recorded objects, as the API server returned them.
type Corpus struct {
	// Kubernetes is the version of the control plane.
	Kubernetes       string
	Workloads        []Workload
	Node             *unstructured.Unstructured
	Widgets          []*unstructured.Unstructured
	WidgetDefinition *unstructured.Unstructured
}

// Workload is a program with pods.
type Workload struct {
	Name string
	// Pods are a running pod, one that was restarted, one that is not ready, one that crashes, and for a Job one that
	// succeeded.
	Pods []*unstructured.Unstructured
}

//go:embed corpus/corpus.json.gz
var packed []byte

// corpus is the embedded corpus.
var corpus = sync.OnceValue(func() *Corpus {
	c := &Corpus{}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var text []byte
		if text, err = io.ReadAll(z); err == nil {
			err = json.Unmarshal(text, c)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("gen: read corpus: %v", err))
	}
	return c
})

// WidgetDefinition returns the CustomResourceDefinition of Widgets: a schema with lists that have merge keys, maps, and
// a part without a schema.
func WidgetDefinition() *unstructured.Unstructured { return corpus().WidgetDefinition.DeepCopy() }
