// Package informer keeps typed, current copies of Kubernetes resources in memory and delivers their changes.
// It does what client-go's informers do, with generics, a fraction of the memory, bounded queues, errors
// that name the cause, and a state that survives a restart.
//
//	client-go                          here
//	SharedInformerFactory              Cluster
//	ListerWatcher                      Source: a resource, a Selection, a Storage
//	SharedIndexInformer, Lister        Informer[T]: For, Unstructured, Metadata
//	Get, List                          Informer.Get, Informer.List, Collect: with an error, not an absence
//	Indexer, AddIndexers, ByIndex      Index[T, K]: AddFieldIndex by a path, AddIndex by a function; Index.Get, Index.In
//	AddEventHandler, …WithOptions      Informer.Subscribe, Informer.Changes, Subscription.Handle
//	isInInitialList                    Change.Initial, SubscribeOptions.SkipInitial
//	HasSynced, WaitForCacheSync        the same and Informer.Wait, Cluster.Wait, Subscription.Synced
//	DeletedFinalStateUnknown           a Deleted change with Relisted
//	LastSyncResourceVersion            Status.Version
//	SetTransform                       SourceOptions.Transform, DropManagedFields
//	SetWatchErrorHandler               Options.Log, Hooks.State, Status.Err
//	DeepCopy, read-only by convention  objects from Get are yours; objects from Informer.Shared are read-only
//	Store, ThreadSafeStore             Informer.Mirror, into your own store
//
// The repository's docs/guide.md shows both sides as code, with output.
//
// A Cluster talks to one API server. A Source keeps the objects of one resource under one Selection, with
// one stream (a list, then a watch) per selected namespace, or one for the whole cluster. An Informer is a
// typed view of a Source; informers with equal options share one. A Subscription delivers changes to one
// subscriber. Loops yield a value and an error: a *DecodeError stands for an object that exists but cannot be
// decoded, and the loop continues; any other error comes last and says why the loop ended.
//
//	Ordering        Per object, changes come in version order. Within a stream, an object takes the place of its
//	                first undelivered change. Streams are not ordered among each other. A subscriber
//	                receives a change after the cache shows it.
//	What may be     Mode Latest: versions that were replaced, and objects that came and went, before the subscriber
//	skipped         took them. Mode Every: nothing within the subscriber's budget and the server's history;
//	                otherwise a Gap marks the place, and net changes follow. Changes derived from a list are Relisted.
//	Deletes         Carry the last known object. A new UID under the same name is a delete and an add. With a
//	                selector, Deleted may also mean that the object left the selection.
//	Slow            Cost at most one entry for each object that they know or that exists, plus their budget in mode
//	subscribers     Every. They never slow down the watch or each other.
//	Sync            Informer.Wait and Cluster.Wait return nil once every object of the first list is in the
//	                cache, or the reason why it cannot be. Until then, reads and indexes serve the objects received so
//	                far and return ErrNotSynced for the rest. From a checkpoint, reads are served at once (Source.WaitForLoad),
//	                subscriptions only with SubscribeOptions.FromCheckpoint (use Cluster.Hold if Cluster.Run runs already).
//	Your writes     Informer.Await returns once the cache is as new as the result of your write.
//	History         Versions that go backwards, as after a restored backup, start a new epoch: a relist that compares contents.
//	Audits          A watch can miss changes without an error, and content can change without a new version. So
//	                each stream is regularly compared with a list read beside its watch (Options.AuditEvery).
//	Ownership       Objects from reads and changes belong to the caller. Objects from Shared and those passed to index
//	                functions are read-only and share parts. Options.DetectMutation and Hooks.Mutation find writers.
//	After close     When Cluster.Run ends or a source is closed, reads and indexes serve the last state. Waiting calls
//	                return ErrClosed, and so do reads of missing objects if the source never had a state.
package informer
