// Package controller runs a reconcile loop over informers: changes become keys, and each key is reconciled until it
// succeeds.
//
//	c := controller.New("replicas", reconcile, controller.Options{Workers: 4},
//		controller.For(deployments, controller.GenerationChanged[*appsv1.Deployment]),
//		controller.Owned(replicaSets, deployments))
//	err := c.Run(ctx)
//
// A Source maps an informer's changes to keys: of the objects themselves (For), of their owners (Owned), of objects found
// by an index (Indexed), of every object of another informer (Each), or any others (Map). Predicates filter changes.
// Reconcile receives a key and nothing else: it reads the current state, compares it with the desired state, and writes
// the difference.
//
//	Queue           client-go's typed workqueue: a key is queued once, however many changes there were.
//	Workers         Never two for one key.
//	Order           Keys of changes come before keys of the first list, which are reconciled in between.
//	Errors          A key whose Reconcile fails or panics is retried after 5 ms, then after twice as long each time, up to
//	                Options.MaxBackoff, or at once with the next change. Other keys do not wait for it, unless
//	                Options.RateLimiter says so.
//	Sync            Reconcile is first called when every source is synced, so an object that it does not find does not
//	                exist. If a source cannot be synced, Run returns why.
//	Leader          With Options.Lock, one process at a time reconciles; the others keep their caches current.
//	Stop            When ctx ends, no new call starts. Running calls may continue for Options.Grace, then their context ends.
//	                Run returns an error that names the keys whose calls ignore that.
//	Lost lease      The context of running calls ends at once, and Hooks.Lost is called.
//	Own writes      A cache lags behind the program's own writes. Await waits for it.
//
// # Reading your own writes
//
// A classic bug of controllers: Reconcile does not find a child, creates one, and is called again before its cache shows
// the new child. Again it finds none, and creates a second one. One line at the end of Reconcile prevents that:
//
//	made, err := client.Create(ctx, child, metav1.CreateOptions{}) // with a generateName
//	if err != nil {
//		return controller.Result{}, err
//	}
//	return controller.Result{}, children.Await(ctx, made) // until the cache is as new as made
//
// The next call for the key starts after that, and finds the child. See informer.Informer.Await.
//
// # Writing
//
// Prefer server-side apply: Reconcile applies the fields that it wants, with a typed apply configuration from
// k8s.io/client-go/applyconfigurations and its own field manager, and need not read first. If it has to read, change and
// update, Update retries after a conflict.
//
// To inform users, record an event with client-go's recorder (k8s.io/client-go/tools/events), as examples/image-setter
// does; kubectl describe shows it. Record one only when something has changed, since Reconcile runs often.
package controller
