package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clientGo is client-go with a sharedIndexInformer that forwards every call to an informer of ours. Its tests are
// unchanged, except for three helpers that read private fields, and for times that a busy machine does not keep.
func clientGo() module {
	const (
		informer = "tools/cache/shared_informer.go"
		tests    = "tools/cache/shared_informer_test.go"
	)
	edits := []edit{
		{file: informer, count: 1, old: "type sharedIndexInformer struct {\n", new: "type sharedIndexInformer struct {\n\tsubstitute *substitute\n"},
		{file: informer, count: 1, old: "\treturn &sharedIndexInformer{\n", new: "\treturn &sharedIndexInformer{\n\t\tsubstitute: newSubstitute(lw, exampleObject, options),\n"},
		{
			file: "tools/cache/controller.go", count: 5,
			old: "return clientState, newInformer(clientState, options, DeletionHandlingMetaNamespaceKeyFunc)",
			new: "return substituteInformer(clientState, options)",
		},
		first("tools/cache/store.go", "func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {\n",
			"if i := substituteIndexer(keyFunc, indexers, opts); i != nil {\n\t\treturn i\n\t}"),
		first(tests, "func eventHandlerCount(i SharedInformer) int {\n", "if n, ok := substituteHandlers(i); ok {\n\t\treturn n\n\t}"),
		first(tests, "func isStarted(i SharedInformer) bool {\n", "if started, ok := substituteStarted(i); ok {\n\t\treturn started\n\t}"),
		first(tests, "func isRegistered(i SharedInformer, h ResourceEventHandlerRegistration) bool {\n",
			"if registered, ok := substituteRegistered(i, h); ok {\n\t\treturn registered\n\t}"),
	}
	edits = append(edits, patient()...)
	for _, m := range []struct{ signature, call string }{
		{"SetWatchErrorHandler(handler WatchErrorHandler) error", "SetWatchErrorHandler(handler)"},
		{"SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error", "SetWatchErrorHandlerWithContext(handler)"},
		{"SetTransform(handler TransformFunc) error", "SetTransform(handler)"},
		{"Run(stopCh <-chan struct{})", "Run(stopCh)"},
		{"RunWithContext(ctx context.Context)", "RunWithContext(ctx)"},
		{"HasSynced() bool", "HasSynced()"},
		{"HasSyncedChecker() DoneChecker", "HasSyncedChecker()"},
		{"LastSyncResourceVersion() string", "LastSyncResourceVersion()"},
		{"GetStore() Store", "GetStore()"},
		{"GetIndexer() Indexer", "GetIndexer()"},
		{"AddIndexers(indexers Indexers) error", "AddIndexers(indexers)"},
		{"GetController() Controller", "GetController()"},
		{"AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)", "AddEventHandler(handler)"},
		{
			"AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)",
			"AddEventHandlerWithResyncPeriod(handler, resyncPeriod)",
		},
		{
			"AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error)",
			"AddEventHandlerWithOptions(handler, options)",
		},
		{"IsStopped() bool", "IsStopped()"},
		{"RemoveEventHandler(handle ResourceEventHandlerRegistration) error", "RemoveEventHandler(handle)"},
	} {
		pass := "if s.substitute != nil {\n\t\treturn s.substitute." + m.call + "\n\t}"
		if strings.HasPrefix(m.call, "Run") {
			pass = "if s.substitute != nil {\n\t\ts.substitute." + m.call + "\n\t\treturn\n\t}"
		}
		edits = append(edits, first(informer, "func (s *sharedIndexInformer) "+m.signature+" {\n", pass))
	}
	return module{path: "k8s.io/client-go", edits: edits, overlay: "testdata/clientgo"}
}

// patient returns edits for tests that fail on a busy machine. What must happen gets a minute. What must not happen is
// awaited as long as before.
func patient() []edit {
	const (
		controller = "tools/cache/controller_test.go"
		fifo       = "tools/cache/the_real_fifo_test.go"
		informer   = "tools/cache/shared_informer_test.go"
		reflector  = "tools/cache/reflector_test.go"
	)
	var edits []edit
	for _, file := range []string{"tools/cache/fifo_test.go", "tools/cache/delta_fifo_test.go", fifo} {
		edits = append(edits, edit{file: file, count: 1, old: "time.After(500 * time.Millisecond)", new: "time.After(time.Minute)"})
	}
	stopped := "time.Sleep(1 * time.Second)\n\n\tif !informer.IsStopped() {"
	return append(edits,
		edit{file: controller, count: 10, old: "5*time.Second", new: "time.Minute"},
		edit{file: reflector, count: 1, old: "100*time.Millisecond, 5*time.Second, true", new: "100*time.Millisecond, time.Minute, true"},
		edit{file: reflector, count: 1, old: "expUpperBound: 300 * time.Millisecond", new: "expUpperBound: time.Minute"},
		edit{file: reflector, count: 1, old: "expUpperBound: 10 * time.Second", new: "expUpperBound: time.Minute"},
		edit{file: informer, count: 2, old: "wait.PollImmediate(100*time.Millisecond, 2*time.Second,", new: "wait.PollImmediate(100*time.Millisecond, 30*time.Second,"},
		edit{file: informer, count: 2, old: "context.WithTimeout(context.Background(), 2*time.Second)", new: "context.WithTimeout(context.Background(), time.Minute)"},
		edit{file: informer, count: 1, old: "}, time.Second*3, time.Millisecond)", new: "}, time.Minute, time.Millisecond)"},
		edit{file: informer, count: 1, old: "time.After(time.Second)", new: "time.After(time.Minute)"},
		edit{file: informer, count: 1, old: "time.After(10 * time.Second)", new: "time.After(time.Minute)"},
		edit{file: informer, count: 2, old: stopped, new: strings.Replace(stopped, "time.Sleep(1 * time.Second)",
			"_ = wait.PollImmediate(10*time.Millisecond, time.Minute, func() (bool, error) { return informer.IsStopped(), nil })", 1)},
		// A batch that comes late would be sent to a closed channel.
		edit{
			file: fifo, count: 2, old: "timer := time.NewTimer(time.Millisecond * 50)",
			new: "limit := time.Millisecond * 50\n\t\t\t\tif len(receivedItems) < len(tc.expectedBatches) {\n\t\t\t\t\tlimit = time.Minute\n\t\t\t\t}\n" +
				"\t\t\t\ttimer := time.NewTimer(limit)",
		},
		edit{file: fifo, count: 1, old: "timerInitial := time.NewTimer(time.Millisecond * 50)\n", new: "\n"},
		edit{file: fifo, count: 1, old: "case <-timerInitial.C:", new: "default: // it is sent first"},
		edit{
			file: fifo, count: 1,
			old: "received <- obj\n\t\t\t\t\t\tif isInInitialList {\n\t\t\t\t\t\t\treceivedInitial <- obj\n\t\t\t\t\t\t}\n",
			new: "if isInInitialList {\n\t\t\t\t\t\t\treceivedInitial <- obj\n\t\t\t\t\t\t}\n\t\t\t\t\t\treceived <- obj\n",
		},
		edit{
			file: fifo, count: 1,
			old: "received <- []Delta{*obj.(Deltas).Newest()}\n\t\t\t\t\t\tif isInInitialList {\n\t\t\t\t\t\t\treceivedInitial <- []Delta{*obj.(Deltas).Newest()}\n\t\t\t\t\t\t}\n",
			new: "if isInInitialList {\n\t\t\t\t\t\t\treceivedInitial <- []Delta{*obj.(Deltas).Newest()}\n\t\t\t\t\t\t}\n\t\t\t\t\t\treceived <- []Delta{*obj.(Deltas).Newest()}\n",
		},
	)
}

// first adds a statement at the top of a function.
func first(file, function, statement string) edit {
	return edit{file: file, old: function, new: function + "\t" + statement + "\n", count: 1}
}

// notOurs are the tests that use private fields of client-go's informer. informer/clientgo has a counterpart of
// TestMutationDetector.
const notOurs = "^(TestPanicPropagated|TestResyncCheckPeriod|TestMutationDetector)$"

// TestClientGo runs client-go's tests of tools/cache on informers and indexers of ours. All tests run with the features
// WatchListClient (streaming lists) and AtomicFIFO (a list replaces a store atomically). The tests that construct ours
// also run without both and, with allEnv, with one of them. With handlers that are deaf to updates a test must fail.
func TestClientGo(t *testing.T) {
	t.Parallel()
	m := clientGo()
	dir := m.prepare(t)
	program := m.build(t, dir, "tools/cache")
	with := func(t *testing.T, streaming, atomic bool, args ...string) result {
		r := run(t, program, filepath.Join(dir, "tools/cache"), []string{
			fmt.Sprintf("KUBE_FEATURE_WatchListClient=%v", streaming), fmt.Sprintf("KUBE_FEATURE_AtomicFIFO=%v", atomic),
		}, args...)
		if r.failed && !onlyFakeLeaks(r.output) {
			t.Fatalf("tests failed:\n%s", tail(r.output))
		}
		t.Logf("%d tests passed; %d constructed informers or indexers of ours", len(r.passed), len(r.constructed))
		return r
	}
	t.Run("fault", func(t *testing.T) {
		for _, fault := range []string{"", "deaf"} {
			r := run(t, program, filepath.Join(dir, "tools/cache"), []string{faultEnv + "=" + fault}, "-test.run=^TestSharedInformerWatchDisruption$")
			if len(r.constructed) == 0 {
				t.Error("the test constructed no informer of ours")
			}
			if want := fault != ""; r.failed != want {
				t.Errorf("with the fault %q, failed is %v:\n%s", fault, r.failed, tail(r.output))
			}
		}
	})
	var constructed []string
	t.Run("all", func(t *testing.T) {
		r := with(t, true, true, "-test.skip="+notOurs)
		if len(r.passed) < 185 {
			t.Errorf("%d tests passed, not at least 185", len(r.passed))
		}
		if constructed = r.constructed; len(constructed) < 37 {
			t.Errorf("%d tests constructed informers or indexers of ours, not at least 37: %v", len(constructed), constructed)
		}
		constructed = slices.DeleteFunc(constructed, func(name string) bool { return name == "TestSharedInformerHandlerAbuse" }) // it takes long
	})
	for _, features := range []struct{ streaming, atomic bool }{{false, false}, {true, false}, {false, true}} {
		if features.streaming != features.atomic && os.Getenv(allEnv) == "" {
			continue
		}
		t.Run(fmt.Sprintf("streaming=%v,atomic=%v", features.streaming, features.atomic), func(t *testing.T) {
			r := with(t, features.streaming, features.atomic, "-test.run=^("+strings.Join(constructed, "|")+")$")
			if len(r.passed) < len(constructed) || len(r.constructed) < len(constructed) {
				t.Errorf("%d tests passed and %d constructed ours, not %d", len(r.passed), len(r.constructed), len(constructed))
			}
		})
	}
}

// onlyFakeLeaks reports whether all tests passed and the only goroutine left is a list of client-go's Reflector that
// waits for the lock of client-go's fake server: the server's Shutdown can leave it locked. A goroutine of ours is
// never excused.
func onlyFakeLeaks(output string) bool {
	_, leaks, found := strings.Cut(output, "goleak: Errors on successful test run")
	return found && !strings.Contains(output, "--- FAIL") && strings.Count(leaks, "[Goroutine ") == 1 &&
		strings.Contains(leaks, "testing.(*FakeControllerSource).List(") && !strings.Contains(leaks, "tattler/informer")
}
