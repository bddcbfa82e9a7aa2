package show

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/usage"
)

var (
	at       = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	pods     = journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	longText = strings.Repeat("long ", 100)
)

// pod is owned by a ReplicaSet: log folds its creation, and prints nothing for it.
func pod(name string, version int, image string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop","uid":"u","resourceVersion":"%d",
		"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","uid":"r","controller":true}]},
		"spec":{"containers":[{"name":"app","image":%q}]},"status":{"phase":"Running"}}`, name, version, image)
}

// written makes a journal with a change of each kind, and returns their ids.
func written(t *testing.T) (path string, ids []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	row := func(op event.Op, name string, version int, before, after string) journal.Row {
		r := journal.Row{Meta: journal.Meta{Op: op, Kind: pods, Namespace: "shop", Name: name, UID: "u" + name, ResourceVersion: fmt.Sprint(version),
			Owner: &event.Owner{Kind: "ReplicaSet", Name: "web-1", UID: "r"},
			Time:  at, At: at.Add(time.Duration(version) * time.Second), Manager: "?"}}
		if before != "" {
			r.Before = []byte(before)
		}
		if after != "" {
			r.After = []byte(after)
		}
		return r
	}
	gap := row(event.Gap, "", 0, "", "")
	gap.UID, gap.ResourceVersion, gap.Owner, gap.Gap = "", "", nil, &event.GapInfo{From: "4", To: "9", Reason: "expired"}
	missed := row(event.Deleted, "a", 3, pod("a", 2, longText+"2"), "")
	missed.Since, missed.Time = at, missed.At
	rows := []journal.Row{
		row(event.Created, "a", 1, "", pod("a", 1, longText+"1")),
		row(event.Updated, "a", 2, pod("a", 1, longText+"1"), pod("a", 2, longText+"2")),
		missed, gap,
		row(event.Created, "garbage", 5, "", "{"),
		row(event.Created, "\x1b[31mred", 6, "", pod("x", 6, "i")),
	}
	historytest.Judge(rows)
	_, err = j.Append(t.Context(), []journal.Batch{{
		Stream: journal.Stream{GroupResource: "pods"}, Head: journal.Head{Version: "9", Epoch: 1, Live: true, At: at}, Rows: rows,
	}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Rows(t.Context(), journal.Query{OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	return path, ids
}

func play(t *testing.T, path, id, format string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	o := &Options{IO: &terminal.IO{Out: &out, Err: &out, OutTTY: true, Width: func() int { return 40 }}, ID: id, Output: format}
	o.Past.Path = path
	err := Run(t.Context(), o)
	return out.String(), err
}

func TestShow(t *testing.T) {
	path, ids := written(t)
	for _, tc := range []struct {
		why  string
		id   string
		want []string
	}{
		{"a created object, completely, although it is owned", ids[0][:8], []string{
			"change    " + ids[0], "what      created", "object    pods/a in shop", "uid       ua", "owner     ReplicaSet/web-1", "version   1",
			"image: " + longText + "1", "phase: Running", "uid: u"}},
		{"an update, completely, on a narrow terminal", ids[1], []string{"spec.containers[name=app].image", longText + "2"}},
		{"a deletion, with its interval", ids[2], []string{"what      deleted", "happened  between ", "seen      2", "image: " + longText + "2"}},
		{"a gap", ids[3], []string{"what      gap", "kind      pods", "namespace shop", "versions between 4 and 9 were not seen"}},
	} {
		out, err := play(t, path, tc.id, "text")
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", tc.why, want, out)
			}
		}
	}
}

// TestShowEvent prints the event that a sink would get, with the same id.
func TestShowEvent(t *testing.T) {
	path, ids := written(t)
	out, err := play(t, path, ids[1], "json")
	var e event.Event
	if err := errors.Join(err, json.Unmarshal([]byte(out), &e)); err != nil || e.ID != ids[1] || len(e.Data.Changes) == 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = play(t, path, ids[1], "yaml"); err != nil || !strings.Contains(out, "id: "+ids[1]) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestShowDamaged prints the known parts of a damaged change, and fails.
func TestShowDamaged(t *testing.T) {
	path, ids := written(t)
	out, err := play(t, path, ids[4], "text")
	if err == nil || !strings.Contains(out, "object    pods/garbage in shop") {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, err = play(t, path, ids[4], "json"); err == nil || out != "" {
		t.Errorf("half an event: %v: %s", err, out)
	}
}

// TestShowName: a name cannot control the terminal.
func TestShowName(t *testing.T) {
	path, ids := written(t)
	if out, err := play(t, path, ids[5], "text"); err != nil || strings.Contains(out, "\x1b") || !strings.Contains(out, `\x1b[31mred`) {
		t.Errorf("%v: %q", err, out)
	}
}

func TestWrongUsage(t *testing.T) {
	path, ids := written(t)
	for _, tc := range []struct {
		why, id, format, want string
		usage                 bool
	}{
		{"no such id", strings.Repeat("a", 26), "text", "tattler log -o oneline prints ids", false},
		{"more than an id", ids[0] + "a", "text", "has no change", false},
		{"an empty id", "", "text", "has no change", false},
		{"an invalid id", "A/../b", "text", "has no change", false},
		{"a format", ids[0], "xml", "use text, json or yaml", true},
	} {
		out, err := play(t, path, tc.id, tc.format)
		var wrong *usage.Error
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &wrong) != tc.usage || out != "" {
			t.Errorf("%s: %v, %q", tc.why, err, out)
		}
	}
}

// TestAmbiguous: the error for an ambiguous id lists the matching ids.
func TestAmbiguous(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var rows []journal.Row
	for i := range 33 { // two of them begin with the same of 32 letters
		m := journal.Meta{Op: event.Created, Kind: pods, Namespace: "shop", Name: fmt.Sprint(i), UID: fmt.Sprint(i), ResourceVersion: fmt.Sprint(i + 1), Time: at, At: at}
		rows = append(rows, journal.Row{Meta: m, After: []byte(pod("a", i, "x"))})
	}
	_, err = j.Append(t.Context(), []journal.Batch{{Stream: journal.Stream{GroupResource: "pods"}, Head: journal.Head{Version: "9", At: at}, Rows: rows}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, letter := range "abcdefghijklmnopqrstuvwxyz234567" {
		_, err := play(t, path, string(letter), "text")
		var wrong *usage.Error
		if errors.As(err, &wrong) && strings.Contains(err.Error(), fmt.Sprintf("several ids begin with %q: %[1]s", string(letter))) {
			found++
		}
	}
	if found == 0 {
		t.Error("no letter was refused")
	}
}

// TestShowCluster: a change of a journal with several clusters names its cluster, also in the event's source.
func TestShowCluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	record := func(cluster string) {
		t.Helper()
		kind := pods
		kind.Cluster = cluster
		_, err := j.Append(t.Context(), []journal.Batch{{
			Stream: journal.Stream{GroupResource: "pods", Cluster: cluster}, Head: journal.Head{Version: "9", At: at},
			Rows: []journal.Row{{Meta: journal.Meta{Op: event.Created, Kind: kind, Namespace: "shop", Name: "a", UID: "u", ResourceVersion: "1", Time: at, At: at}, After: []byte(pod("a", 1, "x"))}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	show := func(want ...string) {
		t.Helper()
		r, err := journal.OpenReader(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		i := 0
		for e, err := range r.Rows(t.Context(), journal.Query{OldestFirst: true}) {
			if err != nil {
				t.Fatal(err)
			}
			out, err := play(t, path, e.ID, "text")
			if err != nil || strings.Contains(out, "cluster   ") != (want[i] != "") || !strings.Contains(out, want[i]) {
				t.Errorf("no %q: %v\n%s", want[i], err, out)
			}
			if out, err = play(t, path, e.ID, "json"); err != nil || !strings.Contains(out, `"source":"/clusters/`+[]string{"east", "west"}[i]+`"`) {
				t.Errorf("%v\n%s", err, out)
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%d changes, want %d", i, len(want))
		}
	}
	record("")
	show("") // only one cluster
	record("west")
	show("cluster   east\n", "cluster   west\n")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
