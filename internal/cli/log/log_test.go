package log

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
)

var (
	start   = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	maps    = journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	widgets = journal.Kind{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true}
)

// object is a version of one.
func object(k journal.Kind, ns, name string, v int, value string) []byte {
	b, err := json.Marshal(map[string]any{
		"apiVersion": k.Version, "kind": k.Kind, "data": map[string]any{"k": value},
		"metadata": map[string]any{"namespace": ns, "name": name, "uid": ns + name, "resourceVersion": fmt.Sprint(v)},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// recorded makes a journal: each minute something happens, from 10:00 on.
func recorded(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	add := func(k journal.Kind, op event.Op, ns, name, before, after string, quiet bool) {
		at := start.Add(time.Duration(n) * time.Minute)
		n++
		r := journal.Row{Meta: journal.Meta{
			Op: op, Kind: k, Namespace: ns, Name: name, UID: ns + name, ResourceVersion: fmt.Sprint(n), Time: at, At: at,
			Manager: "kubectl", Quiet: quiet,
		}}
		if before != "" {
			r.Before = object(k, ns, name, n-1, before)
		}
		if after != "" {
			r.After = object(k, ns, name, n, after)
		}
		_, err := j.Append(t.Context(), []journal.Batch{{
			Stream: journal.Stream{GroupResource: k.GroupResource()},
			Head:   journal.Head{Version: fmt.Sprint(n), Epoch: 1, Live: true, EverLive: true, At: at}, Rows: []journal.Row{r},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(maps, event.Snapshot, "shop", "old", "", "0", false)
	add(maps, event.Created, "shop", "a", "", "1", false)
	add(maps, event.Updated, "shop", "a", "1", "2", false)
	add(maps, event.Updated, "shop", "a", "2", "2", true)
	add(widgets, event.Created, "pay", "w", "", "1", false)
	add(maps, event.Deleted, "shop", "a", "2", "", false)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLog(t *testing.T) {
	path := recorded(t)
	for _, tc := range []struct {
		why  string
		o    Options
		want string // operations and names
		said string // on stderr
	}{
		{"all that is news", Options{}, "created a, updated a, created w, deleted a", "1 quiet changes not shown (--noise)"},
		{"with what is quiet", Options{Noise: true}, "created a, updated a, updated a, created w, deleted a", ""},
		{"the last ones", Options{Limit: 2}, "created w, deleted a", "the last 2; --limit tells more"},
		{"from a time on", Options{Since: "10:03"}, "created w, deleted a", "1 quiet"},
		{"before a time", Options{Until: "10:02"}, "created a", ""},
		{"at 10:02", Options{Since: "10:02", Until: "10:03"}, "updated a", ""},
		{"a kind", Options{Types: []string{"cm"}}, "created a, updated a, deleted a", "1 quiet"},
		{"a kind of others", Options{Types: []string{"Widget"}}, "created w", ""},
		{"with its group", Options{Types: []string{"widgets.example.com,configmap"}, Ops: []string{"created"}}, "created a, created w", ""},
		{"an object", Options{Types: []string{"cm/old"}, Ops: []string{"snapshot"}}, "snapshot old", ""},
		{"names", Options{Types: []string{"cm", "a", "b"}, Ops: []string{"deleted"}}, "deleted a", ""},
		{"a namespace", Options{Namespaces: []string{"pa*"}}, "created w", ""},
		{"a manager", Options{Managers: []string{"nobody"}}, "", "no changes"},
		{"a path", Options{Paths: []string{"data.k"}, Ops: []string{"updated"}}, "updated a", "1 quiet"},
		{"another path", Options{Paths: []string{"data.other"}}, "", "no changes"},
		{"an expression", Options{Where: `op == "deleted" || resource.namespace == "pay"`}, "created w, deleted a", "1 quiet"},
		{"one that not every change answers", Options{Where: `after.data.k == "2"`}, "updated a", "could not judge 1 changes"},
	} {
		out, said, err := play(t, path, tc.o)
		if err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		var got []string
		for line := range strings.Lines(out) {
			var e event.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, string(e.Data.Op)+" "+e.Data.Resource.Name)
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, diff)
		}
		if !strings.Contains(said, tc.said) || tc.said == "" && said != "" {
			t.Errorf("%s: said %q, want %q", tc.why, said, tc.said)
		}
	}
}

// play runs the verb, as JSON where nothing else is asked for.
func play(t *testing.T, path string, o Options) (out, said string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.IO = &terminal.IO{Out: &stdout, Err: &stderr, Width: func() int { return 0 }}
	if o.Past.Path = path; o.Output == "" {
		o.Output = "json"
	}
	if o.Limit == 0 {
		o.Limit = 50
	}
	o.Now = func() time.Time { return start.Add(time.Hour) }
	err = Run(context.WithoutCancel(t.Context()), &o)
	return stdout.String(), stderr.String(), err
}

func TestText(t *testing.T) {
	out, _, err := play(t, recorded(t), Options{Output: "text", Types: []string{"cm"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+ shop     cm/a", "~ shop     cm/a", `data.k: "1" → "2"`, "- shop     cm/a"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	path := recorded(t)
	for _, tc := range []struct {
		why   string
		o     Options
		want  string
		usage bool
	}{
		{"no time", Options{Since: "noon"}, "--since: \"noon\" is no time", true},
		{"times the wrong way round", Options{Since: "10:05", Until: "10:02"}, "--since is not before --until", true},
		{"an operation", Options{Ops: []string{"delete"}}, "say created, updated, deleted", true},
		{"a path", Options{Paths: []string{"a..b"}}, "--path", true},
		{"an expression", Options{Where: "op = 1"}, "--where", true},
		{"a format", Options{Output: "xml"}, "say text, json or yaml", true},
		{"a limit", Options{Limit: -1}, "--limit", true},
		{"a glob", Options{Namespaces: []string{"["}}, "neither a name nor a glob", true},
		{"both", Options{Namespaces: []string{"a"}, All: true}, "exclude each other", true},
		{"a kind", Options{Types: []string{"widgetts"}}, `did you mean "widgets"?`, false},
		{"names of several kinds", Options{Types: []string{"cm/a", "widgets/b"}}, "ask for one type", true},
		{"half a name", Options{Types: []string{"cm/"}}, "is not TYPE/NAME", true},
		{"no journal", Options{}, "tattler run writes one", false},
	} {
		at := path
		if tc.why == "no journal" {
			at = filepath.Join(t.TempDir(), "none.db")
		}
		_, _, err := play(t, at, tc.o)
		var wrong *capture.UsageError
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &wrong) != tc.usage {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}
