package informerprom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tattler-dev/tattler/informer"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("informer_"+name, help, append([]string{"resource"}, labels...), nil)
}

var (
	objects     = describe("objects", "Cached objects.")
	hotBytes    = describe("hot_bytes", "Estimated heap of cached decoded objects.")
	streams     = describe("streams", "Streams by state.", "state")
	synced      = describe("streams_synced", "Streams whose first sync has completed.")
	lastCurrent = describe("last_current_timestamp_seconds", "Time at which the stream furthest behind was last known to be current.")
	lagObjects  = describe("consumer_lag_objects", "Changes or objects that a consumer has not yet received.", "consumer")
	lagBytes    = describe("consumer_lag_bytes", "Bytes of the changes or objects that a consumer has not yet received.", "consumer")
	lagSeconds  = describe("consumer_lag_seconds", "Age of the oldest change or object that a consumer has not yet received.", "consumer")
	dropped     = describe("dropped_total", "Versions received but not delivered, by reason.", "reason")

	described = []*prometheus.Desc{objects, hotBytes, streams, synced, lastCurrent, lagObjects, lagBytes, lagSeconds, dropped}
)

// states lists the values of informer.State. Each is exported, even if no stream is in it.
var states = []informer.State{
	informer.Starting, informer.Listing, informer.Watching, informer.Waiting, informer.Parked, informer.Stopped,
}

// status is the part of the output of informer.Cluster.WriteStatus that is exported.
type status struct {
	Sources []struct {
		Resource string // with its version
		HotBytes int64
		Streams  []struct {
			State       string
			Synced      bool
			LastCurrent time.Time
			Objects     int

			Past, Repeated, Unreadable, TransformErrors uint64
		}
		Consumers []struct {
			Name string
			Lag  informer.Lag
		}
	}
}

// sums are the totals over the streams and sources of each resource.
type sums map[string]*sum

type sum struct {
	objects, synced, hot float64
	states               map[string]float64
	lastCurrent          time.Time // zero: some stream never was
	neverCurrent         bool
	dropped              map[string]uint64
	lag                  map[string]lag // by consumer
}

type lag struct{ objects, bytes, seconds float64 }

// readStatus reads the state of a cluster.
func readStatus(cluster *informer.Cluster, now time.Time) (sums, error) {
	var (
		b bytes.Buffer
		s status
	)
	if err := cluster.WriteStatus(&b); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		return nil, fmt.Errorf("read the cluster's status: %w", err)
	}
	all := sums{}
	for _, source := range s.Sources {
		resource, _, _ := strings.Cut(source.Resource, " ")
		t := all.of(resource)
		t.hot += float64(source.HotBytes)
		for _, st := range source.Streams {
			t.objects += float64(st.Objects)
			t.states[st.State]++
			if st.Synced {
				t.synced++
			}
			t.current(st.LastCurrent)
			t.dropped["past"] += st.Past
			t.dropped["repeated"] += st.Repeated
			t.dropped["unreadable"] += st.Unreadable
			t.dropped["transform"] += st.TransformErrors
		}
		for _, c := range source.Consumers {
			l := t.lag[c.Name]
			l.objects += float64(c.Lag.Objects)
			l.bytes += float64(c.Lag.Bytes)
			if !c.Lag.Oldest.IsZero() {
				l.seconds = max(l.seconds, now.Sub(c.Lag.Oldest).Seconds())
			}
			t.lag[c.Name] = l
		}
	}
	return all, nil
}

func (s sums) of(resource string) *sum {
	if s[resource] == nil {
		s[resource] = &sum{states: map[string]float64{}, dropped: map[string]uint64{}, lag: map[string]lag{}}
	}
	return s[resource]
}

// current records when a stream was last known to be current; zero: never.
func (t *sum) current(at time.Time) {
	t.neverCurrent = t.neverCurrent || at.IsZero()
	if t.lastCurrent.IsZero() || at.Before(t.lastCurrent) {
		t.lastCurrent = at
	}
}

func (s sums) collect(ch chan<- prometheus.Metric, grown growth) {
	for resource, t := range s {
		gauge := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{resource}, labels...)...)
		}
		gauge(objects, t.objects)
		gauge(hotBytes, t.hot)
		gauge(synced, t.synced)
		for _, state := range states {
			gauge(streams, t.states[state.String()], state.String())
		}
		if !t.neverCurrent {
			gauge(lastCurrent, float64(t.lastCurrent.UnixMilli())/1000)
		}
		for consumer, l := range t.lag {
			gauge(lagObjects, l.objects, consumer)
			gauge(lagBytes, l.bytes, consumer)
			gauge(lagSeconds, l.seconds, consumer)
		}
		for reason, n := range t.dropped {
			grown.to(growthKey{resource, reason}, n)
		}
	}
	for k, g := range grown { // also of sources closed since
		ch <- prometheus.MustNewConstMetric(dropped, prometheus.CounterValue, g.total, k.resource, k.reason)
		if s[k.resource] == nil {
			grown.to(k, 0)
		}
	}
}

// growth turns sums, which fall when a source is closed, into counters, which never fall.
type growth map[growthKey]*grown

type growthKey struct{ resource, reason string }

type grown struct {
	last  uint64
	total float64
}

func (g growth) to(k growthKey, n uint64) {
	if g[k] == nil {
		g[k] = &grown{}
	}
	if v := g[k]; n > v.last {
		v.total += float64(n - v.last)
	}
	g[k].last = n
}
