package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/reconstruct"
)

// reconstructed is one entry of each kind.
func reconstructed(t *testing.T) []reconstruct.Entry {
	t.Helper()
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	began := at(0)
	code := int64(137)
	deploy := change.Resource{Group: "apps", Version: "v1", Resource: "deployments", Short: "deploy", Kind: "Deployment", Namespaced: true}
	pod := change.Resource{Version: "v1", Resource: "pods", Short: "po", Kind: "Pod", Namespaced: true}
	secret := change.Resource{Version: "v1", Resource: "secrets", Singular: "secret", Kind: "Secret", Namespaced: true}
	entry := func(n int, r change.Resource, name string, d event.Reconstruction, fields ...diff.Change) reconstruct.Entry {
		d.Resource = event.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Kind: r.Kind, Namespace: "shop", Name: name, UID: name}
		d.Evidence = "metadata.x"
		return reconstruct.Entry{Time: at(n), Kind: r, Data: d, Fields: fields}
	}
	field := func(path string, from, to any) diff.Change {
		p, err := diff.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		return diff.Change{Path: p, Op: diff.Replace, From: from, To: to}
	}
	var many []diff.Change
	for i := range 9 {
		many = append(many, field(fmt.Sprintf("data.key%d", i), nil, "v"))
	}
	many[0].To = nil // long
	within := entry(9, deploy, "web", event.Reconstruction{Fact: event.FactRollout, Revision: "4", Manager: "?"})
	within.Since = at(5)
	young := entry(1, deploy, "web", event.Reconstruction{Fact: event.FactWritten, Manager: "kubectl-create"}, field("spec.replicas", nil, int64(3)))
	young.AtCreation = true
	return []reconstruct.Entry{
		entry(1, deploy, "web", event.Reconstruction{Fact: event.FactCreated, Manager: "?"}),
		young,
		entry(2, deploy, "web", event.Reconstruction{Fact: event.FactWritten, Manager: "kubectl-set"},
			field("metadata.labels.tier", nil, "web"), field("spec.template.spec.containers[name=app].image", nil, "app:2")),
		entry(3, deploy, "web", event.Reconstruction{Fact: event.FactRollout, Revision: "3", Previous: "2", Manager: "?"},
			field("spec.template.spec.containers[name=app].image", "app:1", "app:2")),
		within,
		entry(10, deploy, "web", event.Reconstruction{Fact: event.FactCondition, Severity: event.Warning, Conditions: []event.ConditionFact{
			{Type: "Available", Status: "False", Reason: "MinimumReplicasUnavailable"}, {Type: "Progressing", Status: "True", Reason: "X"}}}),
		entry(11, pod, "web-7d4-x", event.Reconstruction{Fact: event.FactTerminated, Container: "app", ExitCode: &code, Reason: "OOMKilled", Began: &began}),
		entry(12, pod, "web-7d4-x", event.Reconstruction{Fact: event.FactRestarted, Container: "app", Restarts: 2}),
		entry(13, pod, "web-7d4-x.17", event.Reconstruction{Fact: event.FactEvent, About: "pod/web-7d4-x", Status: "Warning", Reason: "BackOff",
			Message: "Back-off restarting failed container app in pod\nweb-7d4-x \x1b[31m", Count: 4, Began: &began, Manager: "kubelet"}),
		entry(14, pod, "web-7d4-x", event.Reconstruction{Fact: event.FactWritten, Manager: "kubelet", Subresource: "status"}, field("status.phase", nil, "Running")),
		entry(15, secret, "sh.helm.release.v1.shop.v2", event.Reconstruction{Fact: event.FactRelease, Release: "shop", Revision: "2", Status: "deployed", Manager: "?"}),
		entry(16, change.Resource{Group: "batch", Version: "v1", Resource: "jobs", Singular: "job", Kind: "Job"}, "migrate", event.Reconstruction{Fact: event.FactFinished, Began: &began}),
		entry(17, change.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap"}, "settings", event.Reconstruction{Fact: event.FactWritten, Manager: "ci", More: 2}, many...),
		entry(18, pod, "web-7d4-x", event.Reconstruction{Fact: event.FactDeleting, Manager: "?"}),
	}
}

func TestReconstructed(t *testing.T) {
	for name, o := range map[string]Options{
		"reconstructed-80":    {Terminal: true, Width: 80},
		"reconstructed-color": {Terminal: true, Width: 100, Color: true, Namespaces: true},
		"reconstructed-pipe":  {Full: true},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			o.Out, o.Location = &b, time.UTC
			text := New(o)
			for _, e := range reconstructed(t) {
				if err := text.Reconstructed(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := text.Heading("the end"); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", b.String())
			for line := range strings.Lines(b.String()) {
				if w := width(strings.TrimSuffix(line, "\n")); o.Width > 0 && !o.Color && w > o.Width {
					t.Errorf("%d columns: %s", w, line)
				}
			}
			if !o.Color && strings.Contains(b.String(), "\x1b") {
				t.Error("an object controls the terminal")
			}
			if c := text.Counts(); c != (Counts{}) {
				t.Errorf("counted as changes: %+v", c)
			}
		})
	}
}

// TestReconstructedEvents: each event says that it is reconstructed, and none has the type or the id of a change.
func TestReconstructedEvents(t *testing.T) {
	var b bytes.Buffer
	e, err := NewEvents(EventsOptions{Out: &b, Format: JSON, Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, entry := range reconstructed(t) {
		if err := e.Reconstructed(entry); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "reconstructed.json", b.String())
	for line := range strings.Lines(b.String()) {
		var got event.Reconstructed
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.Type != event.ReconstructedType || !got.Data.Reconstructed || !strings.HasPrefix(got.ID, "reconstructed-") || ids[got.ID] {
			t.Errorf("%s", line)
		}
		ids[got.ID] = true
	}
}
