package informer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
)

// TestHold: a source that is opened while the cluster runs starts after the subscription, so that the subscription
// starts with the checkpoint's state.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			if err := all.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second)
		})
		server.Put(pods, "a", "p1", podFields("x", "node-2"))
		cluster := must(informer.NewCluster(server.Config(), informer.Options{Checkpoint: dir}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- cluster.Run(ctx) }()
		synctest.Wait()
		var s *informer.Subscription[*corev1.Pod]
		failed := errors.New("failed")
		err := cluster.Hold(func() error {
			all := must(informer.For[*corev1.Pod](cluster))(t)
			_ = cluster.Hold(func() error { return nil }) // the end of another Hold does not start it
			<-time.After(time.Minute)
			if st := all.Source().Status()[0]; st.Loaded || st.State != informer.Starting {
				t.Errorf("it runs: %+v", st)
			}
			s = must(all.Subscribe("late", informer.SubscribeOptions{SkipInitial: true, FromCheckpoint: true}))(t)
			must(informer.For[*corev1.Pod](cluster, informer.WithLabels("closed=yes")))(t).Close()
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("Hold: %v", err)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if c, err := s.Next(soon); err != nil || c.Op != informer.Updated || c.Key.Name != "p1" {
			t.Errorf("%+v, %v; want the update of p1", c, err)
		}
		_ = cluster.Hold(func() error { // the cluster may end meanwhile
			must(informer.For[*corev1.Pod](cluster, informer.WithLabels("other=yes")))(t)
			cancel()
			return <-ran
		})
	})
}
