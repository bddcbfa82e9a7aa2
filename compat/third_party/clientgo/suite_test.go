// Package clientgo holds informers to the tests that client-go has for its own; README.md says which, and what
// was changed. They are run for client-go's informer, too: one that fails there was changed wrongly.
package clientgo

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	. "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m)
}

// construct is what is judged now.
var construct = NewSharedIndexInformer

func TestClientGo(t *testing.T) { judge(t, NewSharedIndexInformer) }

// tests are those of the suite. In a bubble their waiting takes no time; those that start subtests, or go on
// without ever blocking, cannot be in one.
var tests = []struct {
	name   string
	bubble bool
	test   func(*testing.T)
}{
	{"HammerController", false, testHammerController},
	{"Update", false, testUpdate},
	{"ExampleNewInformer", false, testExampleNewInformer},
	{"TransformingInformer", true, testTransformingInformer},
	{"TransformingInformerRace", false, testTransformingInformerRace},
	{"ResetWatch", true, testResetWatch},
	{"StoreResourceVersion", true, testStoreResourceVersion},
	{"GetIndexFuncValues", true, testGetIndexFuncValues},
	{"MultiIndexKeys", true, testMultiIndexKeys},
	{"ListAll", false, testListAll},
	{"MutationCacheOnAddOrUpdate", false, testMutationCacheOnAddOrUpdate},
	{"MutationCacheOnDelete", false, testMutationCacheOnDelete},
	{"MutationCacheUpdateConcurrentDelete", true, testMutationCacheUpdateConcurrentDelete},
	{"MutationCacheUpdateConcurrentRecreate", true, testMutationCacheUpdateConcurrentRecreate},
	{"MutationCacheOnDeleteClearsStaleMutation", true, testMutationCacheOnDeleteClearsStaleMutation},
	{"Indexer", true, testIndexer},
	{"ListenerResyncPeriods", true, testListenerResyncPeriods},
	{"SharedInformerInitializationRace", false, testSharedInformerInitializationRace},
	{"SharedInformerWatchDisruption", true, testSharedInformerWatchDisruption},
	{"SharedInformerErrorHandling", true, testSharedInformerErrorHandling},
	{"SharedInformerStartRace", false, testSharedInformerStartRace},
	{"SharedInformerTransformer", true, testSharedInformerTransformer},
	{"SharedInformerRemoveHandler", true, testSharedInformerRemoveHandler},
	{"SharedInformerRemoveForeignHandler", true, testSharedInformerRemoveForeignHandler},
	{"SharedInformerMultipleRegistration", true, testSharedInformerMultipleRegistration},
	{"RemovingRemovedSharedInformer", true, testRemovingRemovedSharedInformer},
	{"SharedInformerHandlerAbuse", false, testSharedInformerHandlerAbuse},
	{"StateSharedInformer", true, testStateSharedInformer},
	{"AddOnStoppedSharedInformer", true, testAddOnStoppedSharedInformer},
	{"RemoveOnStoppedSharedInformer", true, testRemoveOnStoppedSharedInformer},
	{"RemoveWhileActive", true, testRemoveWhileActive},
	{"AddWhileActive", true, testAddWhileActive},
	{"Shutdown", false, testShutdown},
	{"EventPanics", false, testEventPanics},
	{"RemoveEventHandler_AsynchronousPanic", true, testRemoveEventHandler_AsynchronousPanic},
	{"RemoveEventHandler_SynchronousShutdown", true, testRemoveEventHandler_SynchronousShutdown},
	{"ShutDownEventHandler_Lifecycles", false, testShutDownEventHandler_Lifecycles},
	{"Cache", true, testCache},
	{"Index", true, testIndex},
	{"ThreadSafeStoreDeleteRemovesEmptySetsFromIndex", true, testThreadSafeStoreDeleteRemovesEmptySetsFromIndex},
	{"ThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex", true, testThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex},
	{"ThreadSafeStoreIndexingFunctionsWithMultipleValues", true, testThreadSafeStoreIndexingFunctionsWithMultipleValues},
	{"TypedIndexer", false, testTypedIndexer},
}

func judge(t *testing.T, with func(ListerWatcher, runtime.Object, time.Duration, Indexers) SharedIndexInformer) {
	construct = with
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.bubble {
				synctest.Test(t, tc.test)
			} else {
				tc.test(t)
			}
		})
	}
}

// nobody is listed and watched by no informer: it is never run.
var nobody = &ListWatch{}

func newSharedInformer(lw ListerWatcher, example runtime.Object, resync time.Duration) SharedIndexInformer {
	return construct(lw, example, resync, Indexers{})
}

func newIndexer(indexers Indexers) Indexer { return newIndexerOf(&v1.Pod{}, indexers) }

func newIndexerOf(example runtime.Object, indexers Indexers) Indexer {
	return construct(nobody, example, 0, indexers).GetIndexer()
}

// controller is what their tests want of one.
type controller interface {
	RunWithContext(context.Context)
	HasSynced() bool
}

func newInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler) (Store, controller) {
	return newTransformingInformer(lw, example, resync, h, nil)
}

func newTransformingInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler, f TransformFunc) (Store, controller) {
	informer := newSharedInformer(lw, example, resync)
	if f != nil {
		if err := informer.SetTransform(f); err != nil {
			panic(err)
		}
	}
	if _, err := informer.AddEventHandler(h); err != nil {
		panic(err)
	}
	return informer.GetStore(), informer
}

// isStarted asks what can be asked from outside.
func isStarted(i SharedInformer) bool { return i.SetTransform(nil) != nil }

// isRegistered asks what ShutDownEventHandler asks, too: a registration that has ended says so soon.
func isRegistered(_ SharedInformer, h ResourceEventHandlerRegistration) bool {
	select {
	case <-h.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}
