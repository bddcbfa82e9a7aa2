package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture/redact"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/quiet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	podsGVR    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	cmGVR      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secretGVR  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	eventGVR   = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	nodeGVR    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	nsGVR      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployGVR  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	rsGVR      = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	crdGVR     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgetsGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// rig is a server and a Watcher on it, in a synctest bubble.
type rig struct {
	*testing.T
	server  *informertest.Server
	watcher *Watcher
	cancel  context.CancelFunc
	ended   chan error // Run's result

	budget int64   // of feeds
	memory *memory // keeps batches, if the watcher sends them

	mu    sync.Mutex
	lines []string
	held  chan struct{} // nil while the reader reads
	dump  bytes.Buffer  // all messages, in full
}

// scenario runs a test in a bubble. before fills the server.
func scenario(t *testing.T, o Options, before func(*informertest.Server), test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, o, before)
		test(r)
		r.stop()
	})
}

func start(t *testing.T, o Options, before func(*informertest.Server)) *rig {
	t.Helper()
	r := &rig{T: t, server: informertest.NewServer(), ended: make(chan error, 1)}
	for gvr, kind := range map[schema.GroupVersionResource]string{
		podsGVR: "Pod", cmGVR: "ConfigMap", secretGVR: "Secret", eventGVR: "Event", deployGVR: "Deployment", rsGVR: "ReplicaSet",
	} {
		r.server.Serve(gvr, kind)
	}
	for gvr, kind := range map[schema.GroupVersionResource]string{nodeGVR: "Node", nsGVR: "Namespace", crdGVR: "CustomResourceDefinition"} {
		r.server.Serve(gvr, kind)
		r.server.Describe(gvr, true, nil, nil)
	}
	r.server.Describe(deployGVR, false, []string{"deploy"}, []string{"all"})
	if before != nil {
		before(r.server)
	}
	r.begin(o)
	return r
}

// begin starts a watcher.
func (r *rig) begin(o Options) {
	r.Helper()
	o.Config = r.server.Config()
	r.memory, _ = o.Kept.(*memory)
	o.Objects = o.Kept == nil // as watch does
	var err error
	if o.Redactor == nil {
		o.Redactor, err = redact.New(redact.NewRandomKey(), nil)
	}
	if err != nil {
		r.Fatal(err)
	}
	if r.memory != nil {
		r.memory.sums(o.Redactor.SumKeyID())
	}
	if o.Quiet, err = quiet.New(); err != nil {
		r.Fatal(err)
	}
	if r.watcher, err = New(o); err != nil {
		r.Fatal(err)
	}
	if r.budget > 0 {
		r.watcher.budget = r.budget
	}
	ctx, cancel := context.WithCancel(r.Context())
	r.cancel = cancel
	go r.read(r.watcher, r.memory)
	go func() { r.ended <- r.watcher.Run(ctx) }()
}

// read records a watcher's messages until it ends, and keeps batches.
func (r *rig) read(w *Watcher, kept *memory) {
	for m := range w.Messages() {
		if m.Batch != nil && kept != nil {
			kept.keep(m.Batch)
		}
		if m.Flush != nil {
			close(m.Flush)
			continue
		}
		r.mu.Lock()
		held := r.held
		r.lines = append(r.lines, describe(m)...)
		fmt.Fprintln(&r.dump, m.Problem)
		if err := json.NewEncoder(&r.dump).Encode(m); err != nil {
			r.Errorf("encode %+v: %v", m, err)
		}
		r.mu.Unlock()
		if held != nil {
			<-held
		}
	}
}

// hold stops reading, after the next message, until the returned function is called.
func (r *rig) hold() (release func()) {
	held := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = held
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = nil
		close(held)
	}
}

// stop ends the watcher, which must not fail.
func (r *rig) stop() {
	r.Helper()
	r.cancel()
	if err := <-r.ended; err != nil {
		r.Errorf("Run: %v", err)
	}
}

// take returns the messages since its last call, once everything is idle.
func (r *rig) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// want compares the messages since the last call. Kinds are not ordered relative to each other, so lines are
// compared as sets.
func (r *rig) want(why string, want ...string) {
	r.Helper()
	got := r.take()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		r.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// inOrder is want for a guaranteed order.
func (r *rig) inOrder(why string, want ...string) {
	r.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(r.take(), "\n")); diff != "" {
		r.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// pass advances the time.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// describe writes a message as text.
func describe(m Message) []string {
	switch {
	case m.Batch != nil:
		var lines []string
		for i := range m.Batch.Changes {
			line := describeChange(&m.Batch.Changes[i].Change)
			if m.Batch.Changes[i].Rewritten {
				line = "rewritten" + line
			}
			lines = append(lines, line)
		}
		return lines
	case m.Ready != nil:
		text := fmt.Sprintf("ready: %d kinds, %d objects", m.Ready.Kinds, m.Ready.Objects)
		for _, list := range [][]string{
			append([]string{"hidden"}, m.Ready.Hidden...), append([]string{"missing"}, m.Ready.Missing...),
			append([]string{"unmatched"}, m.Ready.Unmatched...), append([]string{"unfilled"}, m.Ready.Unfilled...),
		} {
			if len(list) > 1 {
				text += ", " + strings.Join(list, " ")
			}
		}
		lines := []string{text}
		for _, f := range m.Ready.Forbidden {
			lines = append(lines, "forbidden: "+f.Resource.GroupResource())
		}
		for _, f := range m.Ready.Failing {
			lines = append(lines, "failing: "+f.Resource.GroupResource())
		}
		return lines
	case m.Away != nil && m.Away.Until.IsZero():
		return []string{fmt.Sprintf("away: %d streams", m.Away.Streams)}
	case m.Away != nil:
		return []string{fmt.Sprintf("back after %v: %d streams, %d relisted", m.Away.Until.Sub(m.Away.Since).Round(time.Second), m.Away.Streams, m.Away.Relisted)}
	}
	return []string{"problem: " + m.Problem.Error()}
}

func describeChange(c *change.Change) string {
	text := string(c.Op) + " " + c.Kind.Resource
	if c.Op == event.Gap {
		text += " " + c.Gap.Reason
		if c.Namespace != "" {
			text += " in " + c.Namespace
		}
		if c.Away {
			text += " (away)"
		}
		return text
	}
	if text += "/" + c.Name; !c.Op.Differs() {
		return text
	}
	if c.Op == event.Converted {
		return text + describeConversion(c)
	}
	if c.Quiet {
		text += " quietly"
	}
	for _, f := range c.Fields {
		if c.Quiet == f.Quiet {
			text += " " + f.Path.String() + " by " + f.Manager
		}
	}
	return text
}

// describeConversion lists all fields, each as quiet or listed by the rules.
func describeConversion(c *change.Change) (text string) {
	if !c.Quiet {
		text = " listed"
	}
	if c.Manager != "?" || len(c.Managers) > 0 || !c.Time.Equal(c.At) || !c.Since.IsZero() {
		text += fmt.Sprintf(" by %s %v in %v..%v at %v", c.Manager, c.Managers, c.Since, c.At, c.Time)
	}
	for _, f := range c.Fields {
		text += " " + f.Path.String() + " by " + f.Manager
	}
	return text
}

// refuse answers matching requests with a status.
func refuse(code int32, reason metav1.StatusReason, match func(*http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if match(r) {
			informertest.Refuse(w, code, reason, "refused by the test")
			return true
		}
		return false
	}
}

// collection matches lists and watches of a resource.
func collection(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+resource) }
}

func data(key, value string) map[string]any {
	return map[string]any{"data": map[string]any{key: value}}
}

// meta returns an object with only metadata.
func meta(m map[string]any) map[string]any { return map[string]any{"metadata": m} }

func labelled(value string) map[string]any {
	return meta(map[string]any{"creationTimestamp": "2000-01-01T00:00:00Z", "labels": map[string]any{"app": value}})
}
