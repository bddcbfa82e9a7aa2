package controller_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

// TestReadsAhead: Reconcile reads the cache, which is ahead of the queued changes. A state that it saw there and that is
// over before its change is taken still causes another call, even if the queue overflows.
func TestReadsAhead(t *testing.T) {
	for _, kept := range []bool{true, false} {
		for why, ends := range map[string]func(r *rig){
			"it is deleted":            func(r *rig) { r.server.Delete(parts, "n", "p") },
			"it has got another owner": func(r *rig) { r.part("p", "else", "Widget", "example.com/v1", 2) },
		} {
			play(t, 1, func(r *rig) {
				var mu sync.Mutex
				owned := ""
				hold := make(chan struct{})
				when := func(c *informer.Change[object]) (bool, error) {
					if c.Key.Name == "slow" {
						<-hold
					}
					return true, nil
				}
				if !kept {
					r.tune = func(c *controller.Controller) { controller.SetBudget(c, 1) }
				}
				_, end := r.run(controller.Options{}, func(_ context.Context, k controller.Key) (controller.Result, error) {
					if k.Name != "w000" {
						return controller.Result{}, nil
					}
					mu.Lock()
					defer mu.Unlock()
					owned = ""
					for p, err := range r.parts.All() {
						if err != nil {
							return controller.Result{}, err
						}
						if metav1.GetControllerOfNoCopy(p).Name == k.Name {
							owned += p.GetName()
						}
					}
					return controller.Result{}, nil
				}, controller.For(r.widgets), controller.Owned(r.parts, r.widgets, when))
				has := func(want string) {
					r.Helper()
					<-time.After(time.Second)
					mu.Lock()
					defer mu.Unlock()
					if owned != want {
						r.Errorf("%s, all kept %v: Reconcile saw last that w000 owns %q, want %q", why, kept, owned, want)
					}
				}
				<-time.After(time.Second)
				r.part("slow", "x", "Widget", "example.com/v1", 1)
				<-time.After(time.Second)
				r.part("p", "w000", "Widget", "example.com/v1", 1)
				<-time.After(time.Second)
				r.put("w000", 2) // so that Reconcile sees p
				has("p")
				ends(r)
				<-time.After(time.Second)
				close(hold)
				has("")
				if err := end(); err != nil {
					t.Error(err)
				}
				if logged := strings.Contains(r.log.String(), "all objects are reconciled again"); logged == kept {
					t.Errorf("all kept %v: logged %s", kept, r.log.String())
				}
			})
		}
	}
}
