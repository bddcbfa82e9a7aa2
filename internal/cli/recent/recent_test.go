package recent

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/change"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/reconstruct"
	"github.com/tattler-dev/tattler/internal/render"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestNames(t *testing.T) {
	for args, want := range map[string]bool{"": false, "deploy,cm": false, "deploy web": true, "deploy/web": true, "deploy/web cm/a": true} {
		if got := Names(strings.Fields(args)); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

// source refuses one kind, and records the others.
type source struct {
	selected, refused string
	listed            []string
}

func (s *source) Selects(group, resource string) bool { return s.selected == resource+"."+group }

func (s *source) ListAlso(_ context.Context, group, resource string, _ capture.Seen) *capture.Listing {
	if resource == s.refused {
		return &capture.Listing{Forbidden: []capture.Refusal{{Resource: change.Resource{Group: group, Resource: resource}, Err: errors.New("no")}}}
	}
	s.listed = append(s.listed, resource)
	return &capture.Listing{}
}

// TestComplete: only what the selected workloads need is read, and nothing twice.
func TestComplete(t *testing.T) {
	for _, tc := range []struct {
		why       string
		kinds     []string
		s         source
		events    bool
		want      string
		forbidden string
	}{
		{"no workloads", nil, source{}, false, "", ""},
		{"a Deployment", []string{"Deployment"}, source{}, false, "replicasets", ""},
		{"its ReplicaSets are selected", []string{"Deployment"}, source{selected: "replicasets.apps"}, false, "", ""},
		{"a StatefulSet and a DaemonSet", []string{"StatefulSet", "DaemonSet"}, source{}, false, "controllerrevisions", ""},
		{"named objects", nil, source{}, true, "events", ""},
		{"named objects; events are selected", nil, source{selected: "events.events.k8s.io"}, true, "", ""},
		{"a kind that may not be listed", []string{"Deployment"}, source{refused: "replicasets"}, true, "events", "could not list replicasets.apps: no"},
	} {
		c := reconstruct.NewCollector(reconstruct.Options{})
		for _, kind := range tc.kinds {
			c.Add(change.Resource{Group: "apps", Version: "v1", Kind: kind}, map[string]any{"metadata": map[string]any{"uid": kind}}, false)
		}
		refused := Complete(t.Context(), &tc.s, c, tc.events)
		if got := strings.Join(tc.s.listed, " "); got != tc.want {
			t.Errorf("%s: listed %q, want %q", tc.why, got, tc.want)
		}
		if got := Refused(refused, func(err error) error { return err }); got != tc.forbidden {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.forbidden)
		}
	}
}

// TestShow: headings fit a terminal of 80 columns, and do not disturb the output for programs.
func TestShow(t *testing.T) {
	for _, format := range []string{"text", render.JSON} {
		c := reconstruct.NewCollector(reconstruct.Options{Limit: 1})
		for _, name := range []string{"a", "b"} {
			c.Add(change.Resource{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Short: "cm"}, map[string]any{
				"metadata": map[string]any{"name": name, "uid": name, "creationTimestamp": "2026-03-01T10:00:00Z"},
			}, false)
		}
		var out, notes bytes.Buffer
		p, err := NewPrinter(render.Options{Out: &out, Location: time.UTC}, format, "prod", func(_ string, args ...any) { notes.WriteString(args[0].(string) + "\n") })
		if err != nil {
			t.Fatal(err)
		}
		if err := Show(p, c, time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), time.UTC); err != nil {
			t.Fatal(err)
		}
		text, want := out.String(), 4
		if format == render.JSON {
			text, want = notes.String(), 3
			if strings.Count(out.String(), "\n") != 1 || !strings.HasPrefix(out.String(), "{") {
				t.Errorf("not one event: %s", out.String())
			}
		}
		if strings.Count(text, "\n") != want || !strings.Contains(text, "since 2026-03-01 09:00:00") || !strings.Contains(text, "1 older left out") || !strings.Contains(text, Unseen) {
			t.Errorf("%s:\n%s", format, text)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "2026-") && len([]rune(line)) > 81 {
				t.Errorf("too long: %s", line)
			}
		}
	}
	if _, err := NewPrinter(render.Options{}, "xml", "prod", nil); err != nil {
		t.Errorf("any other format is text: %v", err)
	}
}
