package notify

import (
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/sink"
)

// TestFailure checks that a stuck rollout is prominent and says so; a field that changed back is not listed.
func TestFailure(t *testing.T) {
	web := resource("Deployment", "shop", "web", nil)
	field := func(path string, from, to any) event.Change {
		return event.Change{Path: path, Op: "replace", From: from, To: to, Manager: "kube-controller-manager", Subresource: "status"}
	}
	failed := updated(web, field("status.conditions[type=Progressing].reason", "ReplicaSetUpdated", "ProgressDeadlineExceeded"))
	failed.Severity = event.Failure
	recovered := updated(web, field("status.conditions[type=Progressing].reason", "ProgressDeadlineExceeded", "NewReplicaSetAvailable"))
	recovered.Severity = event.Recovery
	for _, tc := range []struct {
		why   string
		data  []event.Data
		title string
	}{
		{"stuck", []event.Data{updated(web, field("status.replicas", 2, 3)), updated(web, field("status.replicas", 3, 2)), failed}, ": ProgressDeadlineExceeded"},
		{"over", []event.Data{failed, recovered}, ""},
	} {
		t.Run(tc.why, func(t *testing.T) {
			var s summary
			k := owners{}
			for _, e := range changes(tc.data...) {
				s.add(&sink.Message{Event: e}, k, nil)
			}
			m := s.message(k, func(string) string { return "" })
			if len(m.Stories) != 1 || !m.Stories[0].Prominent {
				t.Fatalf("not one prominent story: %+v", m.Stories)
			}
			story := m.Stories[0]
			if tc.title != "" != strings.HasSuffix(story.Title, ": ProgressDeadlineExceeded") {
				t.Errorf("title %q", story.Title)
			}
			for _, f := range story.Fields {
				if f.From == f.To {
					t.Errorf("%s: %s → %s is no change", f.Path, f.From, f.To)
				}
			}
		})
	}
}
