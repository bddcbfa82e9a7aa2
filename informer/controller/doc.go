// Package controller runs a reconcile loop over informers: changes become keys, and each key is reconciled until that
// succeeds.
//
//	c := controller.New("replicas", reconcile, controller.Options{Workers: 4},
//		controller.For(deployments, controller.GenerationChanged[*appsv1.Deployment]),
//		controller.Owned(replicaSets, "Deployment.apps"))
//	err := c.Run(ctx)
//
// A Source says which keys the changes of an informer are about: those of the objects themselves (For), of the objects
// that own them (Owned), of those that an index finds (Indexed), of each object of another informer (Each), or any others
// (Map). Predicates leave changes out.
// Reconcile gets a key and nothing else: it reads what there is now, compares it with what there should be, and writes the
// difference.
//
//	Queue           client-go's typed workqueue: a key is in it once, however many changes there were.
//	Workers         Never two for one key.
//	Order           Changes come before the objects of the first list, which fill the time between them.
//	Errors          A key whose Reconcile fails, or panics, comes again after 5 ms, then twice as long each time, up to
//	                Options.MaxBackoff. It comes at once with the next change. No other key waits for it, unless
//	                Options.RateLimiter has it wait.
//	Sync            Reconcile is called once every source is synced, so that what it does not find does not exist. Where
//	                a source cannot be, Run returns why.
//	Leader          With Options.Lock, one process at a time reconciles; the others keep their caches current.
//	Stop            When ctx ends, nothing new begins. What runs may go on for Options.Grace, then its context ends.
//	Own writes      A cache is behind the writes of its program. Await waits for it.
//
// # Reading your own writes
//
// The classic fault of a controller: it does not find a child, creates one, and is called again before its cache shows
// that. Again it does not find a child, and creates a second one. One line at the end of Reconcile prevents that:
//
//	made, err := client.Create(ctx, child, metav1.CreateOptions{}) // with a generateName
//	if err != nil {
//		return controller.Result{}, err
//	}
//	return controller.Result{}, children.Await(ctx, made) // until the cache is as new as made
//
// The next call for the key begins after that, and finds the child. See informer.Informer.Await.
//
// # Writing
//
// Server-side apply is the way to write: a Reconcile applies the fields that it wants, with a typed apply configuration
// of k8s.io/client-go/applyconfigurations and a field manager of its own, and reads nothing before. Where it has to
// read, change and update, Update does so again when somebody else was quicker.
//
// To explain something to users, record an event with client-go's recorder (k8s.io/client-go/tools/events), as
// examples/image-setter does; kubectl describe shows it. Record one only when something has changed, since a Reconcile
// runs often.
package controller
