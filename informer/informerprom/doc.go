// Package informerprom exports Prometheus metrics of an informer.Cluster.
//
//	metrics := informerprom.New()
//	cluster, err := informer.NewCluster(cfg, informer.Options{Hooks: metrics.Hooks(informer.Hooks{})})
//	…
//	metrics.Add(cluster)
//	prometheus.MustRegister(metrics)
//
// Counters and durations come from the cluster's hooks, gauges from its status at each scrape. Pass your own
// hooks to Collector.Hooks, which calls them as well. For several clusters, make several collectors, and
// register each with prometheus.WrapRegistererWith and a distinguishing label.
//
// The label resource is a resource and its group, such as "deployments.apps"; metrics without it do not belong
// to a resource. Values of several streams, or sources of the same resource, are summed. No label contains the
// name, namespace or UID of an object. The label consumer is the subscriber's name, as given to Subscribe
// or feed.Open.
//
//	informer_objects                       cached objects
//	informer_hot_bytes                     estimated heap of cached decoded objects
//	informer_streams{state}                streams in each state: starting, listing, watching, waiting, parked, stopped
//	informer_streams_synced                streams whose first sync has completed
//	informer_last_current_timestamp_seconds  time at which the stream furthest behind was last known to be current
//	informer_consumer_lag_objects          changes or objects that a consumer has not yet received,
//	informer_consumer_lag_bytes            their size in bytes,
//	informer_consumer_lag_seconds          and the age of the oldest
//	informer_lists_total{mode,result}      lists that ended: paged or streaming, ok or error
//	informer_list_objects_total            objects read by lists
//	informer_list_bytes_total              bytes read by lists, uncompressed
//	informer_list_duration_seconds         duration of lists
//	informer_watches_total{result}         watches that ended; ok if the server closed them
//	informer_watch_events_total            events read by watches
//	informer_watch_bytes_total             bytes read by watches, uncompressed
//	informer_watch_duration_seconds        duration of watches
//	informer_expired_total                 responses of 410 Gone: the API server no longer had the requested version
//	informer_gaps_total{reason}            gaps; one with several reasons counts for each
//	informer_dropped_total{reason}         versions received but not delivered: past, repeated, unreadable, transform
//	informer_decode_errors_total           objects that a view could not decode
//	informer_lossy_decodes_total           objects with fields that the Go type does not have
//	informer_index_errors_total            panics of index functions
//	informer_mutations_total               modified shared objects found; only a few objects are checked
//	informer_audits_total{compared,result} audits of metadata or contents: passed, missed or failed
//	informer_audit_reread_objects_total    objects that audits read again
//	informer_checkpoint_errors_total       failures to read or write a checkpoint
package informerprom
