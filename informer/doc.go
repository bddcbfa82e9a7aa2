// Package informer keeps typed copies of Kubernetes resources in memory, current, and hands out their
// changes. It does what client-go's informers do, with generics, a small part of the memory, bounded
// queues, causes where something fails, and a state that survives a restart.
//
//	client-go                          here
//	SharedInformerFactory              Cluster
//	ListerWatcher                      Source: a resource, a Selection, a Storage
//	SharedIndexInformer, Lister        Informer[T]: For, Unstructured, Metadata
//	Get, List                          Informer.Get, Informer.List, Collect: with an error, not an absence
//	Indexer, AddIndexers, ByIndex      Index[T, K]: AddFieldIndex by a path, AddIndex by a function; Index.Get, Index.In
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
// The repository's docs/guide.md has both sides as code, with what it prints.
//
// A Cluster talks to one API server. A Source keeps the objects of one resource under one Selection, with
// one stream (a list, then a watch) per selected namespace, or one for the whole cluster. An Informer is a
// typed view of a Source; those that ask for the same share one. A Subscription hands its changes to one
// consumer. Loops yield a value and an error: a *DecodeError stands for an object that exists and cannot be
// decoded, and the loop goes on; any other error comes last and says why the loop ended.
//
//	Ordering        Per object, changes come in the order of its versions. Within a stream, an object comes at
//	                the place of its first change that was not handed on yet. Between streams there is no
//	                order. The cache already shows a change when a consumer hears of it.
//	What may be     Mode Latest: versions that a newer one replaced, and objects that came and went, before the
//	skipped         consumer took them. Mode Every: nothing within the consumer's budget and the server's history;
//	                else a Gap says so, and net changes follow. What a list had to derive is Relisted.
//	Deletes         Carry the last known object. A new UID under the same name is a delete and an add. With a
//	                selector, Deleted means "left the selection".
//	Slow consumers  Cost at most one entry for each object that they know or that exists, and in mode Every
//	                their budget. They never slow the watch or each other.
//	Sync            Informer.Wait and Cluster.WaitForSync return once every object of the first list is in the
//	                cache, or the reason why that cannot be. Until then reads and indexes have what has arrived,
//	                and ErrNotSynced for the rest. From a checkpoint, reads are served at once (Source.WaitForLoad),
//	                subscriptions only with SubscribeOptions.FromCheckpoint (Cluster.Hold, if Cluster.Run runs).
//	Your writes     Informer.Await returns once the cache is as new as what a write returned.
//	History         Versions that go back, as with a restored backup, start a new epoch: a relist that compares contents.
//	Audits          A watch can miss changes without an error, and content can change without a new version. So
//	                each stream is now and then compared with a list beside its watch (Options.AuditEvery).
//	Ownership       What reads and changes return is the caller's. What Shared returns and index functions get is
//	                read-only; objects share parts of it. Options.DetectMutation and Hooks.Mutation find who writes.
//	After close     When Cluster.Run ends or a source is closed, reads and indexes serve the last state. What waits
//	                returns ErrClosed, and so does a read of what is not there if the source never had a state.
package informer
