package informertest_test

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer/informertest"
)

// A list is refused once, as by a busy server; Kubernetes clients retry.
func ExampleServer_Misbehave() {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	server := informertest.NewServer()
	server.Serve(pods, "Pod")
	server.Put(pods, "shop", "web-0", map[string]any{"spec": map[string]any{"nodeName": "node-1"}})
	server.Misbehave(informertest.Fault{On: informertest.Lists, Code: http.StatusServiceUnavailable, Times: 1})

	client := http.Client{Transport: server.Config().Transport}
	for range 2 {
		resp, err := client.Get("http://any/api/v1/namespaces/shop/pods")
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.Status)
	}
	for _, r := range server.Recorded() {
		fmt.Println(r.Path)
	}

	// Output:
	// 503 Service Unavailable
	// 200 OK
	// /api/v1/namespaces/shop/pods
	// /api/v1/namespaces/shop/pods
}
