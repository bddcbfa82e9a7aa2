package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tattler-dev/tattler/devcluster"
)

// output is what a process wrote.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// running is the daemon in its container.
type running struct {
	pod       *corev1.Pod
	container *container
	cmd       *exec.Cmd
	out, err  output
	done      chan error
	address   string // of probes and metrics
}

// run starts a pod's container and waits for its probes.
func (k *kubelet) run(t *testing.T, p *corev1.Pod) *running {
	t.Helper()
	r := &running{pod: p, container: k.container(t, p), done: make(chan error, 1)}
	for _, port := range p.Spec.Containers[0].Ports {
		if port.Name == "http" {
			r.address = k.ports[port.ContainerPort]
		}
	}
	r.cmd = r.container.command(t)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	c := &p.Spec.Containers[0]
	r.probe(t, c.StartupProbe, max(patience, time.Duration(c.StartupProbe.FailureThreshold*c.StartupProbe.PeriodSeconds)*time.Second))
	r.probe(t, c.ReadinessProbe, patience)
	r.probe(t, c.LivenessProbe, patience)
	return r
}

// probe waits until a probe succeeds.
func (r *running) probe(t *testing.T, p *corev1.Probe, limit time.Duration) {
	t.Helper()
	client := &http.Client{Timeout: time.Duration(p.TimeoutSeconds) * time.Second}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); ; {
		text := ""
		resp, err := client.Get("http://" + r.address + p.HTTPGet.Path)
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			text = string(b)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-r.done:
			t.Fatalf("the daemon ended: %v\n%s", err, r.err.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s after %v: %v %s\n%s", p.HTTPGet.Path, limit, err, text, r.err.String())
		}
		<-tick.C
	}
}

// stop ends the container as the kubelet does, and checks that it stayed within its limits and did not complain.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.memory(t)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("the daemon ended: %v\n%s", err, r.err.String())
		}
	case <-time.After(time.Duration(*r.pod.Spec.TerminationGracePeriodSeconds) * time.Second):
		t.Fatalf("the daemon did not end within the grace period\n%s", r.err.String())
	}
	// A busy machine may run the API server late.
	if log := away.ReplaceAllString(r.err.String(), ""); strings.Contains(log, `"level":"WARN"`) || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("it complains:\n%s", log)
	}
	if out := r.out.String(); strings.Contains(out, `"op":"gap"`) {
		t.Errorf("a gap:\n%s", out)
	}
}

var (
	away      = regexp.MustCompile(`(?m)^.*the API server is away.*$`)
	peakLine  = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)
	limitLine = regexp.MustCompile(`(?m)^go_gc_gomemlimit_bytes (\S+)$`)
)

// memory compares the peak of the resident memory with the container's limit, and Go's limit with both.
func (r *running) memory(t *testing.T) {
	t.Helper()
	limit := r.pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	m := limitLine.FindStringSubmatch(r.metrics(t))
	if m == nil {
		t.Fatal("no go_gc_gomemlimit_bytes in the metrics")
	}
	soft, err := strconv.ParseFloat(m[1], 64)
	if err != nil || soft < 0.8*float64(limit) || soft > 0.95*float64(limit) {
		t.Errorf("GOMEMLIMIT is %s, %v, with a limit of %d", m[1], err, limit)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if os.IsNotExist(err) {
		return // not Linux
	}
	peak := peakLine.FindSubmatch(status)
	if err != nil || peak == nil {
		t.Fatalf("%v\n%s", err, status)
	}
	kib := resource.MustParse(string(peak[1]) + "Ki")
	t.Logf("the daemon took %s at most; its limit is %d MiB", kib.String(), limit>>20)
	if kib.Value() > limit {
		t.Errorf("the daemon took %s, more than its limit", kib.String())
	}
}

func (r *running) metrics(t *testing.T) string {
	t.Helper()
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + r.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %s, %v\n%s", resp.Status, err, b)
	}
	return string(b)
}

// exec runs tattler in the container, as kubectl exec does.
func (k *kubelet) exec(t *testing.T, r *running, args ...string) string {
	t.Helper()
	c := *r.container
	c.Args = args
	out, err := c.command(t).CombinedOutput()
	if err != nil {
		t.Fatalf("tattler %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// receiver is a webhook's server. It remembers what it was sent.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	events []received
}

type received struct {
	ID   string
	Data struct {
		Op       string
		Resource struct{ Name string }
	}
}

func startReceiver(t *testing.T, cert tls.Certificate) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var e received
		if req.Header.Get("Authorization") != "Bearer from-a-secret" || json.NewDecoder(req.Body).Decode(&e) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	}))
	r.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	r.StartTLS()
	t.Cleanup(r.Server.Close)
	return r
}

// wait waits for the creation of an object.
func (r *receiver) wait(t *testing.T, name string, of *running) {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for r.count(name) == 0 {
		select {
		case <-deadline.Done():
			t.Fatalf("%s was not delivered\n%s", name, of.err.String())
		case <-tick.C:
		}
	}
}

// count returns how many distinct changes of objects of a name arrived.
func (r *receiver) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, e := range r.events {
		if e.Data.Resource.Name == name && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	return len(ids)
}

// freeAddress returns an unused address on loopback. No connection of another process is given its port meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := devcluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", ports[0])
}
