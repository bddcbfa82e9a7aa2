package informerprom_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/feed"
	"github.com/tattler-dev/tattler/informer/informerprom"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// scrape returns a scrape as text.
func scrape(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// has checks that a scrape has the lines.
func has(t *testing.T, why, scrape string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(scrape, "\n"+line+"\n") {
			t.Errorf("%s: no line %q in\n%s", why, line, scrape)
		}
	}
}

// TestScrape follows a cluster through the loss of its history, and checks every scrape with promlint.
func TestScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := informertest.NewServer()
		server.Serve(widgets, "Widget")
		server.Put(widgets, "secret-namespace", "secret-name", nil)
		server.Put(widgets, "secret-namespace", "other", nil)
		metrics := informerprom.New()
		cluster, err := informer.NewCluster(server.Config(), informer.Options{Hooks: metrics.Hooks(informer.Hooks{})})
		if err != nil {
			t.Fatal(err)
		}
		metrics.Add(cluster)
		source, err := cluster.Source(widgets, informer.SourceOptions{Paged: true})
		if err != nil {
			t.Fatal(err)
		}
		slow, err := feed.Join(source, "slow", 0)
		if err != nil {
			t.Fatal(err)
		}
		has(t, "before it runs", scrape(t, metrics), `informer_streams{resource="widgets.example.com",state="starting"} 1`,
			`informer_objects{resource="widgets.example.com"} 0`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cluster.Run(ctx) }()
		if err := source.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		text := scrape(t, metrics)
		has(t, "in sync", text,
			`informer_objects{resource="widgets.example.com"} 2`,
			`informer_streams{resource="widgets.example.com",state="watching"} 1`,
			`informer_streams{resource="widgets.example.com",state="waiting"} 0`,
			`informer_streams_synced{resource="widgets.example.com"} 1`,
			`informer_last_current_timestamp_seconds{resource="widgets.example.com"} 9.466848e+08`,
			`informer_consumer_lag_objects{consumer="slow",resource="widgets.example.com"} 2`,
			`informer_consumer_lag_seconds{consumer="slow",resource="widgets.example.com"} 10`,
			`informer_lists_total{mode="paged",resource="widgets.example.com",result="ok"} 1`,
			`informer_list_objects_total{resource="widgets.example.com"} 2`,
			`informer_list_duration_seconds_count{resource="widgets.example.com"} 1`,
			`informer_dropped_total{reason="unreadable",resource="widgets.example.com"} 0`,
		)
		lint(t, text)

		server.Misbehave(informertest.Fault{On: informertest.Watches, Effect: informertest.GarbleFrame, Times: 3})
		server.Put(widgets, "secret-namespace", "other", nil)
		<-time.After(time.Minute)
		server.Skip(1)
		server.Compact()
		server.CloseWatches()
		<-time.After(20 * time.Minute)
		text = scrape(t, metrics)
		if regexp.MustCompile(`informer_gaps_total\{reason="unreadable",resource="widgets.example.com"\} [1-9]`).FindString(text) == "" {
			t.Errorf("no gap in\n%s", text)
		}
		if regexp.MustCompile(`informer_dropped_total\{reason="unreadable",resource="widgets.example.com"\} [1-9]`).FindString(text) == "" {
			t.Errorf("nothing was dropped in\n%s", text)
		}
		if regexp.MustCompile(`informer_watches_total\{resource="widgets.example.com",result="ok"\} [1-9]`).FindString(text) == "" {
			t.Errorf("no watch ended in\n%s", text)
		}
		before := counters(text)
		lint(t, text)
		if strings.Contains(text, "secret") || strings.Contains(text, "uid-") {
			t.Errorf("an object is named in\n%s", text)
		}
		slow.Close()
		source.Close()
		for range 2 { // the source is still known to be gone at the second
			text = scrape(t, metrics)
			if after := counters(text); !maps.Equal(before, after) {
				t.Errorf("counters were %v, and are %v", before, after)
			}
		}
		if strings.Contains(text, "\ninformer_objects{") {
			t.Errorf("a closed source is still shown:\n%s", text)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// counters returns the dropped versions of a scrape, by their labels.
func counters(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, v, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(name, "informer_dropped_total") {
			all[name] = v
		}
	}
	return all
}

func lint(t *testing.T, text string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestDocIsComplete: the package comment lists exactly the metrics.
func TestDocIsComplete(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(informer_\w+)`).FindAllSubmatch(doc, -1) {
		documented[string(m[1])] = true
	}
	made := map[string]bool{}
	descs := make(chan *prometheus.Desc)
	go func() {
		informerprom.New().Describe(descs)
		close(descs)
	}()
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for d := range descs {
		made[name.FindStringSubmatch(d.String())[1]] = true
	}
	if !maps.Equal(documented, made) {
		t.Errorf("documented: %v\ncollected: %v", documented, made)
	}
}

// TestHooksCompose calls every hook and expects the caller's hook to be called once.
func TestHooksCompose(t *testing.T) {
	var (
		yours  informer.Hooks
		called []string
	)
	v := reflect.ValueOf(&yours).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			called = append(called, v.Type().Field(i).Name)
			return nil
		}))
	}
	for name, hooks := range map[string]informer.Hooks{
		"with hooks of the caller": informerprom.New().Hooks(yours),
		"without":                  informerprom.New().Hooks(informer.Hooks{}),
	} {
		called = nil
		h := reflect.ValueOf(hooks)
		for i := range h.NumField() {
			if h.Field(i).IsNil() {
				continue
			}
			var args []reflect.Value
			for j := range h.Field(i).Type().NumIn() {
				args = append(args, reflect.Zero(h.Field(i).Type().In(j)))
			}
			h.Field(i).Call(args)
		}
		want := v.NumField()
		if name == "without" {
			want = 0
		}
		if len(called) != want {
			t.Errorf("%s: called %v, want %d", name, called, want)
		}
	}
}

// TestCounts: a scrape shows the numbers passed to hooks, without a cluster.
func TestCounts(t *testing.T) {
	metrics := informerprom.New()
	h := metrics.Hooks(informer.Hooks{})
	s, failed := informer.Stream{Resource: widgets, Namespace: "secret"}, errors.New("secret")
	h.List(informer.ListInfo{Stream: s, Streaming: true, Duration: 3 * time.Second, Objects: 5, Bytes: 70, Err: failed})
	h.Watch(informer.WatchInfo{Stream: s, Duration: time.Minute, Events: 6, Bytes: 80, Err: failed})
	h.Expired(s)
	h.Gap(s, informer.Gap{Reason: informer.ReasonExpired + ", " + informer.ReasonUnreadable})
	h.DecodeError(s, failed)
	h.LossyDecode(s)
	h.IndexError(s, informer.Key{Name: "secret"}, failed)
	h.Mutation(s, informer.Key{Name: "secret"}, failed)
	h.Checkpoint(s, failed)
	h.Audit(informer.AuditInfo{Stream: s})
	h.Audit(informer.AuditInfo{Stream: s, Err: failed})
	h.Audit(informer.AuditInfo{Stream: s, Contents: true, Reread: 9, Err: fmt.Errorf("secret: %w", informer.ErrMissed)})
	text := "\n" + scrape(t, metrics)
	has(t, "counted", text,
		`informer_lists_total{mode="streaming",resource="widgets.example.com",result="error"} 1`,
		`informer_list_objects_total{resource="widgets.example.com"} 5`,
		`informer_list_bytes_total{resource="widgets.example.com"} 70`,
		`informer_list_duration_seconds_sum{resource="widgets.example.com"} 3`,
		`informer_watches_total{resource="widgets.example.com",result="error"} 1`,
		`informer_watch_events_total{resource="widgets.example.com"} 6`,
		`informer_watch_bytes_total{resource="widgets.example.com"} 80`,
		`informer_watch_duration_seconds_sum{resource="widgets.example.com"} 60`,
		`informer_expired_total{resource="widgets.example.com"} 1`,
		`informer_gaps_total{reason="expired",resource="widgets.example.com"} 1`,
		`informer_gaps_total{reason="unreadable",resource="widgets.example.com"} 1`,
		`informer_decode_errors_total{resource="widgets.example.com"} 1`,
		`informer_lossy_decodes_total{resource="widgets.example.com"} 1`,
		`informer_index_errors_total{resource="widgets.example.com"} 1`,
		`informer_mutations_total{resource="widgets.example.com"} 1`,
		`informer_checkpoint_errors_total{resource="widgets.example.com"} 1`,
		`informer_audits_total{compared="metadata",resource="widgets.example.com",result="passed"} 1`,
		`informer_audits_total{compared="metadata",resource="widgets.example.com",result="failed"} 1`,
		`informer_audits_total{compared="contents",resource="widgets.example.com",result="missed"} 1`,
		`informer_audit_reread_objects_total{resource="widgets.example.com"} 9`,
	)
	lint(t, text)
	if strings.Contains(text, "secret") {
		t.Errorf("a namespace, a name or an error is in\n%s", text)
	}
}
