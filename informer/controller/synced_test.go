package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/tattler-dev/tattler/informer/controller"
)

// TestSyncedHook: the hook is called once, when reads are complete, and before the first Reconcile.
func TestSyncedHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, cluster, i := program(t)
		ctx, cancel := context.WithCancel(t.Context())
		synced, reconciled := 0, 0
		ctl := controller.New("test", func(context.Context, controller.Key) (controller.Result, error) {
			if synced != 1 {
				t.Errorf("it was called %d times before the first Reconcile", synced)
			}
			reconciled++
			cancel()
			return controller.Result{}, nil
		}, controller.Options{Hooks: controller.Hooks{Synced: func() {
			synced++
			if _, err := i.Get("n", "w"); err != nil {
				t.Error(err)
			}
		}}}, controller.For(i))
		if err := controller.Run(ctx, cluster, ctl); err != nil || synced != 1 || reconciled != 1 {
			t.Errorf("Run: %v; synced %d times, reconciled %d times", err, synced, reconciled)
		}
	})
}
