package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/event"
)

// TestRestart kills the API server and etcd under a running watch while hundreds of objects change, and
// compares the displayed changes with the server's final state.
func TestRestart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	own, client := ownCluster(ctx, t)
	const objects = 300
	for i := range objects {
		write(ctx, t, client, i, "0")
	}
	text := start(t, own, "watch", "-A")
	events := start(t, own, "watch", "-A", "-o", "json")
	text.wait(t, text.err, "Waiting for changes")
	events.wait(t, events.err, "Waiting for changes")

	churn(ctx, t, client, objects, func() {
		if err := own.KillAPIServer(); err != nil {
			t.Error(err)
		}
		if err := own.KillEtcd(); err != nil {
			t.Error(err)
		}
		text.wait(t, text.err, "does not answer")
		events.wait(t, events.err, "does not answer")
		if err := own.StartEtcd(ctx); err != nil {
			t.Error(err)
		}
		if err := own.StartAPIServer(ctx); err != nil {
			t.Error(err)
		}
	})
	// After the server is back every object is written once more; the last write comes last.
	for i := range objects {
		write(ctx, t, client, i, "last")
	}
	write(ctx, t, client, objects, "end")
	text.wait(t, text.out, "resumed")
	text.wait(t, text.out, "cm/c300")
	events.wait(t, events.out, `"name":"c300"`)
	events.waitForFinal(ctx, t, client)
	text.interrupt(t)
	events.interrupt(t)

	// A server that starts on a busy machine may be away once more.
	if n := strings.Count(text.read(t, text.out), "API server was away"); n < 1 || n > 3 {
		t.Errorf("%d lines report that the server was away, want 1 for all streams:\n%s", n, grepLines(text.read(t, text.out), "!"))
	}
	checkEvents(ctx, t, client, events.read(t, events.out))
}

// write writes a value into an object, creating it if necessary, and retries until the server accepts it.
func write(ctx context.Context, t *testing.T, client *kubernetes.Clientset, i int, value string) {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i), Namespace: "default"},
		Data:       map[string]string{"value": value},
	}
	for {
		_, err := client.CoreV1().ConfigMaps("default").Update(ctx, cm, metav1.UpdateOptions{})
		if err != nil {
			_, err = client.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("write %s: %v", cm.Name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// churn updates, deletes and recreates objects from several writers while f runs, and for some hundred writes
// before and after; writes may fail.
func churn(ctx context.Context, t *testing.T, client *kubernetes.Clientset, objects int, f func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var taken atomic.Int64 // writes accepted by the server
	some := func() {
		for until := taken.Load() + 400; taken.Load() < until; pause() {
			if ctx.Err() != nil {
				t.Fatal("the server stopped accepting writes")
			}
		}
	}
	configMaps := client.CoreV1().ConfigMaps("default")
	for writer := range 4 {
		wg.Go(func() {
			for n := writer; ctx.Err() == nil; n += 4 {
				cm := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", n%objects), Namespace: "default"},
					Data:       map[string]string{"value": fmt.Sprint(n)},
				}
				write := func() (*corev1.ConfigMap, error) { return configMaps.Update(ctx, cm, metav1.UpdateOptions{}) }
				if n%7 == 0 {
					_ = configMaps.Delete(ctx, cm.Name, metav1.DeleteOptions{})
					write = func() (*corev1.ConfigMap, error) { return configMaps.Create(ctx, cm, metav1.CreateOptions{}) }
				}
				if _, err := write(); err == nil {
					taken.Add(1)
				} else {
					pause() // the server is down
				}
			}
		})
	}
	some()
	f()
	some()
	cancel()
	wg.Wait()
}

// checkEvents checks the events for consistency with each other and with the server.
func checkEvents(ctx context.Context, t *testing.T, client *kubernetes.Clientset, out string) {
	t.Helper()
	last := map[string]event.Event{} // by name
	seen := map[string]bool{}
	gaps := 0
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v in %s", err, lines.Bytes())
		}
		if seen[e.ID] {
			t.Errorf("twice: %s", lines.Bytes())
		}
		seen[e.ID] = true
		if e.Data.Op == event.Gap {
			gaps++
			continue
		}
		r := e.Data.Resource
		if r.Resource != "configmaps" || r.Namespace != "default" {
			continue
		}
		// A missed deletion has no version: it carries the last known one.
		version := r.UID + "/" + r.ResourceVersion
		missed := e.Data.Op == event.Deleted && e.Data.Observed.After != nil
		if seen[version] && !missed {
			t.Errorf("duplicate version %s of %s", r.ResourceVersion, r.Name)
		}
		seen[version] = true
		prev, known := last[r.Name]
		if known && prev.Data.Op != event.Deleted && prev.Data.Resource.UID != r.UID {
			t.Errorf("%s: another UID without a deletion in between", r.Name)
		}
		last[r.Name] = e
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if gaps == 0 {
		t.Error("no gap event for the versions lost with the server")
	}
	list, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range list.Items {
		if !strings.HasPrefix(cm.Name, "c") {
			continue
		}
		e, ok := last[cm.Name]
		if !ok || e.Data.Resource.ResourceVersion != cm.ResourceVersion || e.Data.Resource.UID != string(cm.UID) {
			t.Errorf("%s is at %s, shown last at %+v", cm.Name, cm.ResourceVersion, e.Data.Resource)
		}
	}
}

// waitForFinal waits until the final version of every object has been displayed.
func (p *process) waitForFinal(ctx context.Context, t *testing.T, client *kubernetes.Clientset) {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range list.Items {
		if strings.HasPrefix(cm.Name, "c") {
			p.wait(t, p.out, fmt.Sprintf(`"resourceVersion":%q`, cm.ResourceVersion))
		}
	}
}

func grepLines(s, sub string) string {
	var b bytes.Buffer
	for line := range strings.Lines(s) {
		if strings.Contains(line, sub) {
			b.WriteString(line)
		}
	}
	return b.String()
}
