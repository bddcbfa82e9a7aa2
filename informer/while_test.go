package informer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// TestRunWhile: the cluster serves while do runs, and returns the right errors.
func TestRunWhile(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		why  string
		do   func(ctx context.Context, end func(), view *informer.Informer[*corev1.Pod], c *informer.Cluster) error
		want string
	}{
		{"it ends", func(context.Context, func(), *informer.Informer[*corev1.Pod], *informer.Cluster) error { return nil }, ""},
		{"it fails", func(context.Context, func(), *informer.Informer[*corev1.Pod], *informer.Cluster) error { return boom }, "boom"},
		{"on request", func(ctx context.Context, end func(), view *informer.Informer[*corev1.Pod], _ *informer.Cluster) error {
			for _, err := range view.Changes(ctx, "test") {
				if err != nil {
					return err
				}
				end()
			}
			return boom
		}, ""},
		{"it fails when it is asked to end", func(ctx context.Context, end func(), _ *informer.Informer[*corev1.Pod], _ *informer.Cluster) error {
			end()
			<-ctx.Done()
			return boom
		}, "boom"},
		{"reads go on after the request", func(ctx context.Context, end func(), view *informer.Informer[*corev1.Pod], _ *informer.Cluster) error {
			end()
			<-ctx.Done()
			return view.Wait(context.Background())
		}, ""},
		{"a second Run", func(ctx context.Context, _ func(), _ *informer.Informer[*corev1.Pod], c *informer.Cluster) error {
			return c.RunWhile(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}, "run cluster: it was run before"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer()
			s.Serve(pods, "Pod")
			s.Put(pods, "a", "one", nil)
			c := must(informer.NewCluster(s.Config(), informer.Options{AuditEvery: -1}))(t)
			view := must(informer.For[*corev1.Pod](c))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := c.RunWhile(ctx, func(ctx context.Context) error { return tc.do(ctx, cancel, view, c) })
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
			}
			if _, err := view.Subscribe("test", informer.SubscribeOptions{}); !errors.Is(err, informer.ErrClosed) {
				t.Errorf("%s: the cluster runs still: %v", tc.why, err)
			}
		})
	}
}
