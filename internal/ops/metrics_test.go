package ops

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tattler-dev/tattler/internal/control"
)

// own returns the lines of a scrape about tattler.
func own(scrape string) string {
	var b strings.Builder
	for line := range strings.Lines(scrape) {
		if strings.Contains(line, "tattler_") {
			b.WriteString(line)
		}
	}
	return strings.ReplaceAll(b.String(), runtime.Version(), "GO")
}

func TestMetrics(t *testing.T) {
	code, scrape := get(t, Options{Status: answering(full())}, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, scrape)
	}
	golden(t, "testdata/metrics.txt", own(scrape))
	for _, want := range []string{"go_goroutines ", "process_"} {
		if runtime.GOOS == "linux" && !strings.Contains(scrape, "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(scrape)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestMetricsUnread: metrics read from the journal are absent while it cannot be read; the others are present.
func TestMetricsUnread(t *testing.T) {
	s := full()
	s.Journal.Error, s.Journal.ReadError = "", "database disk image is malformed"
	_, scrape := get(t, Options{Status: answering(s)}, "/metrics")
	for _, want := range []string{"tattler_journal_readable 0\n", "tattler_journal_writable 1\n", `tattler_sink_delivered_total{sink="hook"} 22`} {
		if !strings.Contains(scrape, want) {
			t.Errorf("no %q in\n%s", want, own(scrape))
		}
	}
	for _, unknown := range []string{"journal_bytes", "journal_free_bytes", "journal_log_bytes", "sink_lag_seconds", "sink_behind_changes", "sink_dead_letters"} {
		if strings.Contains(scrape, "\ntattler_"+unknown) {
			t.Errorf("%s is present", unknown)
		}
	}
}

// TestMetricsNameNoObject looks for every object, namespace, version and error of a status, and at the labels.
func TestMetricsNameNoObject(t *testing.T) {
	_, scrape := get(t, Options{Status: answering(full())}, "/metrics")
	for _, secret := range []string{"geheim", "987654321"} {
		if strings.Contains(scrape, secret) {
			t.Errorf("%q in\n%s", secret, own(scrape))
		}
	}
	allowed := map[string]bool{"sink": true, "state": true, "resource": true, "compared": true, "result": true, "order": true, "version": true, "go": true, "reason": true}
	labels := regexp.MustCompile(`([a-z_]+)="`)
	found := 0
	for line := range strings.Lines(own(scrape)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, m := range labels.FindAllStringSubmatch(line, -1) {
			if found++; !allowed[m[1]] {
				t.Errorf("label %s in %s", m[1], line)
			}
		}
	}
	if found == 0 {
		t.Error("no labels at all")
	}
}

// TestMetricsAtTheStart shows that unknown values are absent, and not 0.
func TestMetricsAtTheStart(t *testing.T) {
	code, scrape := get(t, Options{Status: answering(control.Status{Version: "v1"})}, "/metrics")
	for _, absent := range []string{"timestamp_seconds", "limit_bytes", "states_bytes", "sink_", "stream_"} {
		if strings.Contains(scrape, "\ntattler_journal_"+absent) || strings.Contains(scrape, "\ntattler_"+absent) {
			t.Errorf("%s in\n%s", absent, own(scrape))
		}
	}
	for _, there := range []string{"tattler_settled 0\n", "tattler_journal_writable 1\n", "tattler_streams{state=\"live\"} 0\n"} {
		if code != http.StatusOK || !strings.Contains(scrape, there) {
			t.Errorf("%d: no %s in\n%s", code, there, own(scrape))
		}
	}
}

// TestMetricsBeforeTheJournal: before the journal is open, only the build info and the unsettled state are
// known.
func TestMetricsBeforeTheJournal(t *testing.T) {
	_, scrape := get(t, Options{Status: answering(control.Status{Version: "v1", Starting: "opening the journal"})}, "/metrics")
	names := map[string]bool{}
	for line := range strings.Lines(own(scrape)) {
		if name, _, _ := strings.Cut(line, " "); !strings.HasPrefix(line, "#") {
			name, _, _ = strings.Cut(name, "{")
			names[name] = true
		}
	}
	if len(names) != early || !names["tattler_build_info"] || !strings.Contains(scrape, "tattler_settled 0\n") {
		t.Errorf("%v", names)
	}
}

// TestWithoutStatus shows that no error looks like the answer of a healthy daemon.
func TestWithoutStatus(t *testing.T) {
	fails := func(context.Context) (control.Status, error) {
		return control.Status{Settled: true}, errors.New("read journal /geheim")
	}
	for path, want := range map[string]int{"/metrics": 500, "/readyz": 500, "/healthz": 200} {
		code, body := get(t, Options{Status: fails}, path)
		if code != want || strings.Contains(body, "geheim") || strings.Contains(body, "tattler_") {
			t.Errorf("%s: %d: %s", path, code, body)
		}
	}
}

// TestNameOfAnotherEncoding is not a failure: the server chose the name.
func TestNameOfAnotherEncoding(t *testing.T) {
	s := control.Status{Streams: []control.Stream{{Resource: "a\xff", State: control.Live}}}
	if code, scrape := get(t, Options{Status: answering(s)}, "/metrics"); code != 200 || !strings.Contains(scrape, `resource="a?"`) {
		t.Errorf("%d: %s", code, own(scrape))
	}
}

// TestStatusHangs sends many requests to a daemon that does not answer. One goroutine waits for it, and every
// other caller gets an answer; once it answers, all is well.
func TestStatusHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := handlerOf(ctx, Options{Status: func(context.Context) (control.Status, error) {
			asked.Add(1)
			<-release
			return control.Status{Settled: true}, nil
		}})
		want := func(path string, code int, text string) {
			t.Helper()
			if got, body := ask(h, "GET", path, "localhost"); got != code || !strings.Contains(body, text) {
				t.Errorf("%s: %d: %s", path, got, body)
			}
		}
		begin := time.Now()
		want("/healthz", 200, "ok")
		want("/metrics", 503, "does not report its state")
		if d := time.Since(begin); d > 6*time.Second {
			t.Errorf("a scrape took %s", d)
		}
		synctest.Wait() // those of the requests have ended
		before := runtime.NumGoroutine()
		for range 20 {
			want("/readyz", 503, "does not report its state")
			want("/metrics", 503, "does not report its state")
		}
		synctest.Wait()
		if now := runtime.NumGoroutine(); now > before {
			t.Errorf("%d goroutines, then %d", before, now)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times at once", n)
		}
		want("/healthz", 503, "the daemon has not reported its state for 3m2")
		close(release)
		synctest.Wait()
		want("/healthz", 200, "ok")
		want("/readyz", 200, "ok")
		want("/metrics", 200, "tattler_settled 1")
	})
}

// TestStatusIsSlow has a Status that heeds its context: each request ends, and the daemon is stuck
// nevertheless.
func TestStatusIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := handlerOf(ctx, Options{Status: func(ctx context.Context) (control.Status, error) {
			<-ctx.Done()
			return control.Status{}, ctx.Err()
		}})
		for _, tc := range []struct {
			after time.Duration
			want  int
		}{{0, 200}, {10 * time.Second, 200}, {40 * time.Second, 200}, {time.Minute, 503}} {
			time.Sleep(tc.after)
			if code, body := ask(h, "GET", "/healthz", "localhost"); code != tc.want {
				t.Errorf("%s later: %d: %s", tc.after, code, body)
			}
		}
		if code, _ := ask(h, "GET", "/metrics", "localhost"); code != 503 {
			t.Error(code)
		}
	})
}

// TestScrapesAreBounded makes many scrapes at once.
func TestScrapesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := handlerOf(ctx, Options{Status: func(context.Context) (control.Status, error) {
			<-release
			return control.Status{}, nil
		}})
		codes := make(chan int, 2*maxScrapes)
		for range 2 * maxScrapes {
			go func() {
				code, _ := ask(h, "GET", "/metrics", "localhost")
				codes <- code
			}()
		}
		synctest.Wait()
		for range maxScrapes {
			if code := <-codes; code != http.StatusServiceUnavailable {
				t.Errorf("%d for one too many", code)
			}
		}
		if code, _ := ask(h, "GET", "/healthz", "localhost"); code != 200 {
			t.Errorf("scrapes keep probes away: %d", code)
		}
		close(release)
		for range maxScrapes {
			if code := <-codes; code != http.StatusOK {
				t.Errorf("%d for the others", code)
			}
		}
	})
}
