package informer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
)

// TestSubscriptionsWaitForSynced: a checkpoint's state is delivered once it is verified and current, with the changes
// since; with FromCheckpoint it is delivered at once.
func TestSubscriptionsWaitForSynced(t *testing.T) {
	t.Run("resumed", func(t *testing.T) { waitForSynced(t, false) })
	t.Run("listed", func(t *testing.T) { waitForSynced(t, true) })
}

func waitForSynced(t *testing.T, forgotten bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, dir := podServer(), t.TempDir()
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			if err := all.Source().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second)
		})
		for i := range 17 {
			server.Delete(pods, "a", fmt.Sprint("p", i))
		}
		server.Put(pods, "a", "p17", podFields("x", "node-2"))
		server.Put(pods, "a", "new", podFields("x", "node-3"))
		if forgotten {
			server.Skip(5)
			server.Compact()
		}
		server.SetDown(true)
		restart(t, server, dir, informer.Hooks{}, func(all *informer.Informer[*corev1.Pod]) {
			subscribe := func(name string, o informer.SubscribeOptions) *informer.Subscription[*corev1.Pod] {
				return must(all.Subscribe(name, o))(t)
			}
			early := subscribe("early", informer.SubscribeOptions{})
			synctest.Wait()
			late := subscribe("late", informer.SubscribeOptions{})
			every := subscribe("every", informer.SubscribeOptions{Mode: informer.Every})
			skip := subscribe("skip", informer.SubscribeOptions{SkipInitial: true})
			stopped := subscribe("stopped", informer.SubscribeOptions{})
			stopped.Stop()
			drained := subscribe("drained", informer.SubscribeOptions{})
			drained.Drain()
			handled := subscribe("handlers", informer.SubscribeOptions{})
			resynced := 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_ = handled.Handle(ctx, informer.Handlers[*corev1.Pod]{
				OnUpdate: func(_, _ *corev1.Pod) { resynced++ }, Resync: time.Second,
			})
			cancel()
			if resynced > 0 {
				t.Errorf("%d resyncs of objects that the handlers never got", resynced)
			}
			at := subscribe("from the checkpoint", informer.SubscribeOptions{FromCheckpoint: true})
			if got := take(t, at); strings.Count(got, "initial") != 20 {
				t.Errorf("from the checkpoint: got\n%s", got)
			}
			waiting := []*informer.Subscription[*corev1.Pod]{early, late, every, skip}
			for _, s := range waiting {
				if got := take(t, s); got != "" {
					t.Errorf("before it is synced: got\n%s", got)
				}
				select {
				case <-s.Synced():
					t.Error("synced without a server")
				default:
				}
			}
			server.SetDown(false)
			if err := all.Source().Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			const state = "added a/new .>node-3 initial\nadded a/p17 .>node-2 initial\nadded a/p18 .>node-1 initial\nadded a/p19 .>node-1 initial"
			for i, s := range waiting {
				want := state
				if s == skip {
					want = ""
				}
				if got := take(t, s); got != want {
					t.Errorf("subscription %d: got\n%s\nwant\n%s", i, got, want)
				}
				select {
				case <-s.Synced():
				default:
					t.Error("a subscription that has everything is synced")
				}
			}
			if got := take(t, at); strings.Count(got, "deleted") != 17 || !strings.Contains(got, "updated a/p17 node-1>node-2") {
				t.Errorf("since the checkpoint: got\n%s", got)
			}
			for _, s := range []*informer.Subscription[*corev1.Pod]{stopped, drained} {
				if got := take(t, s); got != "" {
					t.Errorf("it is over: got\n%s", got)
				}
			}
			server.Put(pods, "a", "p17", podFields("x", "node-4"))
			synctest.Wait()
			for _, s := range waiting {
				if got := take(t, s); got != "updated a/p17 node-2>node-4" {
					t.Errorf("after that: got\n%s", got)
				}
			}
		})
	})
}
