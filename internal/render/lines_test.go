package render

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/diff"
	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestSnapshotSeen: the time of an object that existed is that of its creation, so the line of a journal says when it was
// seen. A live watch does not: it is now, for each of them.
func TestSnapshotSeen(t *testing.T) {
	cm := change.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap", Namespaced: true}
	for _, tc := range []struct {
		why     string
		o       Options
		created time.Time
		want    string
	}{
		{"recorded hours after its creation", Options{}, morning.Add(-2 * time.Hour), "08:42:07 = cm/a (seen 10:42:07)"},
		{"recorded days after its creation", Options{Today: func() time.Time { return morning }}, morning.AddDate(0, 0, -3), "2026-11-18 10:42:07 = cm/a (seen 10:42:07)"},
		{"recorded at once", Options{}, morning, "10:42:07 = cm/a"},
		{"watched", Options{Watching: true}, morning.Add(-2 * time.Hour), "08:42:07 = cm/a"},
	} {
		var out bytes.Buffer
		tc.o.Out, tc.o.Terminal, tc.o.Location = &out, true, time.UTC
		x := New(tc.o)
		c := change.Change{Meta: change.Meta{Op: event.Snapshot, Kind: cm.ID(), Name: "a", Time: tc.created, At: morning}, Names: cm.Names(), After: obj{}}
		if err := x.Change(morning, c); err != nil {
			t.Fatal(err)
		}
		if err := x.Flush(morning); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
}

// TestLines prints each kind of change.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := NewLines(Options{Out: &out, Terminal: true, Location: time.UTC, Namespaces: true}, "test")
	cm := change.Resource{Version: "v1", Resource: "configmaps", Singular: "configmap", Short: "cm", Kind: "ConfigMap", Namespaced: true}
	ev := change.Resource{Version: "v1", Resource: "events", Singular: "event", Short: "ev", Kind: "Event", Namespaced: true}
	owner := &event.Owner{Kind: "Widget", Name: "w"}
	field := func(path, from, to string, quiet bool) change.FieldChange {
		var p diff.Path
		for _, name := range strings.Split(path, ".") {
			p = append(p, diff.Elem{Kind: diff.Field, Name: name})
		}
		return change.FieldChange{Change: diff.Change{Op: diff.Replace, Path: p, From: from, To: to}, Manager: "kubectl", Quiet: quiet}
	}
	object := obj{"metadata": obj{"creationTimestamp": morning.Add(-time.Hour).Format(time.RFC3339)}, "status": obj{"phase": "Ready"}}
	for i, c := range []change.Change{
		{Meta: change.Meta{Op: event.Created, Kind: cm.ID(), Name: "a", Manager: "helm"}, Names: cm.Names(), After: object},
		{Meta: change.Meta{Op: event.Updated, Kind: cm.ID(), Name: "a", Owner: owner, Manager: "kubectl"}, Names: cm.Names(), Fields: []change.FieldChange{field("data.x", "1", "2", false), field("data.y", "1", "2", false)}},
		{Meta: change.Meta{Op: event.Updated, Kind: cm.ID(), Name: "quiet", Quiet: true}, Names: cm.Names(), Fields: []change.FieldChange{field("data.x", "1", "2", true)}},
		{Meta: change.Meta{Op: event.Deleted, Kind: cm.ID(), Name: "a"}, Names: cm.Names(), Before: object},
		{Meta: change.Meta{Op: event.Entered, Kind: cm.ID(), Name: "a"}, Names: cm.Names(), After: object},
		{Meta: change.Meta{Op: event.Left, Kind: cm.ID(), Name: "a"}, Names: cm.Names(), Before: object},
		{Meta: change.Meta{Op: event.Snapshot, Kind: cm.ID(), Name: "a"}, Names: cm.Names(), After: object},
		{Meta: change.Meta{Op: event.Gap, Kind: cm.ID(), Gap: &event.GapInfo{From: "3", Reason: "expired"}}, Names: cm.Names()},
		{Meta: change.Meta{Op: event.Created, Kind: ev.ID(), Name: "a.1"}, Names: ev.Names(), After: obj{"reason": "Killing", "message": "Stopping\ncontainer"}},
		{Meta: change.Meta{Op: event.Updated, Kind: cm.ID(), Name: "a", Manager: "helm"}, Names: cm.Names(), After: object, Blind: true},
		{Meta: change.Meta{Op: event.Deleted, Kind: cm.ID(), Name: "a"}, Names: cm.Names(), Blind: true},
		{Meta: change.Meta{Op: event.Gap, Kind: cm.ID(), Gap: &event.GapInfo{From: "3", To: "5", Reason: "missed"}}, Names: cm.Names()},
		{Meta: change.Meta{Op: event.Converted, Kind: cm.ID(), Name: "quiet", Quiet: true}, Names: cm.Names(), Fields: []change.FieldChange{field("data.x", "1", "2", false)}},
	} {
		c.At, c.Namespace, c.UID = morning.Add(time.Duration(i)*time.Second), "shop", "u"
		if err := l.Change(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Notice(morning, "a change cannot be shown"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		if !regexp.MustCompile(`^([a-z2-7]{8}| {8}) \d`).MatchString(line) {
			t.Errorf("begins with no id: %q", line)
		}
		got = append(got, strings.Join(strings.Fields(line[9:]), " "))
	}
	want := []string{
		"10:42:07 + shop cm/a helm",
		`10:42:08 ~ shop cm/a data.x: "1" → "2", 1 more kubectl`,
		"10:42:10 - shop cm/a existed 1 h ?",
		"10:42:11 > shop cm/a entered the selection ?",
		"10:42:12 < shop cm/a left the selection ?",
		"10:42:13 = shop cm/a Ready",
		"10:42:14 ! cm (namespace shop): versions after 3 were not seen: the API server no longer had them; the net change, if any, follows",
		`10:42:15 + shop event/a.1 event Killing: Stopping\ncontainer`,
		"10:42:16 ~ shop cm/a the previous state was purged helm",
		"10:42:17 - shop cm/a the previous state was purged ?",
		"10:42:18 ! cm (namespace shop): versions between 3 and 5 were not seen: an audit found changes that the watch had not shown; the net change, if any, follows",
		"10:42:07 ! a change cannot be shown",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestConverted: a conversion is quiet. If quiet changes are shown, it is described, without a manager.
func TestConverted(t *testing.T) {
	cm := change.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap", Namespaced: true}
	field := change.FieldChange{Manager: "?", Change: diff.Change{
		Op: diff.Add, Path: diff.Path{{Kind: diff.Field, Name: "spec"}, {Kind: diff.Field, Name: "color"}}, To: "red",
	}}
	for _, tc := range []struct {
		why   string
		noise bool
		blind bool
		want  string
	}{
		{"it is quiet", false, false, ""},
		{"it is shown", true, false, "10:42:07 ~ cm/a is served in another form ?\n spec.color: + red\n"},
		{"what was before was purged", true, true, "10:42:07 ~ cm/a the previous state was purged ?\n"},
	} {
		var out bytes.Buffer
		text := New(Options{Out: &out, Terminal: true, Location: time.UTC, Noise: tc.noise})
		c := change.Change{Meta: change.Meta{Op: event.Converted, Kind: cm.ID(), Name: "a", UID: "u", At: morning, Quiet: true, Manager: "?"}, Names: cm.Names(), Blind: tc.blind}
		if !tc.blind {
			c.Fields = []change.FieldChange{field}
		}
		if err := text.Change(morning, c); err != nil {
			t.Fatal(err)
		}
		if got := regexp.MustCompile(` +`).ReplaceAllString(out.String(), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
		if quiet := text.Counts().Quiet; (quiet == 1) == tc.noise {
			t.Errorf("%s: %d quiet changes are counted", tc.why, quiet)
		}
		out.Reset()
		lines := NewLines(Options{Out: &out, Terminal: true, Location: time.UTC, Noise: tc.noise}, "test")
		if err := lines.Change(c); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(tc.want, "\n")
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.HasSuffix(got, head) || (got == "") != (head == "") {
			t.Errorf("%s, on one line: %q", tc.why, got)
		}
	}
}

// TestWhole prints the whole object below its creation or deletion.
func TestWhole(t *testing.T) {
	cm := change.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap", Namespaced: true}
	ev := change.Resource{Version: "v1", Resource: "events", Short: "ev", Kind: "Event", Namespaced: true}
	object := obj{"metadata": obj{"name": "a", "uid": "u"}, "data": obj{"k": "v\x1b[2J"}}
	for _, tc := range []struct {
		why string
		c   change.Change
	}{
		{"created", change.Change{Meta: change.Meta{Op: event.Created, Kind: cm.ID()}, Names: cm.Names(), After: object}},
		{"created by another object", change.Change{Meta: change.Meta{Op: event.Created, Kind: cm.ID(), Owner: &event.Owner{Kind: "Widget"}}, Names: cm.Names(), After: object}},
		{"deleted", change.Change{Meta: change.Meta{Op: event.Deleted, Kind: cm.ID()}, Names: cm.Names(), Before: object}},
		{"entered", change.Change{Meta: change.Meta{Op: event.Entered, Kind: cm.ID()}, Names: cm.Names(), After: object}},
		{"left", change.Change{Meta: change.Meta{Op: event.Left, Kind: cm.ID()}, Names: cm.Names(), Before: object}},
		{"there before", change.Change{Meta: change.Meta{Op: event.Snapshot, Kind: cm.ID()}, Names: cm.Names(), After: object}},
		{"an event of the cluster", change.Change{Meta: change.Meta{Op: event.Created, Kind: ev.ID()}, Names: ev.Names(), After: object}},
		{"an event that expired", change.Change{Meta: change.Meta{Op: event.Deleted, Kind: ev.ID()}, Names: ev.Names(), Before: object}},
	} {
		for _, whole := range []bool{true, false} {
			var out bytes.Buffer
			tc.c.At, tc.c.Name = morning, "a"
			text := New(Options{Out: &out, Location: time.UTC, Whole: whole, Flat: true})
			if err := text.Change(morning, tc.c); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "uid: u\n"); got != whole || strings.Contains(out.String(), "\x1b") {
				t.Errorf("%s, whole: %v:\n%q", tc.why, whole, out.String())
			}
		}
	}
}

// TestToday: on a terminal, times of other days include the date; elsewhere all times do.
func TestToday(t *testing.T) {
	zone := time.FixedZone("there", -12*60*60)
	now := morning.Add(24 * time.Hour)
	for _, tc := range []struct {
		why  string
		o    Options
		want string
	}{
		{"another day", Options{Terminal: true, Today: func() time.Time { return now }}, "2026-11-21 10:42:07"},
		{"the same day", Options{Terminal: true, Today: func() time.Time { return morning.Add(time.Hour) }}, "10:42:07"},
		{"the same day only elsewhere", Options{Terminal: true, Location: zone, Today: func() time.Time { return morning.Add(2 * time.Hour) }}, "2026-11-20 22:42:07"},
		{"the same day there, and not here", Options{Terminal: true, Location: zone, Today: func() time.Time { return morning.Add(time.Hour) }}, "22:42:07"},
		{"nobody asks for it", Options{Terminal: true}, "10:42:07"},
		{"no terminal", Options{Today: func() time.Time { return now }}, "2026-11-21T10:42:07Z"},
	} {
		var out bytes.Buffer
		tc.o.Out = &out
		if tc.o.Location == nil {
			tc.o.Location = time.UTC
		}
		if err := New(tc.o).Notice(morning, "x"); err != nil || !strings.HasPrefix(out.String(), tc.want+" !") {
			t.Errorf("%s: %q, %v", tc.why, out.String(), err)
		}
	}
}

// TestBlind: a change with an unknown previous state says so, and is not quiet unless it was.
func TestBlind(t *testing.T) {
	cm := change.Resource{Version: "v1", Resource: "configmaps", Short: "cm", Kind: "ConfigMap", Namespaced: true}
	for _, tc := range []struct {
		why  string
		c    change.Change
		o    Options
		want string
	}{
		{"an update", change.Change{Meta: change.Meta{Op: event.Updated, Manager: "helm"}}, Options{}, "10:42:07 ~ cm/a the previous state was purged helm"},
		{"one by nobody that is known", change.Change{Meta: change.Meta{Op: event.Updated, Manager: "?"}}, Options{}, "10:42:07 ~ cm/a the previous state was purged ?"},
		{"one that was quiet", change.Change{Meta: change.Meta{Op: event.Updated, Quiet: true}}, Options{}, ""},
		{"and noise is asked for", change.Change{Meta: change.Meta{Op: event.Updated, Quiet: true, Manager: "helm"}}, Options{Noise: true}, "10:42:07 ~ cm/a the previous state was purged helm"},
		{"a deletion", change.Change{Meta: change.Meta{Op: event.Deleted}}, Options{}, "10:42:07 - cm/a the previous state was purged ?"},
	} {
		var out bytes.Buffer
		tc.o.Out, tc.o.Location, tc.o.Terminal = &out, time.UTC, true
		text := New(tc.o)
		tc.c.Kind, tc.c.Names, tc.c.Name, tc.c.UID, tc.c.At, tc.c.Blind = cm.ID(), cm.Names(), "a", "u", morning, true
		if err := text.Change(morning, tc.c); err != nil {
			t.Fatal(err)
		}
		if err := text.Flush(morning); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.why, got, tc.want)
		}
	}
}
