package daemon

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

// live lists a journal's live objects.
func live(t *testing.T, path string) (all []string) {
	t.Helper()
	reader, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for s, err := range reader.At(t.Context(), journal.Query{}, time.Now()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.Kind.Resource+"/"+s.Name)
	}
	slices.Sort(all)
	return all
}

// TestKindGoesWhileNoDaemonRuns: the deletions of its objects are recorded within the absence, and nothing of the kind is
// left.
func TestKindGoesWhileNoDaemonRuns(t *testing.T) {
	scoped := func(s capture.Scope) Options { return Options{Scopes: []capture.Scope{s}} }
	named := scoped(capture.Scope{Types: []string{"configmaps,widgets"}})
	for _, tc := range []struct {
		why         string
		first, then Options
		meanwhile   func(*rig)
		deleted     int
		live        string
	}{
		{"everything is watched", scoped(capture.Scope{}), scoped(capture.Scope{}), func(r *rig) { r.server.Unserve(widgets) }, 2, "configmaps/c"},
		{"the kind is named", named, named, func(r *rig) { r.server.Unserve(widgets) }, 2, "configmaps/c"},
		{"another version is served", scoped(capture.Scope{}), scoped(capture.Scope{}), func(r *rig) { r.server.Move(widgets, "v2") }, 0, "configmaps/c widgets/a widgets/b"},
		{"its version went, another one is served", scoped(capture.Scope{}), scoped(capture.Scope{}), func(r *rig) {
			r.server.Move(widgets, "v2")
			r.server.Delete(widgets.GroupResource().WithVersion("v2"), "n", "a")
		}, 1, "configmaps/c widgets/b"},
		{"it is not watched any more", scoped(capture.Scope{}), scoped(capture.Scope{Types: []string{"configmaps"}}),
			func(r *rig) { r.server.Unserve(widgets) }, 0, "configmaps/c widgets/a widgets/b"}, // as of any kind that is not watched
		{"only a namespace is watched now", scoped(capture.Scope{}), scoped(capture.Scope{Namespaces: selection.Namespaces{Include: []string{"n"}}}),
			func(r *rig) { r.server.Unserve(widgets) }, 1, "configmaps/c widgets/b"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, dir := newRig(t), t.TempDir()
				path := filepath.Join(dir, "journal.db")
				r.server.Serve(widgets, "Widget")
				r.server.Put(widgets, "n", "a", nil)
				r.server.Put(widgets, "m", "b", nil)
				r.put("c", "1")
				d := r.daemon(dir, tc.first)
				d.pass(time.Minute)
				d.stop()
				stopped := time.Now()
				<-time.After(time.Hour)
				tc.meanwhile(r)
				for range 2 { // what the first one forgets must not return
					d = r.daemon(dir, tc.then)
					d.pass(20 * time.Minute)
					d.stop()
				}
				checkGone(t, path, stopped, tc.deleted)
				if got := strings.Join(live(t, path), " "); got != tc.live {
					t.Errorf("live: %s, want %s", got, tc.live)
				}
				for _, s := range streams(t, path) {
					if strings.Contains(s, "widgets") && !strings.Contains(tc.why, "another") {
						t.Errorf("a stream is left: %s", s)
					}
				}
			})
		})
	}
}

// checkGone compares the deletions that were found after an absence.
func checkGone(t *testing.T, path string, stopped time.Time, want int) {
	t.Helper()
	reader, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	deleted, counted := 0, int64(-1)
	for e, err := range reader.Rows(t.Context(), journal.Query{OldestFirst: true}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Op == event.Deleted:
			if deleted++; e.Kind.Kind != "Widget" || e.Since.Before(stopped.Add(-time.Minute)) || e.Since.After(stopped) || !e.Net {
				t.Errorf("%s %s was deleted between %v and %v; the daemon stopped at %v", e.Kind.Kind, e.Name, e.Since, e.At, stopped)
			}
		case e.Op == event.Absent && counted < 0:
			counted = e.Absence.Changes
		case e.Op == event.Left || e.Op == event.Created:
			t.Errorf("%s %s", e.Op, e.Name)
		}
	}
	if deleted != want || counted != int64(want) {
		t.Errorf("%d deletions, want %d; the absence counts %d", deleted, want, counted)
	}
}
