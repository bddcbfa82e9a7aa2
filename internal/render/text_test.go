package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

type brokenPipe struct{ writes int }

var errPipe = errors.New("broken pipe")

func (b *brokenPipe) Write([]byte) (int, error) {
	b.writes++
	return 0, errPipe
}

func TestErrorOfOut(t *testing.T) {
	out := &brokenPipe{}
	text := New(Options{Out: out})
	c := change.Change{Meta: change.Meta{Op: event.Deleted, Kind: resources["ConfigMap"].ID(), Name: "a", UID: "1", At: morning}, Names: resources["ConfigMap"].Names()}
	for i, call := range []func() error{
		func() error { return text.Change(morning, c) },
		func() error { return text.Tick(morning) },
		func() error { return text.Notice(morning, "x") },
		func() error { return text.Flush(morning) },
	} {
		if err := call(); !errors.Is(err, errPipe) {
			t.Errorf("call %d returned %v, want the first error of Out", i, err)
		}
	}
	if out.writes != 1 {
		t.Errorf("Out was written to %d times, want 1: nothing follows an error", out.writes)
	}
}

func TestTypeNames(t *testing.T) {
	text := New(Options{})
	for _, tc := range []struct{ why, group, plural, singular, short, kind, want string }{
		{"a short name is what people type", "apps", "deployments", "deployment", "deploy", "Deployment", "deploy"},
		{"but nobody says po", "", "pods", "pod", "po", "Pod", "pod"},
		{"nor no", "", "nodes", "node", "no", "Node", "node"},
		{"no short name", "", "secrets", "secret", "", "Secret", "secret"},
		{"one letter tells nothing", "example.com", "widgets", "widget", "w", "Widget", "widget"},
		{"another group has the word", "example.com", "deployments", "deployment", "deploy", "Deployment", "deployment.example.com"},
		{"a kind of somebody's own may be called po", "example.com", "portals", "portal", "po", "Portal", "po"},
		{"discovery of old servers gives no singular", "example.com", "gadgets", "", "", "Gadget", "gadget"},
		{"the word stays", "apps", "deployments", "deployment", "deploy", "Deployment", "deploy"},
	} {
		r := change.Resource{Group: tc.group, Resource: tc.plural, Singular: tc.singular, Short: tc.short, Kind: tc.kind}
		if got := text.typeName(r.ID(), r.Names()); got != tc.want {
			t.Errorf("%s: %s.%s is %q, want %q", tc.why, tc.plural, tc.group, got, tc.want)
		}
	}
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "less than 1 s"}, // clocks differ
		{999 * time.Millisecond, "less than 1 s"},
		{6900 * time.Millisecond, "6 s"},
		{60 * time.Second, "1 min"},
		{61 * time.Second, "1 min 1 s"},
		{64 * time.Minute, "1 h 4 min"},
		{2*time.Hour + 59*time.Second, "2 h"},
		{3*day + 4*time.Hour, "3 d 4 h"},
		{41*day + 5*time.Hour, "41 d"},
		{800 * day, "2 y 70 d"},
	} {
		if got := Duration(tc.d); got != tc.want {
			t.Errorf("%v is %q, want %q", tc.d, got, tc.want)
		}
	}
}

func TestPipeIsNeverCut(t *testing.T) {
	p := newPlay(t, Options{})
	long := strings.Repeat("x", 5000)
	p.create("kubectl", obj{"kind": "ConfigMap", "metadata": obj{"name": "a"}, "data": obj{"k": long}})
	if out := p.end(); !strings.Contains(out, long) {
		t.Error("a long value was cut")
	}
}

// changes has a change of every operation, as Events receives them.
func everyOp(p *play) []change.Change {
	shop(p)
	cm := p.objects["ConfigMap/web-config"]
	list := []change.Change{
		p.change(event.Snapshot, nil, cm), p.change(event.Created, nil, cm), p.change(event.Entered, nil, cm),
		p.written("kubectl-edit", "ConfigMap/web-config", set{"data.a", "<b> & c"}),
		p.written("x", "ConfigMap/web-config"),
		p.change(event.Left, cm, nil), p.change(event.Deleted, cm, nil),
	}
	gap := p.change(event.Gap, nil, obj{"kind": "ConfigMap", "metadata": obj{"namespace": "shop"}})
	gap.Gap = &event.GapInfo{From: "1", To: "9", Reason: "expired"}
	pod := p.change(event.Created, nil, newPod(p.t, "web-1-a"))
	pod.Since = morning.Add(-time.Minute)
	list = append(list, gap, pod)
	for i := range list {
		list[i].At, list[i].Time = morning, morning.Add(-time.Second)
	}
	return list
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		why, format, golden string
		noise               bool
		quiet               int
	}{
		{"one line each; quiet updates are counted", JSON, "events.json", false, 1},
		{"with noise they are written and marked", JSON, "events-noise.json", true, 0},
		{"documents", YAML, "events.yaml", false, 1},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			var out bytes.Buffer
			e, err := NewEvents(EventsOptions{Out: &out, Format: tc.format, Cluster: "prod", Noise: tc.noise})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range everyOp(newPlay(t, Options{})) {
				if err := e.Change(c); err != nil {
					t.Fatal(err)
				}
			}
			if e.Quiet() != tc.quiet {
				t.Errorf("%s: %d are quiet, want %d", tc.why, e.Quiet(), tc.quiet)
			}
			golden(t, tc.golden, out.String())
		})
	}
}

// TestYAMLIsTheSame: the two formats have the same events.
func TestYAMLIsTheSame(t *testing.T) {
	for _, c := range everyOp(newPlay(t, Options{})) {
		var asJSON, asYAML bytes.Buffer
		for format, out := range map[string]*bytes.Buffer{JSON: &asJSON, YAML: &asYAML} {
			e, err := NewEvents(EventsOptions{Out: out, Format: format, Cluster: "prod", Noise: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Change(c); err != nil {
				t.Fatal(err)
			}
		}
		back, err := yaml.YAMLToJSON(asYAML.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(asJSON.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(back, &b); err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Errorf("%s: as JSON\n%s\nas YAML\n%s", c.Op, x, y)
		}
	}
}

func TestEventsErrors(t *testing.T) {
	if _, err := NewEvents(EventsOptions{Format: "table"}); err == nil || !strings.Contains(err.Error(), `"table"`) {
		t.Errorf("an unknown format gives %v, want an error that names it", err)
	}
	e, err := NewEvents(EventsOptions{Out: &brokenPipe{}, Format: JSON})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Change(change.Change{Meta: change.Meta{Op: event.Deleted}}); !errors.Is(err, errPipe) {
		t.Errorf("Change returned %v, want the error of Out", err)
	}
}
