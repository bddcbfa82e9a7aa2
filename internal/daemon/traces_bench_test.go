package daemon

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/sink/sinktest"
	"github.com/tattler-dev/tattler/internal/trace"
)

// BenchmarkTraces measures what traces add to a change that was recorded and is delivered to a sink that only counts: the
// spans are made, sent and compressed, and a receiver in this process reads them. Off is the way without traces. Not
// included: the journal.
func BenchmarkTraces(b *testing.B) {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a lost request is in the exporter's counters
	}))
	defer receiver.Close()
	const changes = 5000 // twice as many spans would exceed the exporter's queue
	var items []deliver.Item
	batch := journal.Batch{}
	for n := range changes {
		item := sinktest.Item(n)
		items = append(items, item)
		row := journal.Row{Meta: item.Change.Meta}
		row.Seq = item.Seq
		batch.Rows = append(batch.Rows, row)
	}
	for _, tc := range []struct {
		name   string
		sample float64
	}{{"off", 0}, {"sample=0.01", 0.01}, {"sample=0.5", 0.5}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			o := trace.DefaultOptions()
			o.Endpoint, o.Sample = receiver.URL, tc.sample
			var used time.Duration
			var exported, dropped int64
			for b.Loop() {
				b.StopTimer()
				store := &sinktest.Store{}
				store.Append(items...)
				b.StartTimer()
				before := cpu(b)
				s := deliverTraced(b, o, batch, store)
				used, exported, dropped = used+cpu(b)-before, exported+s.Exported, dropped+s.Dropped
			}
			n := float64(b.N * changes)
			b.ReportMetric(float64(used.Nanoseconds())/1e3/n, "cpu-µs/change")
			b.ReportMetric(float64(exported)/n, "spans/change")
			b.ReportMetric(float64(dropped)/n, "dropped/change")
		})
	}
}

// deliverTraced delivers the changes of a batch, which were recorded, with traces unless the sample is 0.
func deliverTraced(b *testing.B, o trace.Options, batch journal.Batch, store *sinktest.Store) (s trace.Status) {
	b.Helper()
	run := func(run func(context.Context) error) (stop func()) {
		end := serve(b.Context(), func() {}, run)
		return func() {
			if err := end(); err != nil {
				b.Fatal(err)
			}
		}
	}
	to := &counter{want: len(batch.Rows), done: make(chan struct{})}
	do := deliver.Options{Name: "bench", Sink: to, Store: store, From: deliver.Beginning}
	rec := &recorder{pending: []journal.Batch{batch}, written: time.Now()}
	if o.Sample > 0 {
		e, err := trace.New("tattler/bench", o, nil)
		if err != nil {
			b.Fatal(err)
		}
		rec.traces = newTraces(e, "prod", nil)
		do.Traces = &sinkTraces{traces: rec.traces, sink: do.Name}
		stop := run(e.Run)
		defer func() {
			stop()
			s = e.Status()
		}()
	}
	rec.trace()
	p, err := deliver.New(do)
	if err != nil {
		b.Fatal(err)
	}
	defer run(p.Run)()
	<-to.done
	return s
}
