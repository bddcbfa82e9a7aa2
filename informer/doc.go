// Package informer keeps typed copies of Kubernetes resources in memory, current, and hands out their
// changes. It does what client-go's informers do, with generics, a small part of the memory, bounded
// queues, causes where something fails, and a state that survives a restart.
//
//	client-go                          here
//	SharedInformerFactory              Cluster
//	ListerWatcher                      Source: a resource, a Selection, a Storage
//	SharedIndexInformer, Lister        Informer[T]: For, Unstructured, Metadata
//	Get, List                          Informer.Get, Informer.List, Collect: with an error, not an absence
//	Indexer, AddIndexers, ByIndex      Index[T, K]: AddIndex, Index.Get, Index.In
//	AddEventHandler, …WithOptions      Informer.Subscribe, Informer.Changes, Subscription.Handle
//	isInInitialList                    Change.Initial, SubscribeOptions.SkipInitial
//	HasSynced, WaitForCacheSync        the same and Informer.Wait, Cluster.WaitForSync, Subscription.Synced
//	DeletedFinalStateUnknown           a Deleted change with Relisted
//	LastSyncResourceVersion            Status.Version
//	SetTransform                       SourceOptions.Transform, DropManagedFields
//	SetWatchErrorHandler               LogTo, Hooks.State, Status.Err
//	DeepCopy, read-only by convention  what Get returns is yours; what Informer.Shared returns is read-only
//	Store, ThreadSafeStore             Informer.Mirror, for a store of your own
//
// docs/guide.md in the repository has both sides of these as code, with what it prints.
//
// A Cluster talks to one API server. A Source keeps the objects of one resource under one
// Selection; it owns one stream (a list, then a watch) per selected namespace, or one for the whole
// cluster. An Informer is a typed view of a Source; those that ask for the same share one. A
// Subscription hands an Informer's changes to one consumer. Loops yield pairs of a value and an error: a
// *DecodeError stands for an object that exists and cannot be decoded, and the loop goes on; any other
// error is the last pair and says why the loop ended.
//
//	Ordering        Per object, changes come in the order of its versions. Within a stream, an object comes at
//	                the place of its first change that was not handed on yet. Between streams there is no
//	                order. The cache already shows a change when a consumer hears of it.
//	What may be     Mode Latest: versions that a newer one replaced before the consumer took them; an object
//	skipped         that came and went in the meantime. Mode Every: nothing, while the consumer keeps within its
//	                budget and the server has the history; else a Gap says so, and net changes follow. What a
//	                list had to derive is Relisted.
//	Deletes         Carry the last known object. An object recreated under its name (another UID) is a delete
//	                and an add. With a selector, Deleted means "left the selection".
//	Slow consumers  Cost at most one entry for each object that they know or that exists, and in mode Every
//	                their budget. They never slow the watch or each other.
//	Sync            Informer.Wait and Cluster.WaitForSync return once every object of the first list is in the
//	                cache, or the reason why that cannot be. From a checkpoint, reads are served before that
//	                (Source.WaitForLoad), subscriptions only with SubscribeOptions.FromCheckpoint, and later than
//	                Cluster.Run with Cluster.Hold. Until then a read hands out what has arrived, and for the rest
//	                ErrNotSynced, also in indexes.
//	Your writes     Informer.Await returns once the cache is as new as what a write returned.
//	History         A server whose versions went back, as after a restored backup, starts a new epoch:
//	                everything is listed again and compared by content.
//	Audits          A watch can miss changes without an error, and content can change without a new version. So
//	                each stream is now and then compared with a list beside its watch (Options.AuditEvery).
//	Ownership       What reads and changes return is the caller's. What Shared returns and index functions get is
//	                read-only; objects share parts of it. Options.DetectMutation and Hooks.Mutation find who writes.
//	After close     When the context of Cluster.Run ends, or a source is closed, reads and indexes serve the
//	                last state, until the Informer is dropped. Wait, Subscribe, Next, Changes and Mirror return
//	                ErrClosed. So do reads of what is not there if the source had no state before it closed.
package informer
