// Package clientgo puts the engine of package informer behind client-go's own interfaces: an existing
// program keeps its handlers, listers and controllers, and needs a fraction of the memory.
//
//	engine, err := clientgo.New(config, clientgo.Options{})
//	… cache.Options{HTTPClient: engine.HTTPClient(), NewInformer: engine.NewCacheInformer} // controller-runtime
//	… factory.InformerFor(&corev1.Pod{}, … engine.NewInformer(clientgo.ListWatch(…) …)      // client-go
//
// The informers behave like a cache.SharedIndexInformer of client-go v0.37, as far as a program can observe, with the
// following exceptions. docs/drop-in.md has the details.
//
//	Pointers         Two reads of a packed object may return two pointers to equal objects. As with
//	                 client-go, both are read-only. Objects share their equal parts.
//	Exactness        A packed object is decoded exactly as it was, with nil slices distinct from empty
//	                 ones. An object that packing would change, or whose type cannot be packed, is
//	                 kept as it is.
//	Index functions  Are called once for each version. client-go calls them again with the old object
//	                 and expects the same values. If one fails without ending the process, the object
//	                 is missing from that index only.
//	Transforms       Are called once for each object that arrives, updates and deletions included.
//	                 client-go's streaming lists call them twice. If one returns nil, the object is
//	                 left out; if one fails for an object of a list, the list is repeated.
//	Slow handlers    Receive every version, up to Options.HandlerBudget. Beyond it they receive only
//	                 the difference between each object's last delivered and current state, until they
//	                 have caught up. client-go keeps queueing.
//	Handlers         Each has its own goroutine. They are notified in the order in which they were added.
//	Direct writes    Objects written through GetStore or GetIndexer are kept as they are.
package clientgo
