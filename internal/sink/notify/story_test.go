package notify

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	quietrules "github.com/tattler-dev/tattler/internal/quiet"
	"github.com/tattler-dev/tattler/internal/render"
	"github.com/tattler-dev/tattler/internal/sink"
)

// play makes messages of versions of objects, with the texts of `tattler watch`, like the daemon.
type play struct {
	t       *testing.T
	builder change.Builder
	version int
	last    map[string]map[string]any
}

func newPlay(t *testing.T) *play {
	rules, err := quietrules.New()
	if err != nil {
		t.Fatal(err)
	}
	return &play{t: t, builder: change.Builder{Quiet: rules}, last: map[string]map[string]any{}}
}

// noon is the start of the plays.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// groups maps kinds outside the core group to their group.
var groups = map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "DaemonSet": "apps", "Job": "batch"}

// is returns the next version of an object, so many seconds after noon: its kind, name and YAML. Empty YAML deletes
// it.
func (p *play) is(seconds float64, kind, name, text string) sink.Message {
	p.t.Helper()
	at := noon.Add(time.Duration(seconds * float64(time.Second)))
	p.version++
	key := kind + "/" + name
	c := change.Change{
		Meta: change.Meta{Op: event.Updated, Namespace: "shop", Name: name, UID: "uid-" + name, ResourceVersion: fmt.Sprint(1000 + p.version), At: at, Kind: change.Kind{Group: groups[kind], Version: "v1", Resource: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true}},
	}
	if kind == "Node" {
		c.Namespace = ""
	}
	before := p.last[key]
	var now map[string]any
	if text != "" {
		now = map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &now); err != nil {
			p.t.Fatal(err)
		}
		now["kind"] = kind
		for k, v := range map[string]any{"name": name, "namespace": c.Namespace, "creationTimestamp": "2026-11-21T12:00:00Z"} {
			meta, _ := now["metadata"].(map[string]any)
			if meta == nil {
				meta = map[string]any{}
				now["metadata"] = meta
			}
			if _, ok := meta[k]; !ok {
				meta[k] = v
			}
		}
	}
	switch {
	case before == nil:
		c.Op = event.Created
	case now == nil:
		c.Op = event.Deleted
	}
	p.last[key] = now
	p.builder.Build(&c, maps.Clone(before), now, nil)
	e := change.Event("prod", &c)
	return sink.Message{ID: e.ID, Key: e.PartitionKey, Event: &e, Story: func(so sink.Story, sent bool) sink.Story {
		s, _ := so.(*render.Story)
		if s = s.Follow(c, sent); s == nil {
			return nil
		}
		return s
	}}
}

// known lets objects exist before the play.
func (p *play) known(kind, name, text string) { _ = p.is(-3600, kind, name, text) }

// deployment returns a Deployment of 3 pods, with an image, generation and counts.
func deployment(image string, generation, observed, updated, ready int, progressing string) string {
	return fmt.Sprintf(`
metadata: {generation: %d, creationTimestamp: "2026-11-01T12:00:00Z"}
spec: {replicas: 3, template: {spec: {containers: [{name: app, image: %q}]}}}
status: {observedGeneration: %d, replicas: 3, updatedReplicas: %d, readyReplicas: %d, availableReplicas: %d, conditions: [{type: Progressing, %s}]}`,
		generation, image, observed, updated, ready, ready, progressing)
}

const (
	complete = `status: "True", reason: NewReplicaSetAvailable`
	updating = `status: "True", reason: ReplicaSetUpdated`
	exceeded = `status: "False", reason: ProgressDeadlineExceeded`
)

// replicaSet returns a ReplicaSet of the Deployment web.
const replicaSet = `{metadata: {generation: 1, ownerReferences: [{kind: Deployment, name: web, uid: uid-web, controller: true}]}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3}}`

// pod returns a pod of the ReplicaSet web-2.
func pod(status string) string {
	return `{metadata: {ownerReferences: [{kind: ReplicaSet, name: web-2, uid: uid-web-2, controller: true}]}, spec: {nodeName: n1}, status: ` + status + `}`
}

func crashing(restarts int) string {
	return pod(fmt.Sprintf(`{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: app, restartCount: %d,
  state: {waiting: {reason: CrashLoopBackOff, message: "back-off 10s"}}, lastState: {terminated: {exitCode: 1, reason: Error, finishedAt: "2026-11-21T12:00:05Z"}}}]}`, restarts))
}

const (
	starting = `{phase: Pending, conditions: [{type: Ready, status: "False"}]}`
	running  = `{phase: Running, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-11-21T12:00:06Z"}], containerStatuses: [{name: app, ready: true, restartCount: 0, state: {running: {startedAt: "2026-11-21T12:00:03Z"}}}]}`
)

// storyPlays are the changes to report, message by message.
func storyPlays(t *testing.T) (names []string, plays map[string][][]sink.Message) {
	plays = map[string][][]sink.Message{}
	add := func(name string, messages ...[]sink.Message) { names, plays[name] = append(names, name), messages }

	p := newPlay(t)
	p.known("Deployment", "web", deployment("app:1.4", 1, 1, 3, 3, complete))
	add("1 a rollout within a message", []sink.Message{
		p.is(0, "Deployment", "web", deployment("app:1.5", 2, 1, 3, 3, complete)),
		p.is(0.1, "ReplicaSet", "web-2", replicaSet),
		p.is(0.2, "Deployment", "web", deployment("app:1.5", 2, 2, 1, 3, updating)),
		p.is(0.3, "Pod", "web-2-a", pod(starting)),
		p.is(6, "Pod", "web-2-a", pod(running)),
		p.is(13, "Deployment", "web", deployment("app:1.5", 2, 2, 3, 3, complete)),
	})

	p = newPlay(t)
	p.known("Deployment", "web", deployment("app:1.4", 1, 1, 3, 3, complete))
	add("2 a rollout of several messages, each of which continues the one before",
		[]sink.Message{
			p.is(0, "Deployment", "web", deployment("app:1.5", 2, 1, 3, 3, complete)),
			p.is(1, "Deployment", "web", deployment("app:1.5", 2, 2, 1, 2, updating)),
		},
		[]sink.Message{p.is(30, "Deployment", "web", deployment("app:1.5", 2, 2, 2, 2, updating))},
		[]sink.Message{p.is(52, "Deployment", "web", deployment("app:1.5", 2, 2, 3, 3, complete))})

	p = newPlay(t)
	p.known("Deployment", "web", deployment("app:1.4", 1, 1, 3, 3, complete))
	p.known("ReplicaSet", "web-2", replicaSet)
	add("3 a rollout beyond its deadline, which then is undone",
		[]sink.Message{
			p.is(0, "Deployment", "web", deployment("app:bad", 2, 1, 3, 3, complete)),
			p.is(1, "Deployment", "web", deployment("app:bad", 2, 2, 1, 3, updating)),
		},
		[]sink.Message{p.is(601, "Deployment", "web", deployment("app:bad", 2, 2, 1, 3, exceeded))},
		[]sink.Message{
			p.is(700, "Deployment", "web", deployment("app:1.4", 3, 2, 1, 3, exceeded)),
			p.is(702, "Deployment", "web", deployment("app:1.4", 3, 3, 3, 3, complete)),
		})

	p = newPlay(t)
	p.known("Deployment", "web", deployment("app:1.4", 1, 1, 3, 3, complete))
	p.known("ReplicaSet", "web-2", replicaSet)
	add("4 a crash loop",
		[]sink.Message{
			p.is(0, "ReplicaSet", "web-2", strings.Replace(replicaSet, "replicas: 3}}", "replicas: 3, readyReplicas: 1}}", 1)),
			p.is(0.1, "Pod", "web-2-a", pod(starting)),
			p.is(8, "Pod", "web-2-a", crashing(2)),
			p.is(9, "Deployment", "web", deployment("app:1.4", 1, 1, 3, 2, complete)),
		},
		[]sink.Message{p.is(60, "Pod", "web-2-a", pod(strings.Replace(running, "12:00:06", "12:01:00", 1))), p.is(61, "Deployment", "web", deployment("app:1.4", 1, 1, 3, 3, complete))})

	p = newPlay(t)
	p.known("Job", "backup", `{spec: {completions: 1}, status: {active: 1, startTime: "2026-11-21T12:00:00Z"}}`)
	p.known("Job", "restore", `{spec: {completions: 1}, status: {active: 1, startTime: "2026-11-21T12:00:00Z"}}`)
	p.known("Node", "n1", `{status: {conditions: [{type: Ready, status: "True", reason: KubeletReady}]}}`)
	add("5 jobs and a node",
		[]sink.Message{p.is(42, "Job", "backup", `{spec: {completions: 1}, status: {succeeded: 1, startTime: "2026-11-21T12:00:00Z", completionTime: "2026-11-21T12:00:42Z", conditions: [{type: Complete, status: "True"}]}}`)},
		[]sink.Message{p.is(50, "Job", "restore", `{spec: {completions: 1}, status: {failed: 1, startTime: "2026-11-21T12:00:00Z", conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: "Job has reached the specified backoff limit"}]}}`)},
		[]sink.Message{p.is(60, "Node", "n1", `{status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}}`)},
		[]sink.Message{p.is(90, "Node", "n1", `{status: {conditions: [{type: Ready, status: "True", reason: KubeletReady}]}}`)})
	return names, plays
}

// tellStories has one sink send each play's messages.
func tellStories(t *testing.T, o Options, got *bytes.Buffer) {
	t.Helper()
	o.Window = time.Minute
	names, plays := storyPlays(t)
	for _, name := range names {
		fmt.Fprintf(got, "=== %s\n", name)
		s := must(New("tattler/test", o))(t)
		for _, ms := range plays[name] {
			if n, err := s.Send(t.Context(), ms); n != len(ms) || err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Flush(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

var rawStatus = regexp.MustCompile(`status\.[a-z]`)

// TestStories checks the messages about rollouts, crash loops, Jobs and nodes: the texts and durations of `tattler
// watch`.
func TestStories(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		service    Service
	}{
		{"slack", "/services/T0/B0/t0ken", Slack},
		{"discord", "/api/webhooks/1/t0ken", Discord},
		{"teams", "/workflows/1/triggers/manual/paths/invoke?api-version=1&sig=s1g", Teams},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{t: t, body: "ok"}
			server := httptest.NewServer(r)
			defer server.Close()
			tellStories(t, Options{URL: server.URL + tc.path, Service: tc.service}, &r.got)
			golden(t, "stories-"+tc.name, r.got.String())
			if rawStatus.MatchString(r.got.String()) {
				t.Error("a raw path of a status, where there are words")
			}
		})
	}
	t.Run("smtp", func(t *testing.T) {
		p := newPost(t, nil)
		var named, got bytes.Buffer
		tellStories(t, Options{URL: p.url("smtp", "")}, &named)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range p.mails {
			h, text := letter(t, m)
			fmt.Fprintf(&got, "Subject: %s\n\n%s\n", must(new(mime.WordDecoder).DecodeHeader(h.Get("Subject")))(t), text)
		}
		golden(t, "stories-smtp", got.String())
	})
}

// TestStoryIsSentAgain: a message that did not arrive is rendered again, identically, and later changes continue it.
func TestStoryIsSentAgain(t *testing.T) {
	p := newPlay(t)
	p.known("Deployment", "web", deployment("app:1.4", 1, 1, 3, 3, complete))
	first := p.is(0, "Deployment", "web", deployment("app:1.5", 2, 1, 3, 3, complete))
	second := p.is(1, "Deployment", "web", deployment("app:1.5", 2, 2, 1, 2, updating))
	third := p.is(52, "Deployment", "web", deployment("app:1.5", 2, 2, 3, 3, complete))
	k, known := owners{}, stories{}
	title := func(arrives bool, ms ...sink.Message) string {
		var s summary
		for _, m := range ms {
			s.add(&m, k, known)
		}
		if arrives {
			known.keep(&s)
		}
		return s.message(k, sample).Title
	}
	failed := title(false, first, second)
	if again := title(true, first, second); again != failed || !strings.Contains(again, "rolling out: 1/3 updated") {
		t.Errorf("first %q, then %q", failed, again)
	}
	title(false, third)
	if got, want := title(true, third), "Deployment shop/web: rolled out in 52 s: 3/3 ready · prod"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(known) != 0 {
		t.Errorf("%d stories are kept that have ended", len(known))
	}
}
