package render

import (
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestHelmLines covers the changes of a release that TestHelm of package cli does not.
func TestHelmLines(t *testing.T) {
	secret := change.Resource{Version: "v1", Resource: "secrets", Singular: "secret", Kind: "Secret", Namespaced: true}
	release := func(version, status string) obj {
		return obj{"type": "helm.sh/release.v1", "metadata": obj{"labels": obj{"name": "web", "owner": "helm", "version": version, "status": status}}}
	}
	data := []change.FieldChange{{Change: diff.Change{Op: diff.Replace, Path: diff.Path{{Kind: diff.Field, Name: "data"}}, From: "hidden #1", To: "hidden #2"}, Manager: "Helm"}}
	quiet := []change.FieldChange{{Change: data[0].Change, Quiet: true}}
	inMap := release("2", "deployed")
	delete(inMap, "type")
	foreign := release("2", "deployed")
	foreign["type"] = "Opaque"
	for _, tc := range []struct {
		why, want string
		o         Options
		c         change.Change
	}{
		{"between two hooks", "~ helm release web: v1 → v2 (still pending-upgrade) Helm", Options{},
			change.Change{Meta: change.Meta{Op: event.Updated}, Before: release("2", "pending-upgrade"), After: release("2", "pending-upgrade"), Fields: data}},
		{"quiet", "", Options{}, change.Change{Meta: change.Meta{Op: event.Updated, Quiet: true}, Before: release("2", "deployed"), After: release("2", "deployed"), Fields: quiet}},
		{"a revision of the history is pruned", "- helm release web: v1 (superseded) ?", Options{}, change.Change{Meta: change.Meta{Op: event.Deleted}, Before: release("1", "superseded")}},
		{"it is kept as uninstalled", "~ helm release web: v2 (uninstalled) Helm", Options{},
			change.Change{Meta: change.Meta{Op: event.Updated}, Before: release("2", "uninstalling"), After: release("2", "uninstalled"), Fields: data}},
		{"a selector", "> helm release web: v2 (deployed) entered the selection ?", Options{}, change.Change{Meta: change.Meta{Op: event.Entered}, After: release("2", "deployed")}},
		{"a revision that is no number", "+ helm release web: vx (deployed) helm", Options{}, change.Change{Meta: change.Meta{Op: event.Created, Manager: "helm"}, After: release("x", "deployed")}},
		{"in a ConfigMap", "+ helm release web: v1 → v2 (deployed) helm", Options{}, change.Change{
			Meta:  change.Meta{Op: event.Created, Manager: "helm", Kind: resources["ConfigMap"].ID(), Name: "sh.helm.release.v1.web.v2"},
			Names: resources["ConfigMap"].Names(),
			After: inMap,
		}},
		{"another Secret", "+ secret/s helm", Options{}, change.Change{Meta: change.Meta{Op: event.Created, Manager: "helm", Name: "s"}, After: foreign}},
		{"shown whole", "= secret/s", Options{Whole: true}, change.Change{Meta: change.Meta{Op: event.Snapshot, Name: "s"}, After: release("2", "deployed")}},
	} {
		var out strings.Builder
		tc.o.Out = &out
		c := tc.c
		if c.At, c.Time, c.UID = morning, morning, "u"; c.Kind.Kind == "" {
			c.Kind, c.Names = secret.ID(), secret.Names()
		}
		text := New(tc.o)
		if err := text.Change(morning, c); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		_, got, _ := strings.Cut(strings.Join(strings.Fields(first), " "), " ")
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
		if n := text.Counts(); n.Shown+n.Quiet != 1 {
			t.Errorf("%s: %+v", tc.why, n)
		}
	}
}
