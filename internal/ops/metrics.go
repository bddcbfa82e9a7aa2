package ops

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tattler-dev/tattler/internal/control"
)

// metrics answers a scrape from the current status. Without a status, the scrape fails: zeros would be wrong,
// and no alert would notice.
func (h *handler) metrics(w http.ResponseWriter, r *http.Request) {
	select {
	case h.scrapes <- struct{}{}:
		defer func() { <-h.scrapes }()
	default:
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d scrapes are being answered already", maxScrapes))
		return
	}
	s, err := h.status(r)
	if err != nil {
		h.refuseStatus(w, err)
		return
	}
	once := prometheus.NewRegistry()
	once.MustRegister(collector{&s})
	promhttp.HandlerFor(prometheus.Gatherers{once, h.process}, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(h.asker.log.Handler(), slog.LevelWarn),
	}).ServeHTTP(w, r)
}

// collector derives metrics from one status.
type collector struct{ status *control.Status }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for i := range metrics {
		to <- metrics[i].desc(len(c.status.Clusters) > 0 && metrics[i].ofCluster())
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for i := range metrics {
		m := &metrics[i]
		if c.status.Starting != "" && i >= early {
			return
		}
		if !m.ofCluster() {
			c.collect(to, m, "", c.status)
			continue
		}
		each(c.status, func(cluster string, s *control.Status) { c.collect(to, m, cluster, s) })
	}
}

// collect reports the values of a metric, of one of several clusters unless cluster is empty.
func (collector) collect(to chan<- prometheus.Metric, m *metric, cluster string, s *control.Status) {
	desc := m.desc(cluster != "")
	m.values(s, func(v float64, labels ...string) {
		if cluster != "" {
			labels = append(slices.Clone(labels), cluster)
		}
		for i, l := range labels {
			labels[i] = strings.ToValidUTF8(l, "?")
		}
		to <- prometheus.MustNewConstMetric(desc, m.kind, v, labels...)
	})
}

// metric is a metric derived from a status. Its labels are sinks, kinds and states, of which there are few;
// never objects.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	// values reports each value with its label values.
	values func(s *control.Status, emit emitter)
}

type emitter func(v float64, labels ...string)

// desc describes the metric, with the label cluster if there are several.
func (m *metric) desc(several bool) *prometheus.Desc {
	labels := m.labels
	if several {
		labels = append(slices.Clone(labels), clusterLabel)
	}
	return prometheus.NewDesc(m.name, m.help, labels, nil)
}

// ofCluster reports whether several clusters have a value each.
func (m *metric) ofCluster() bool {
	return m.name == "tattler_settled" || m.name == "tattler_api_server_reachable" ||
		strings.HasPrefix(m.name, "tattler_stream") || strings.HasPrefix(m.name, "tattler_audit")
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// early is the number of metrics that are known before the journal is open.
const early = 2

// metrics are all of them, in the order of docs/metrics.md.
var metrics = []metric{
	{"tattler_build_info", "The running version; always 1.", gauge, []string{"version", "go"}, func(s *control.Status, emit emitter) {
		emit(1, s.Version, runtime.Version())
	}},
	{"tattler_settled", "1 once every kind found at the start is live or forbidden; 0 before.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Settled) })},
	{"tattler_api_server_reachable", "0 while the API server cannot be reached; else 1.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Away == "") })},

	{"tattler_streams", "Streams (a list and its watch) by state. Waiting streams are retried after an error, forbidden ones at intervals; gone streams belong to kinds that the server no longer serves, and end once the deletions of their objects are recorded.", gauge, []string{"state"}, streamStates},
	{"tattler_stream_not_live_timestamp_seconds", "Since when a stream of the kind has not been live: the time at which it lost its connection or started. If several are not live, the earliest of these times. Only listing and waiting streams count, not forbidden or gone ones. Absent if there are none.", gauge, []string{"resource"}, notLive},
	{"tattler_stream_revoked", "Streams of the kind that were recorded before and are forbidden now: a right was revoked.", gauge, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return int64(truth(revoked(s))) })},
	{"tattler_stream_objects", "Watched objects.", gauge, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return int64(s.Objects) })},
	{"tattler_stream_lists_total", "Lists started: one per stream at the first start, more when a watch could not be resumed.", counter, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return s.Lists })},
	{"tattler_stream_watches_total", "Watches started. The server ends each watch after several minutes.", counter, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return s.Watches })},
	{"tattler_stream_gaps_total", "Gaps: versions were missed, for instance because they had expired, and the net change was recorded instead.", counter, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return s.Gaps })},

	{"tattler_audits_total", "Audits of a kind's streams: the known state is compared with a list that is read beside the watch. Audits compare metadata (UIDs and versions) or, after the API server has begun to serve the kind in another form, contents. The result is passed if the audit found nothing that the watch had missed; missed if it found something, and a gap is recorded; failed if it was inconclusive, and is repeated.", counter, []string{"resource", "compared", "result"}, audits},
	{"tattler_audit_reread_objects_total", "Objects that an audit read again, because their content differed at the same version or the watch could not read them.", counter, []string{"resource"}, reread},

	{"tattler_changes_recorded_total", "Changes written to the journal, including quiet ones.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Recorded) })},
	{"tattler_changes_quiet_total", "Recorded changes that are quiet: updates of quiet fields alone, and conversions (the API server serves an object in another form).", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Quiet) })},
	{"tattler_changes_duplicate_total", "Changes seen again, as after a restart, and not written twice.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Duplicates) })},
	{"tattler_changes_removed_total", "Changes removed by the journal's age and size limits.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Removed) })},

	{"tattler_journal_writable", "0 while the journal cannot be written, such as on a full disk; else 1.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Journal.Error == "") })},
	{"tattler_journal_write_failures_total", "Failed writes to the journal.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Failures) })},
	{"tattler_journal_readable", "0 while the journal cannot be read, for instance because it is damaged; metrics read from it are then absent. Else 1.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Journal.ReadError == "") })},
	{"tattler_journal_commits_total", "Transactions of the journal.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Commits) })},
	{"tattler_journal_bytes", "Used bytes of the journal's file.", gauge, nil,
		read(one(func(s *control.Status) float64 { return float64(s.Journal.Used) }))},
	{"tattler_journal_free_bytes", "Free bytes within the journal's file.", gauge, nil,
		read(one(func(s *control.Status) float64 { return float64(s.Journal.Free) }))},
	{"tattler_journal_log_bytes", "The size of the write-ahead log beside the journal.", gauge, nil,
		read(one(func(s *control.Status) float64 { return float64(s.Journal.Log) }))},
	{"tattler_journal_limit_bytes", "The size limit of the journal; absent without a limit.", gauge, nil, func(s *control.Status, emit emitter) {
		if s.Journal.Limit > 0 {
			emit(float64(s.Journal.Limit))
		}
	}},
	{"tattler_journal_states_bytes", "Approximate part of tattler_journal_bytes taken by the last states of watched objects, measured every ten minutes; absent before the first measurement. The history gets the rest of the limit, at least a quarter of it.", gauge, nil, func(s *control.Status, emit emitter) {
		if s.Journal.States > 0 {
			emit(float64(s.Journal.States))
		}
	}},
	{"tattler_journal_age_limit_seconds", "The age limit of the journal; absent without a limit.", gauge, nil, func(s *control.Status, emit emitter) {
		if s.Journal.Age > 0 {
			emit(float64(s.Journal.Age))
		}
	}},
	{"tattler_journal_cut_timestamp_seconds", "When the newest change was seen that the size limit removed, which takes from the namespace that has the most: from then on the history is whole. Absent if the size limit removed none.", gauge, nil, func(s *control.Status, emit emitter) {
		if !s.Journal.Cut.IsZero() {
			emit(float64(s.Journal.Cut.UnixMilli()) / 1000)
		}
	}},
	{"tattler_clock_jump_seconds", "How far the wall clock is ahead of the daemon's own count of elapsed time, or behind it if negative, while age retention does not trust the wall clock; 0 while it does.", gauge, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.ClockJump) })},
	{"tattler_journal_oldest_timestamp_seconds", "When the oldest change of the journal was seen; absent if the journal is empty.", gauge, nil, func(s *control.Status, emit emitter) {
		if !s.Journal.Oldest.IsZero() {
			emit(float64(s.Journal.Oldest.UnixMilli()) / 1000)
		}
	}},
	{"tattler_journal_newest_timestamp_seconds", "When the newest change of the journal was seen; absent if the journal is empty.", gauge, nil, func(s *control.Status, emit emitter) {
		if !s.Journal.Newest.IsZero() {
			emit(float64(s.Journal.Newest.UnixMilli()) / 1000)
		}
	}},

	{"tattler_sink_state", "1 for the sink's current state (running, retrying, paused or stopped); 0 for the other states.", gauge, []string{"sink", "state"}, sinkStates},
	{"tattler_sink_lag_seconds", "Age of the first change that the sink has not received yet; 0 if it has received all.", gauge, []string{"sink"},
		read(perSink(func(s *control.Sink) float64 { return s.LagSeconds }))},
	{"tattler_sink_behind_changes", "Changes in the journal that the sink has not received yet, including those that its filter will reject.", gauge, []string{"sink"},
		read(perSink(func(s *control.Sink) float64 { return float64(s.Behind) }))},
	{"tattler_sink_delivered_total", "Changes acknowledged by the receiver.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Delivered) })},
	{"tattler_sink_attempts_total", "Attempts to send one or several changes at once.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Attempts) })},
	{"tattler_sink_failures_total", "Errors, including those of the journal, after which the sink waited before it tried again.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Failures) })},
	{"tattler_sink_dead_letters", "Kept dead letters: changes that the receiver refused for good, or that were skipped; see tattler sinks dead.", gauge, []string{"sink"},
		read(perSink(func(s *control.Sink) float64 { return float64(s.Dead) }))},
	{"tattler_sink_set_aside_total", "Changes that became dead letters.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.SetAside) })},
	{"tattler_sink_lost_total", "Changes that the sink will never get: those that the journal removed before the sink received them, and dead letters beyond the newest 10,000.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Lost) })},
	{"tattler_sink_filter_errors_total", "Failures of the sink's where filter. A change on which it fails is delivered nevertheless, with a mark.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.FilterErrors) })},
	{"tattler_trace_spans_exported_total", "Spans that the receiver of traces accepted; absent without traces.", counter, nil,
		traced(func(t *control.Traces) int64 { return t.Exported })},
	{"tattler_trace_spans_dropped_total", "Spans that were not exported, because the receiver was away, too slow, or refused them; absent without traces.", counter, nil,
		traced(func(t *control.Traces) int64 { return t.Dropped })},
	{"tattler_orders_total", "Orders about sinks, given with tattler sinks or on the web page. A refused order made no sense, such as one for an unknown sink.", counter, []string{"order", "result"}, orders},
	{"tattler_page_refusals_total", "Connections and requests that the web page and the API refused. The reasons: connections, requests and streams are too many in all (streams are live pages); viewer_requests and viewer_streams too many of one viewer; api_requests and api_streams too many that read much; credentials that are missing or invalid; review: the API server could not verify them; site: a request for another host, of another site's page, or with another method. Absent without a web page.", counter, []string{"reason"}, pageRefusals},
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func one(value func(*control.Status) float64) func(*control.Status, emitter) {
	return func(s *control.Status, emit emitter) { emit(value(s)) }
}

// read emits a metric that is read from the journal, unless the journal cannot be read.
func read(values func(*control.Status, emitter)) func(*control.Status, emitter) {
	return func(s *control.Status, emit emitter) {
		if s.Journal.ReadError == "" {
			values(s, emit)
		}
	}
}

func traced(value func(*control.Traces) int64) func(*control.Status, emitter) {
	return func(s *control.Status, emit emitter) {
		if s.Traces != nil {
			emit(float64(value(s.Traces)))
		}
	}
}

func perSink(value func(*control.Sink) float64) func(*control.Status, emitter) {
	return func(s *control.Status, emit emitter) {
		for i := range s.Sinks {
			emit(value(&s.Sinks[i]), s.Sinks[i].Name)
		}
	}
}

// perResource adds up the streams of a kind: one for each namespace, selection and version.
func perResource(value func(*control.Stream) int64) func(*control.Status, emitter) {
	return func(s *control.Status, emit emitter) {
		sums := map[string]int64{}
		for i := range s.Streams {
			sums[s.Streams[i].Resource] += value(&s.Streams[i])
		}
		for resource, sum := range sums {
			emit(float64(sum), resource)
		}
	}
}

func audits(s *control.Status, emit emitter) {
	for _, a := range s.Audits {
		compared := "metadata"
		if a.Contents {
			compared = "contents"
		}
		emit(float64(a.Passed), a.Resource, compared, "passed")
		emit(float64(a.Missed), a.Resource, compared, "missed")
		emit(float64(a.Failed), a.Resource, compared, "failed")
	}
}

func reread(s *control.Status, emit emitter) {
	for _, a := range s.Audits {
		if a.Contents { // others read no object
			emit(float64(a.Reread), a.Resource)
		}
	}
}

func notLive(s *control.Status, emit emitter) {
	first := map[string]time.Time{}
	for i := range s.Streams {
		st := &s.Streams[i]
		if at, known := first[st.Resource]; !st.TryingSince.IsZero() && (!known || st.TryingSince.Before(at)) {
			first[st.Resource] = st.TryingSince
		}
	}
	for resource, at := range first {
		emit(float64(at.UnixMilli())/1000, resource)
	}
}

func streamStates(s *control.Status, emit emitter) {
	counts := map[control.StreamState]int{}
	for _, state := range control.StreamStates() {
		counts[state] = 0 // report zeros, too
	}
	for i := range s.Streams {
		counts[s.Streams[i].State]++
	}
	for state, n := range counts {
		emit(float64(n), string(state))
	}
}

func orders(s *control.Status, emit emitter) {
	for _, o := range s.Orders {
		emit(float64(o.Done), o.Order, "done")
		emit(float64(o.Refused), o.Order, "refused")
		emit(float64(o.Failed), o.Order, "failed")
	}
}

func pageRefusals(s *control.Status, emit emitter) {
	for _, r := range s.PageRefusals {
		emit(float64(r.Count), r.Reason)
	}
}

func sinkStates(s *control.Status, emit emitter) {
	for i := range s.Sinks {
		states := map[string]bool{"running": false, "retrying": false, "paused": false, "stopped": false}
		states[s.Sinks[i].State] = true
		for state, is := range states {
			emit(truth(is), s.Sinks[i].Name, state)
		}
	}
}
