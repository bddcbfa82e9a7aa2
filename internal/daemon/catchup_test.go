package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/sink"
)

// podJSON returns a pod's JSON, about 9 KB, as a kubelet leaves it after a number of writes of its status.
func podJSON(i, version int) []byte {
	stamp := time.Date(2026, 11, 1, 0, 0, version, 0, time.UTC).Format(time.RFC3339)
	var spec, fields, statuses, owned strings.Builder
	for c := range 4 {
		if c > 0 {
			for _, b := range []*strings.Builder{&spec, &fields, &statuses, &owned} {
				b.WriteByte(',')
			}
		}
		fmt.Fprintf(&spec, `{"args":["serve","--config=/etc/app/config.yaml","--listen=:80%02[1]d","--v=2"],"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"DB_URL","value":"postgres://db-%[2]d.shop.svc:5432/shop"},{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"key":"password","name":"db-%[2]d"}}},{"name":"POD_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}}],"image":"registry.example.com/shop/web-%[1]d:1.%[2]d","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":80%02[1]d,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"name":"c%[1]d","resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/etc/app","name":"config"},{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-x7x2k","readOnly":true}]}`, c, i%50)
		fmt.Fprintf(&fields, `"k:{\"name\":\"c%d\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"DB_PASSWORD\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}},"k:{\"name\":\"DB_URL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}}`, c)
		fmt.Fprintf(&statuses, `{"containerID":"containerd://%064[1]x","image":"registry.example.com/shop/web-%[2]d:1.%[3]d","imageID":"registry.example.com/shop/web@sha256:%064[2]x","lastState":{},"name":"c%[2]d","ready":%[5]t,"restartCount":%[4]d,"started":true,"state":{"running":{"startedAt":"2026-11-01T00:00:00Z"}}}`, i*7919+c, c, i%50, version/(c+2), (version+c)%2 == 0)
		fmt.Fprintf(&owned, `"k:{\"type\":\"C%d\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}`, c)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"prometheus.io/port":"8080","prometheus.io/scrape":"true"},"creationTimestamp":"2026-11-01T00:00:00Z","generateName":"web-6d4cf56db6-","labels":{"app.kubernetes.io/name":"web","pod-template-hash":"6d4cf56db6"},"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},"f:spec":{"f:containers":{%[3]s},"f:dnsPolicy":{},"f:restartPolicy":{}}},"manager":"kube-controller-manager","operation":"Update","time":"2026-11-01T00:00:00Z"},{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{%[6]s},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{}}},"manager":"kubelet","operation":"Update","subresource":"status","time":"%[5]s"}],"name":"%[1]s","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web-6d4cf56db6","uid":"b7f1c0de-0000-4000-8000-000000000000"}],"resourceVersion":"%[2]d","uid":"uid-%[1]s"},"spec":{"containers":[%[4]s],"dnsPolicy":"ClusterFirst","nodeName":"node-%[8]d","priority":0,"restartPolicy":"Always","serviceAccountName":"web","terminationGracePeriodSeconds":30,"volumes":[{"configMap":{"defaultMode":420,"name":"web"},"name":"config"}]},"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"%[5]s","status":"%[9]s","type":"Ready"},{"lastProbeTime":null,"lastTransitionTime":"2026-11-01T00:00:00Z","status":"True","type":"PodScheduled"}],"containerStatuses":[%[7]s],"hostIP":"10.0.0.%[8]d","phase":"Running","podIP":"10.1.0.%[8]d","qosClass":"Burstable","startTime":"2026-11-01T00:00:00Z"}}`,
		podName(i), version, fields.String(), spec.String(), stamp, owned.String(), statuses.String(), i%250, []string{"True", "False"}[version%2])
}

func podName(i int) string { return "web-6d4cf56db6-" + strconv.Itoa(10000+i) }

// backlog is a journal of pods that change in turn.
type backlog struct {
	testing.TB
	*journal.Journal
	pods   int
	n      int // changes so far
	latest [][]byte
}

func newBacklog(tb testing.TB, pods int) *backlog {
	tb.Helper()
	j, err := journal.Open(tb.Context(), filepath.Join(tb.TempDir(), "journal.db"), journal.Options{Cluster: "prod"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := j.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &backlog{TB: tb, Journal: j, pods: pods, latest: make([][]byte, pods)}
}

// add appends the next changes, each with the time at which it was seen.
func (b *backlog) add(count int, at time.Time) {
	b.Helper()
	batch := journal.Batch{Stream: journal.Stream{GroupResource: "pods"}, Head: journal.Head{Version: strconv.Itoa(b.n), Live: true, At: at}}
	for range count {
		i := b.n % b.pods
		b.n++
		r := journal.Row{Meta: journal.Meta{
			Op: event.Updated, Kind: journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}, Namespace: "shop",
			Name: podName(i), UID: "uid-" + podName(i), ResourceVersion: strconv.Itoa(b.n), Time: at, At: at, Manager: "kubelet",
		}, Before: b.latest[i], After: podJSON(i, b.n)}
		if r.Before == nil {
			r.Op = event.Created
		}
		b.latest[i] = r.After
		batch.Rows = append(batch.Rows, r)
	}
	if _, err := b.Append(b.Context(), []journal.Batch{batch}); err != nil {
		b.Fatal(err)
	}
}

// counter is a sink that accepts everything, and knows when it has a number of changes.
type counter struct {
	want int
	done chan struct{}

	mu   sync.Mutex
	got  int
	lags []time.Duration // from when a change was seen, if live
	live bool            // measured
}

func (c *counter) String() string              { return "counter" }
func (c *counter) Close(context.Context) error { return nil }
func (c *counter) Send(_ context.Context, ms []sink.Message) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		if c.live {
			c.lags = append(c.lags, time.Since(m.Event.Data.Observed.At))
		}
		if c.got++; c.got == c.want {
			close(c.done)
		}
	}
	return len(ms), nil
}

// pumping is a running delivery from a backlog.
type pumping struct {
	b      *backlog
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func (b *backlog) pump(sinks ...*pumped) *pumping {
	b.Helper()
	p := &pumping{b: b}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(b.Context())
	rules, err := quiet.New(quiet.Rules{})
	if err != nil {
		b.Fatal(err)
	}
	stores, err := openStores(b.Context(), b.Journal, rules, &Options{Log: slog.New(slog.DiscardHandler), Sinks: make([]deliver.Options, len(sinks))})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		p.stop()
		if err := stores.close(); err != nil {
			b.Error(err)
		}
	})
	for i, s := range sinks {
		pump, err := deliver.New(deliver.Options{Name: s.name, Sink: s.counter, Store: stores.outboxes[i], From: s.from, Drain: time.Nanosecond})
		if err == nil {
			err = pump.Prepare(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		p.ended.Go(func() {
			if err := pump.Run(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	return p
}

func (p *pumping) stop() {
	p.cancel()
	p.ended.Wait()
}

// pumped is a sink of a benchmark.
type pumped struct {
	*counter
	name string
	from deliver.From
}

var runs int

func newPumped(from deliver.From, want int) *pumped {
	runs++
	return &pumped{&counter{want: want, done: make(chan struct{})}, "sink-" + strconv.Itoa(runs), from}
}

// BenchmarkCatchUp measures sinks that were down and receive a backlog of updates, at least 64 of each 9 KB
// pod, in turn: changes/s is for the slowest of them. Apart means that they start at different places. A live
// sink beside them receives the changes recorded meanwhile, 100 a second. CATCHUP_PODS is the number of pods.
func BenchmarkCatchUp(b *testing.B) {
	pods, versions := 500, 64
	if v := os.Getenv("CATCHUP_PODS"); v != "" {
		var err error
		if pods, err = strconv.Atoi(v); err != nil {
			b.Fatal(err)
		}
	}
	log := newBacklog(b, pods)
	for log.n < pods*versions {
		log.add(min(500, pods), time.Now())
	}
	total := log.n
	for _, lagging := range []int{1, 3} {
		b.Run(fmt.Sprintf("lagging=%d", lagging), func(b *testing.B) {
			for b.Loop() {
				log.catchUp(b, lagging, total, 0)
			}
		})
	}
	b.Run("lagging=3/apart", func(b *testing.B) {
		for b.Loop() {
			log.catchUp(b, 3, total, total/10)
		}
	})
	for _, lagging := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("live-beside=%d", lagging), func(b *testing.B) {
			for b.Loop() {
				log.beside(b, lagging)
			}
		})
	}
}

// catchUp delivers a backlog to a number of sinks, each of which is a number of changes behind the one before.
func (b *backlog) catchUp(tb *testing.B, lagging, total, apart int) {
	var sinks []*pumped
	for i := range lagging {
		s := newPumped(deliver.Beginning, total-i*apart)
		if i > 0 && apart > 0 {
			if err := b.SetCursor(tb.Context(), s.name, int64(i*apart)); err != nil {
				tb.Fatal(err)
			}
		}
		sinks = append(sinks, s)
	}
	p := b.pump(sinks...)
	start, used, rate := time.Now(), cpu(tb), 0.0
	for _, s := range sinks {
		<-s.done
	}
	took := time.Since(start)
	p.stop()
	for _, s := range sinks {
		if r := float64(s.want) / took.Seconds(); rate == 0 || r < rate {
			rate = r
		}
	}
	tb.ReportMetric(rate, "changes/s")
	sent := lagging*total - apart*lagging*(lagging-1)/2
	tb.ReportMetric(float64((cpu(tb)-used).Microseconds())/float64(sent), "cpu-µs/change")
}

// beside measures a live sink beside lagging ones, for as long as these take.
func (b *backlog) beside(tb *testing.B, lagging int) {
	const changes = 1000
	live := newPumped(deliver.Now, changes)
	live.counter.live = true
	sinks := []*pumped{live}
	for range lagging {
		sinks = append(sinks, newPumped(deliver.Beginning, 1<<30))
	}
	p := b.pump(sinks...)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range changes {
		<-tick.C
		b.add(1, time.Now())
	}
	select {
	case <-live.done:
	case <-time.After(time.Minute):
		tb.Fatal(errors.New("the live sink did not get all"))
	}
	p.stop()
	slices.Sort(live.lags)
	tb.ReportMetric(float64(live.lags[len(live.lags)/2].Microseconds())/1e3, "p50-ms")
	tb.ReportMetric(float64(live.lags[len(live.lags)*99/100].Microseconds())/1e3, "p99-ms")
}
