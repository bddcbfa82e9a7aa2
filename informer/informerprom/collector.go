package informerprom

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tattler-dev/tattler/informer"
)

// Collector collects the metrics of one cluster. It is safe for concurrent use.
type Collector struct {
	lists, watches, gaps                                          *prometheus.CounterVec
	listObjects, listBytes, watchEvents, watchBytes               *prometheus.CounterVec
	expired, decodeErrors, lossyDecodes, indexErrors, checkpoints *prometheus.CounterVec
	audits, reread, mutations                                     *prometheus.CounterVec
	listDuration, watchDuration                                   *prometheus.HistogramVec

	mu      sync.Mutex
	cluster *informer.Cluster // nil: not added yet
	dropped growth
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a Collector. Put its Hooks into the options of a cluster, then add the cluster.
func New() *Collector {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "informer_" + name, Help: help}, append([]string{"resource"}, labels...))
	}
	duration := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "informer_" + name, Help: help, Buckets: buckets}, []string{"resource"})
	}
	return &Collector{
		lists:        counter("lists_total", "Lists that ended, by mode (paged, streaming) and result (ok, error).", "mode", "result"),
		listObjects:  counter("list_objects_total", "Objects read by lists."),
		listBytes:    counter("list_bytes_total", "Bytes read by lists, uncompressed."),
		watches:      counter("watches_total", "Watches that ended, by result: ok if the server closed them.", "result"),
		watchEvents:  counter("watch_events_total", "Events read by watches."),
		watchBytes:   counter("watch_bytes_total", "Bytes read by watches, uncompressed."),
		expired:      counter("expired_total", "Responses of 410 Gone: the API server no longer had the requested version."),
		gaps:         counter("gaps_total", "Gaps, by reason; a gap with several reasons counts for each.", "reason"),
		decodeErrors: counter("decode_errors_total", "Objects that a view could not decode."),
		lossyDecodes: counter("lossy_decodes_total", "Objects with fields that the Go type does not have."),
		indexErrors:  counter("index_errors_total", "Panics of index functions."),
		mutations:    counter("mutations_total", "Modified shared objects found; only a few objects are checked."),
		audits:       counter("audits_total", "Audits, by the compared part (metadata, contents) and result (passed, missed, failed).", "compared", "result"),
		reread:       counter("audit_reread_objects_total", "Objects that audits read again, because their content differed at the same version or the watch could not read them."),
		checkpoints:  counter("checkpoint_errors_total", "Failures to read or write a checkpoint."),

		// A list takes from milliseconds to minutes, a watch up to ten minutes.
		listDuration:  duration("list_duration_seconds", "Duration of lists.", prometheus.ExponentialBuckets(0.01, 4, 8)),
		watchDuration: duration("watch_duration_seconds", "Duration of watches.", []float64{1, 5, 30, 60, 120, 300, 420, 600}),
		dropped:       growth{},
	}
}

// Add makes the collector report the state of a cluster, which must have its Hooks.
func (c *Collector) Add(cluster *informer.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cluster = cluster
}

// Hooks returns hooks that count, then call the corresponding hook of yours, if set.
func (c *Collector) Hooks(yours informer.Hooks) informer.Hooks {
	h := yours // with the hooks that are not counted
	h.List = func(i informer.ListInfo) {
		c.listed(i)
		call(yours.List, i)
	}
	h.Watch = func(i informer.WatchInfo) {
		c.watched(i)
		call(yours.Watch, i)
	}
	h.Expired = func(s informer.Stream) {
		c.expired.WithLabelValues(resource(s)).Inc()
		call(yours.Expired, s)
	}
	h.Gap = func(s informer.Stream, g informer.Gap) {
		for reason := range strings.SplitSeq(g.Reason, ", ") {
			c.gaps.WithLabelValues(resource(s), reason).Inc()
		}
		if yours.Gap != nil {
			yours.Gap(s, g)
		}
	}
	h.DecodeError = counting(c.decodeErrors, yours.DecodeError)
	h.LossyDecode = func(s informer.Stream) {
		c.lossyDecodes.WithLabelValues(resource(s)).Inc()
		call(yours.LossyDecode, s)
	}
	h.IndexError = func(s informer.Stream, k informer.Key, err error) {
		c.indexErrors.WithLabelValues(resource(s)).Inc()
		if yours.IndexError != nil {
			yours.IndexError(s, k, err)
		}
	}
	h.Mutation = func(s informer.Stream, k informer.Key, err error) {
		c.mutations.WithLabelValues(resource(s)).Inc()
		if yours.Mutation != nil {
			yours.Mutation(s, k, err)
		}
	}
	h.Audit = func(i informer.AuditInfo) {
		c.audited(i)
		call(yours.Audit, i)
	}
	h.Checkpoint = counting(c.checkpoints, yours.Checkpoint)
	return h
}

func call[T any](hook func(T), v T) {
	if hook != nil {
		hook(v)
	}
}

// counting returns a hook that counts errors of streams, then calls hook.
func counting(n *prometheus.CounterVec, hook func(informer.Stream, error)) func(informer.Stream, error) {
	return func(s informer.Stream, err error) {
		n.WithLabelValues(resource(s)).Inc()
		if hook != nil {
			hook(s, err)
		}
	}
}

func (c *Collector) listed(i informer.ListInfo) {
	r, mode := resource(i.Stream), "paged"
	if i.Streaming {
		mode = "streaming"
	}
	c.lists.WithLabelValues(r, mode, result(i.Err)).Inc()
	c.listObjects.WithLabelValues(r).Add(float64(i.Objects))
	c.listBytes.WithLabelValues(r).Add(float64(i.Bytes))
	c.listDuration.WithLabelValues(r).Observe(i.Duration.Seconds())
}

func (c *Collector) audited(i informer.AuditInfo) {
	r, compared, result := resource(i.Stream), "metadata", "passed"
	if i.Contents {
		compared = "contents"
	}
	switch {
	case errors.Is(i.Err, informer.ErrMissed):
		result = "missed"
	case i.Err != nil:
		result = "failed"
	}
	c.audits.WithLabelValues(r, compared, result).Inc()
	c.reread.WithLabelValues(r).Add(float64(i.Reread))
}

func (c *Collector) watched(i informer.WatchInfo) {
	r := resource(i.Stream)
	c.watches.WithLabelValues(r, result(i.Err)).Inc()
	c.watchEvents.WithLabelValues(r).Add(float64(i.Events))
	c.watchBytes.WithLabelValues(r).Add(float64(i.Bytes))
	c.watchDuration.WithLabelValues(r).Observe(i.Duration.Seconds())
}

func resource(s informer.Stream) string { return s.Resource.GroupResource().String() }

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// counted returns the metrics counted by hooks.
func (c *Collector) counted() []prometheus.Collector {
	return []prometheus.Collector{
		c.lists, c.listObjects, c.listBytes, c.listDuration, c.watches, c.watchEvents, c.watchBytes, c.watchDuration,
		c.expired, c.gaps, c.decodeErrors, c.lossyDecodes, c.indexErrors, c.checkpoints, c.audits, c.reread, c.mutations,
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.counted() {
		m.Describe(ch)
	}
	for _, d := range described {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.counted() {
		m.Collect(ch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cluster == nil {
		return
	}
	sums, err := readStatus(c.cluster, time.Now())
	if err != nil {
		ch <- prometheus.NewInvalidMetric(objects, err)
		return
	}
	sums.collect(ch, c.dropped)
}
