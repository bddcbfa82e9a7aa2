package setup

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/capture"
)

// countParallel is how many counts are on their way at a time.
const countParallel = 8

// Counter asks an API server how many objects a plan selects. It is safe for concurrent use.
type Counter struct {
	client rest.Interface
	slots  chan struct{}
}

// NewCounter returns a counter for a client configuration. It sends nothing yet.
func NewCounter(config *rest.Config) (*Counter, error) {
	d, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	return &Counter{client: d.RESTClient(), slots: make(chan struct{}, countParallel)}, nil
}

// partial asks for metadata alone: a Secret's data does not come here.
const partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Count asks for a list of one object, and how many more there are. more means that there are more than n: the server
// counts what a selector selects only by listing it.
func (c *Counter) Count(ctx context.Context, r capture.Resource, sel capture.Selected) (n int64, more bool, err error) {
	base := "/apis/" + r.Group
	if r.Group == "" {
		base = "/api"
	}
	q := c.client.Get().AbsPath(base, r.Version)
	if sel.Namespace != "" {
		q = q.Namespace(sel.Namespace)
	}
	q = q.Resource(r.Resource).Param("limit", "1").SetHeader("Accept", partial)
	for name, value := range map[string]string{"labelSelector": sel.Labels, "fieldSelector": sel.Fields} {
		if value != "" {
			q = q.Param(name, value)
		}
	}
	list, err := c.ask(ctx, q)
	if err != nil {
		return 0, false, err
	}
	n = int64(len(list.Items))
	if left := list.RemainingItemCount; left != nil {
		return n + *left, false, nil
	}
	return n, list.Continue != "", nil
}

// ask sends a request when a slot is free, and reads the answer.
func (c *Counter) ask(ctx context.Context, q *rest.Request) (list metav1.PartialObjectMetadataList, err error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return list, ctx.Err()
	}
	result := q.Do(ctx)
	if err := result.Error(); err != nil {
		return list, err
	}
	body, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	if err != nil {
		return list, fmt.Errorf("read the server's answer: %w", err)
	}
	return list, nil
}
