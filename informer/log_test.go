package informer_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/informertest"
)

// lines collects log lines.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// TestLog: an outage logs one line per reason, however long it lasts, and one for its end; other events log one line
// each.
func TestLog(t *testing.T) {
	var log lines
	bubble(t, informer.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, s *informertest.Server, c *informer.Cluster) {
		source := must(c.Source(pods, informer.SourceOptions{}))(t) // JSON, which can hold an invalid Pod
		view := must(informer.For[*corev1.Pod](c, informer.On(source)))(t)
		informer.AddIndex(view, "panics", func(p *corev1.Pod) []string {
			if p.Name == "fine" {
				panic("oops")
			}
			return nil
		})
		synced(t, c)
		if got := log.take(); got != "" {
			t.Errorf("logged without a cause:\n%s", got)
		}
		s.SetDown(true)
		<-time.After(10 * time.Minute)
		down := log.take()
		s.SetDown(false)
		<-time.After(10 * time.Minute)
		up := log.take()
		if strings.Count(down, "\n") != 2 || strings.Count(down, `level=WARN msg="watch failed" resource=pods error="`) != 2 || !strings.Contains(down, "connection refused") {
			t.Errorf("an outage of ten minutes:\n%s", down)
		}
		if strings.Count(up, "\n") != 1 || !strings.Contains(up, `level=INFO msg="watching again" resource=pods`) {
			t.Errorf("its end:\n%s", up)
		}
		s.Put(pods, "n", "strange", map[string]any{"spec": "a text"})
		s.Put(pods, "n", "fine", nil)
		<-time.After(time.Minute)
		_, _ = view.Get("n", "strange")
		got := log.take()
		for _, want := range []string{`msg="cannot decode object" resource=pods error=`, `level=ERROR msg="cannot index object" resource=pods key=n/fine error=`} {
			if !strings.Contains(got, want) {
				t.Errorf("no line with %s in:\n%s", want, got)
			}
		}
	})
}
