package clientgo

import (
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// TestIntakeIsAQueue: the intake implements all of cache.Queue, including methods that client-go's Reflector never
// calls.
func TestIntakeIsAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newEngine(Options{}).NewInformer(newServer(), &corev1.Pod{}, 0, nil).(*sharedInformer)
		var l log
		handle(t, i, &l)
		in := &intake{informer: i, ctx: t.Context(), closed: make(chan struct{})}
		i.claim()
		i.begin(nil)
		if in.HasSynced() {
			t.Error("synced before anything came")
		}
		if err := in.Add(pod("a/one", "1", "n1")); err != nil {
			t.Fatal(err)
		}
		if !in.HasSynced() || !cache.IsDone(in.HasSyncedChecker()) {
			t.Error("without a list, the first list is empty")
		}
		expect(t, "later objects do not belong to it", l.take(), "add a/one(1 on n1)")
		for what, err := range map[string]error{
			"Add": in.Add("x"), "Delete": in.Delete("x"), "Replace": in.Replace([]any{"x"}, "1"),
		} {
			if !errors.As(err, new(cache.KeyError)) {
				t.Errorf("%s of an object without a key: %v", what, err)
			}
		}
		in.Close()
		in.Close()
		if _, err := in.Pop(nil); !errors.Is(err, cache.ErrFIFOClosed) {
			t.Errorf("a closed queue: %v", err)
		}
		i.release()
		i.running.Wait()
	})
}
