// Package informerprom makes Prometheus metrics of an informer.Cluster.
//
//	metrics := informerprom.New()
//	cluster, err := informer.NewCluster(cfg, informer.Options{Hooks: metrics.Hooks(informer.Hooks{})})
//	…
//	metrics.Add(cluster)
//	prometheus.MustRegister(metrics)
//
// Counters and durations come from the cluster's hooks, gauges from its status when it is scraped. Hooks
// of your own are passed to Collector.Hooks, which calls them as well. For several clusters, make several
// collectors, and register each by prometheus.WrapRegistererWith with a label of its own.
//
// The label resource is a resource and its group, as in "deployments.apps"; what has no such label is not
// of a resource. Streams, and sources of the same resource, are summed. No label has the name, namespace or
// UID of an object; the label consumer is the name given to Subscribe or feed.Open.
//
//	informer_objects                       cached objects
//	informer_hot_bytes                     estimated heap of the objects that are kept decoded
//	informer_streams{state}                streams in each state: starting, listing, watching, waiting, parked, stopped
//	informer_streams_synced                streams whose cache has been as current as the server
//	informer_last_current_timestamp_seconds  when the stream that is furthest behind was last known to be current
//	informer_consumer_lag_objects          what a consumer has yet to take: changes or objects,
//	informer_consumer_lag_bytes            the bytes kept for it,
//	informer_consumer_lag_seconds          and the age of the oldest
//	informer_lists_total{mode,result}      lists that ended: paged or streaming, ok or error
//	informer_list_objects_total            objects read by lists
//	informer_list_bytes_total              bytes read by lists, uncompressed
//	informer_list_duration_seconds         how long lists took
//	informer_watches_total{result}         watches that ended; ok where the server closed them
//	informer_watch_events_total            events read by watches
//	informer_watch_bytes_total             bytes read by watches, uncompressed
//	informer_watch_duration_seconds        how long watches were open
//	informer_expired_total                 answers that the server's history does not go back far enough (410)
//	informer_gaps_total{reason}            gaps in what was seen; one with several reasons counts for each
//	informer_dropped_total{reason}         versions received but not handed on: past, repeated, unreadable, transform
//	informer_decode_errors_total           objects that a view could not decode
//	informer_lossy_decodes_total           objects with fields that the Go type does not have
//	informer_index_errors_total            panics of index functions
//	informer_mutations_total               shared objects that were found written to; only a few are checked
//	informer_audits_total{compared,result} audits: of metadata or contents, passed, missed or failed
//	informer_audit_reread_objects_total    objects that audits read again
//	informer_checkpoint_errors_total       failures to read or write a checkpoint
package informerprom
