package ops

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tattler-dev/tattler/internal/control"
)

// metrics answers a scrape with what the status says now. Where it says nothing, the scrape fails: zeros
// would be a lie that no alert finds.
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

// collector makes metrics of one status.
type collector struct{ status *control.Status }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for i := range metrics {
		to <- metrics[i].desc()
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for i := range metrics {
		m := &metrics[i]
		if c.status.Starting != "" && i >= early {
			return
		}
		desc := m.desc()
		m.values(c.status, func(v float64, labels ...string) {
			for i, l := range labels {
				labels[i] = strings.ToValidUTF8(l, "?")
			}
			to <- prometheus.MustNewConstMetric(desc, m.kind, v, labels...)
		})
	}
}

// metric is one that is made of a status. Its labels are sinks, kinds and states, of which there are not
// many; no object is in one.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	// values tells each value, with those of the labels.
	values func(s *control.Status, tell teller)
}

type teller func(v float64, labels ...string)

func (m *metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.name, m.help, m.labels, nil) }

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// early is how many of metrics are known before the journal is open.
const early = 2

// metrics are all of them, in the order of docs/metrics.md.
var metrics = []metric{
	{"tattler_build_info", "What runs; always 1.", gauge, []string{"version", "go"}, func(s *control.Status, tell teller) {
		tell(1, s.Version, runtime.Version())
	}},
	{"tattler_settled", "1 once every kind of the start is live, or known not to become so; 0 before.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Settled) })},
	{"tattler_api_server_reachable", "0 while the API server cannot be reached; else 1.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Away == "") })},

	{"tattler_streams", "Streams (a list and its watch) by what they do. Waiting ones are tried again after an error, forbidden ones now and then; gone are those of which the server has no more.", gauge, []string{"state"}, streamStates},
	{"tattler_stream_not_live_timestamp_seconds", "Since when a stream of the kind, the first of them, tries to be live and is not, whether it lists, waits, or each in turns; absent where none does.", gauge, []string{"resource"}, notLive},
	{"tattler_stream_objects", "Objects that are watched.", gauge, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return int64(s.Objects) })},
	{"tattler_stream_lists_total", "Lists that were begun: one at the first start, others where a watch could not go on.", counter, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return s.Lists })},
	{"tattler_stream_watches_total", "Watches that were begun. The server ends each after some minutes.", counter, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return s.Watches })},
	{"tattler_stream_gaps_total", "Gaps: some versions were missed, such as those that the server no longer had, and the net change was recorded instead.", counter, []string{"resource"},
		perResource(func(s *control.Stream) int64 { return s.Gaps })},

	{"tattler_audits_total", "Audits of a kind's streams: what is known is compared with a list beside the watch. They compare metadata (UIDs and versions) or, where the kind is served in another form, contents. One that passed found nothing that the watch had not shown; one that found something missed is followed by a gap; one that failed could not decide and is repeated.", counter, []string{"resource", "compared", "result"}, audits},
	{"tattler_audit_reread_objects_total", "Objects that an audit read again because their content, or its sum, was not the known one although their version was.", counter, []string{"resource"}, reread},

	{"tattler_changes_recorded_total", "Changes that were written to the journal, quiet ones included.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Recorded) })},
	{"tattler_changes_quiet_total", "Changes among those recorded that are quiet: updates of quiet fields alone, and conversions, where the API server serves an object in another form.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Quiet) })},
	{"tattler_changes_duplicate_total", "Changes that were seen again, as after a restart, and not written twice.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Duplicates) })},
	{"tattler_changes_removed_total", "Changes that the journal's age and size limits removed.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Removed) })},

	{"tattler_journal_writable", "0 while the journal cannot be written, such as on a full disk; else 1.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Journal.Error == "") })},
	{"tattler_journal_write_failures_total", "How often the journal could not be written.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Failures) })},
	{"tattler_journal_readable", "0 while the journal cannot be read, such as where it is damaged: what is read from it is absent then; else 1.", gauge, nil,
		one(func(s *control.Status) float64 { return truth(s.Journal.ReadError == "") })},
	{"tattler_journal_commits_total", "Transactions of the journal.", counter, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.Commits) })},
	{"tattler_journal_bytes", "What the journal's file holds.", gauge, nil,
		read(one(func(s *control.Status) float64 { return float64(s.Journal.Used) }))},
	{"tattler_journal_free_bytes", "What of the journal's file is free for what comes.", gauge, nil,
		read(one(func(s *control.Status) float64 { return float64(s.Journal.Free) }))},
	{"tattler_journal_log_bytes", "The size of the write-ahead log beside the journal.", gauge, nil,
		read(one(func(s *control.Status) float64 { return float64(s.Journal.Log) }))},
	{"tattler_journal_limit_bytes", "How much the journal may hold; absent where nothing limits it.", gauge, nil, func(s *control.Status, tell teller) {
		if s.Journal.Limit > 0 {
			tell(float64(s.Journal.Limit))
		}
	}},
	{"tattler_journal_states_bytes", "About what the last states of the watched objects take of tattler_journal_bytes, measured every ten minutes; absent before. The history gets what they leave of the limit, and a quarter of it at least.", gauge, nil, func(s *control.Status, tell teller) {
		if s.Journal.States > 0 {
			tell(float64(s.Journal.States))
		}
	}},
	{"tattler_clock_jump_seconds", "How far the clock is ahead of the time that has passed, or behind if negative, where that is too much to remove changes by it; 0 while it is trusted.", gauge, nil,
		one(func(s *control.Status) float64 { return float64(s.Journal.ClockJump) })},
	{"tattler_journal_oldest_timestamp_seconds", "When the oldest change of the journal was seen; absent while there is none.", gauge, nil, func(s *control.Status, tell teller) {
		if !s.Journal.Oldest.IsZero() {
			tell(float64(s.Journal.Oldest.UnixMilli()) / 1000)
		}
	}},
	{"tattler_journal_newest_timestamp_seconds", "When the newest change of the journal was seen; absent while there is none.", gauge, nil, func(s *control.Status, tell teller) {
		if !s.Journal.Newest.IsZero() {
			tell(float64(s.Journal.Newest.UnixMilli()) / 1000)
		}
	}},

	{"tattler_sink_state", "1 for what the sink does (running, retrying, paused, stopped); 0 for what it does not.", gauge, []string{"sink", "state"}, sinkStates},
	{"tattler_sink_lag_seconds", "How long ago the first change was seen that the sink has not got yet; 0 where it has all.", gauge, []string{"sink"},
		read(perSink(func(s *control.Sink) float64 { return s.LagSeconds }))},
	{"tattler_sink_behind_changes", "How many changes of the journal the sink has not got, or not looked at, yet.", gauge, []string{"sink"},
		read(perSink(func(s *control.Sink) float64 { return float64(s.Behind) }))},
	{"tattler_sink_delivered_total", "Changes that the receiver acknowledged.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Delivered) })},
	{"tattler_sink_attempts_total", "How often changes were sent, one or several at once.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Attempts) })},
	{"tattler_sink_failures_total", "How often the sink had to wait after an error.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Failures) })},
	{"tattler_sink_dead_letters", "Changes that the receiver refused for good, and that are kept: see tattler sinks dead.", gauge, []string{"sink"},
		read(perSink(func(s *control.Sink) float64 { return float64(s.Dead) }))},
	{"tattler_sink_buried_total", "Changes that became dead letters.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Buried) })},
	{"tattler_sink_lost_total", "Changes that the journal's limits removed before the sink got them.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.Lost) })},
	{"tattler_sink_filter_errors_total", "How often the sink's where failed on a change, which was delivered all the same, marked.", counter, []string{"sink"},
		perSink(func(s *control.Sink) float64 { return float64(s.FilterErrors) })},
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func one(value func(*control.Status) float64) func(*control.Status, teller) {
	return func(s *control.Status, tell teller) { tell(value(s)) }
}

// read is for what is read from the journal: nothing is told while that cannot be.
func read(values func(*control.Status, teller)) func(*control.Status, teller) {
	return func(s *control.Status, tell teller) {
		if s.Journal.ReadError == "" {
			values(s, tell)
		}
	}
}

func perSink(value func(*control.Sink) float64) func(*control.Status, teller) {
	return func(s *control.Status, tell teller) {
		for i := range s.Sinks {
			tell(value(&s.Sinks[i]), s.Sinks[i].Name)
		}
	}
}

// perResource adds up the streams of a kind: it has one for each namespace, selection and version.
func perResource(value func(*control.Stream) int64) func(*control.Status, teller) {
	return func(s *control.Status, tell teller) {
		sums := map[string]int64{}
		for i := range s.Streams {
			sums[s.Streams[i].Resource] += value(&s.Streams[i])
		}
		for resource, sum := range sums {
			tell(float64(sum), resource)
		}
	}
}

func audits(s *control.Status, tell teller) {
	for _, a := range s.Audits {
		compared := "metadata"
		if a.Contents {
			compared = "contents"
		}
		tell(float64(a.Passed), a.Resource, compared, "passed")
		tell(float64(a.Missed), a.Resource, compared, "missed")
		tell(float64(a.Failed), a.Resource, compared, "failed")
	}
}

func reread(s *control.Status, tell teller) {
	for _, a := range s.Audits {
		if a.Contents { // others read no object
			tell(float64(a.Reread), a.Resource)
		}
	}
}

func notLive(s *control.Status, tell teller) {
	first := map[string]time.Time{}
	for i := range s.Streams {
		st := &s.Streams[i]
		if at, known := first[st.Resource]; !st.TryingSince.IsZero() && (!known || st.TryingSince.Before(at)) {
			first[st.Resource] = st.TryingSince
		}
	}
	for resource, at := range first {
		tell(float64(at.UnixMilli())/1000, resource)
	}
}

func streamStates(s *control.Status, tell teller) {
	counts := map[control.StreamState]int{}
	for _, state := range control.StreamStates() {
		counts[state] = 0 // said, too
	}
	for i := range s.Streams {
		counts[s.Streams[i].State]++
	}
	for state, n := range counts {
		tell(float64(n), string(state))
	}
}

func sinkStates(s *control.Status, tell teller) {
	for i := range s.Sinks {
		states := map[string]bool{"running": false, "retrying": false, "paused": false, "stopped": false}
		states[s.Sinks[i].State] = true
		for state, is := range states {
			tell(truth(is), s.Sinks[i].Name, state)
		}
	}
}
