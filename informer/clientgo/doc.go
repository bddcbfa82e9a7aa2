// Package clientgo puts the engine of package informer behind client-go's own interfaces: an existing
// program keeps its handlers, listers and controllers, and needs a fraction of the memory.
//
//	engine, err := clientgo.New(config, clientgo.Options{})
//	… cache.Options{HTTPClient: engine.HTTPClient(), NewInformer: engine.NewCacheInformer} // controller-runtime
//	… factory.InformerFor(&corev1.Pod{}, … engine.NewInformer(clientgo.ListWatch(…) …)      // client-go
//
// What NewInformer returns does what a cache.SharedIndexInformer of client-go v0.37 does, as far as a
// program can see it, except for what follows. docs/drop-in.md has the details.
//
//	Pointers         Two reads of an object that is packed may return two pointers to equal
//	                 objects. As with client-go, both are read-only. Objects share their equal parts.
//	Exactness        An object that is packed comes back as it was, nil slices and empty ones told apart.
//	                 One that would not, and one of a type that cannot be packed, is kept as it is.
//	Index functions  Are called once for each version. client-go calls them again with the old object,
//	                 which must then give the same values. Where one fails and that does not end the
//	                 process, the object is left out of that index, and of nothing else.
//	Transforms       Are called once for each object. client-go's streaming lists call them twice. Where
//	                 one returns nothing, that object is left out; where one fails for an object of a
//	                 list, the list is repeated.
//	Slow handlers    Receive every version, up to Options.HandlerBudget; beyond, of each object's
//	                 difference since, until they have captured up. client-go keeps queueing.
//	Handlers         Are called by one goroutine each. Their order among each other is that in which
//	                 they came.
//	By hand          What is written through GetStore or GetIndexer is kept as it is.
package clientgo
