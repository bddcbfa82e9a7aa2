package log

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/access"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/history/historytest"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/web/client/clienttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	start   = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	maps    = journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	nodes   = journal.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	widgets = journal.Kind{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Namespaced: true}
)

type obj = map[string]any

// journalWriter writes a journal.
type journalWriter struct {
	t    *testing.T
	path string
	j    *journal.Journal
	at   time.Time // of the next change
	n    int
}

func newBook(t *testing.T, at time.Time) *journalWriter {
	t.Helper()
	b := &journalWriter{t: t, path: filepath.Join(t.TempDir(), "journal.db"), at: at}
	b.open()
	return b
}

func (b *journalWriter) open() {
	b.t.Helper()
	var err error
	if b.j, err = journal.Open(b.t.Context(), b.path, journal.Options{Cluster: "test"}); err != nil {
		b.t.Fatal(err)
	}
}

// close closes the journal and returns its file.
func (b *journalWriter) close() string {
	b.t.Helper()
	if err := b.j.Close(); err != nil {
		b.t.Fatal(err)
	}
	return b.path
}

// add appends a change; nil is no object. Each gets a version, and edits.
func (b *journalWriter) add(k journal.Kind, op event.Op, ns, name string, before, after obj, edits ...func(*journal.Row)) {
	b.t.Helper()
	b.append(b.row(k, op, ns, name, before, after, edits...))
}

// row returns a change at b.at.
func (b *journalWriter) row(k journal.Kind, op event.Op, ns, name string, before, after obj, edits ...func(*journal.Row)) journal.Row {
	b.t.Helper()
	b.n++
	r := journal.Row{Meta: journal.Meta{
		Op: op, Kind: k, Namespace: ns, Name: name, UID: uidOf(k.Kind, ns, name), ResourceVersion: fmt.Sprint(b.n), Time: b.at, At: b.at,
		Manager: "?",
	}}
	if before != nil {
		r.Before = b.object(&r.Meta, before)
	}
	if after != nil {
		r.After = b.object(&r.Meta, after)
	}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

// uidOf is the UID of an object.
func uidOf(kind, ns, name string) string { return kind + ":" + ns + "/" + name }

// append writes changes of a kind.
func (b *journalWriter) append(rows ...journal.Row) {
	b.t.Helper()
	historytest.Judge(rows)
	_, err := b.j.Append(b.t.Context(), []journal.Batch{{
		Stream: journal.Stream{GroupResource: rows[0].Kind.GroupResource()},
		Head:   journal.Head{Version: fmt.Sprint(b.n), Epoch: 1, Live: true, EverLive: true, At: b.at}, Rows: rows,
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// object returns the JSON of an object, with its identity.
func (b *journalWriter) object(m *journal.Meta, o obj) []byte {
	whole := obj{"apiVersion": m.Kind.Version, "kind": m.Kind.Kind}
	for k, v := range o {
		whole[k] = v
	}
	meta := obj{"namespace": m.Namespace, "name": m.Name, "uid": m.UID}
	if more, ok := o["metadata"].(obj); ok {
		for k, v := range more {
			meta[k] = v
		}
	}
	whole["metadata"] = meta
	raw, err := json.Marshal(whole)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

func data(value string) obj { return obj{"data": obj{"k": value}} }

// labelled returns data with a label.
func labelled(value, app string) obj {
	return obj{"data": obj{"k": value}, "metadata": obj{"labels": obj{"app": app}}}
}

// managed returns data with a manager for each key.
func managed(values obj, owners ...string) obj {
	var entries []any
	for i := 0; i < len(owners); i += 2 {
		entries = append(entries, obj{"manager": owners[i+1], "operation": "Update", "fieldsV1": obj{"f:data": obj{"f:" + owners[i]: obj{}}}})
	}
	return obj{"data": values, "metadata": obj{"managedFields": entries}}
}

func quiet(r *journal.Row) { r.Quiet = true }

// gapIn makes a row a gap of a namespace's stream, or of the whole cluster's.
func gapIn(namespace string) func(*journal.Row) {
	return func(r *journal.Row) {
		r.Op, r.Namespace, r.Name, r.UID = event.Gap, namespace, "", ""
		r.Gap = &event.GapInfo{From: "1", To: r.ResourceVersion, Reason: "expired"}
		r.ResourceVersion = ""
	}
}

// recorded writes a journal with a change each minute, from 10:00 on.
func recorded(t *testing.T) string {
	t.Helper()
	b := newBook(t, start)
	minute := func() { b.at = b.at.Add(time.Minute) }
	b.add(maps, event.Snapshot, "shop", "old", nil, data("0"))
	minute()
	b.add(maps, event.Created, "shop", "a", nil, labelled("1", "web"))
	minute()
	b.add(maps, event.Updated, "shop", "a", labelled("1", "web"), labelled("2", "web"))
	minute()
	b.add(maps, event.Updated, "shop", "a", labelled("2", "web"), labelled("2", "web"), quiet)
	minute()
	b.add(widgets, event.Created, "pay", "w", nil, data("1"))
	minute()
	b.add(maps, event.Deleted, "shop", "a", labelled("2", "web"), nil)
	return b.close()
}

// hourLater is the present time of play.
func hourLater() time.Time { return start.Add(time.Hour) }

// play runs the verb an hour later, with JSON output by default. Limit -1 means --limit 0.
func play(t *testing.T, path string, o Options) (out, said string, err error) {
	t.Helper()
	out, said, err = playOnce(t, path, o)
	served := o
	served.Past.Serving = func(ctx context.Context) (past.Served, error) {
		return clienttest.Open(ctx, path, access.Everything{}, nil)
	}
	if o.IO == nil || o.IO.Out == nil {
		checkServed(t, path, served, out, said, err)
	}
	return out, said, err
}

// checkServed runs the verb again on the journal as a daemon serves it: the output must be the same.
func checkServed(t *testing.T, path string, o Options, out, said string, err error) {
	t.Helper()
	if file, missing := os.Stat(path); missing != nil || !file.Mode().IsRegular() {
		return
	}
	out = strings.ReplaceAll(out, "read journal: journal "+path, "journal of the daemon")
	said = strings.ReplaceAll(said, "read journal: journal "+path, "journal of the daemon")
	out2, said2, err2 := playOnce(t, path, o)
	if d := cmp.Diff(out, out2); d != "" {
		t.Errorf("a served journal reads differently (-file +served):\n%s", d)
	}
	if d := cmp.Diff(said, said2); d != "" {
		t.Errorf("of a served journal it says (-file +served):\n%s", d)
	}
	if fmt.Sprint(err) != fmt.Sprint(err2) {
		t.Errorf("a served journal: %v; a file: %v", err2, err)
	}
}

func playOnce(t *testing.T, path string, o Options) (out, said string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := terminal.IO{Out: &stdout, Err: &stderr, Width: func() int { return 0 }}
	if o.IO != nil {
		streams = *o.IO
		streams.Err = &stderr
		if streams.Out == nil {
			streams.Out = &stdout
		}
	}
	o.IO, o.Past.Path = &streams, path
	if o.Output == "" {
		o.Output = "json"
	}
	switch o.Limit {
	case 0:
		o.Limit = 50
	case -1:
		o.Limit = 0
	}
	if o.Now == nil {
		o.Now = hourLater
	}
	if o.Recording == nil {
		o.Recording = running
	}
	err = Run(context.WithoutCancel(t.Context()), &o)
	return stdout.String(), stderr.String(), err
}

// running reports that a daemon writes the journal.
func running(context.Context, string) bool { return true }

// summarizeEvents returns the operations and names of events.
func summarizeEvents(t *testing.T, out string) string {
	t.Helper()
	var got []string
	for line := range strings.Lines(out) {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(string(e.Data.Op)+" "+e.Data.Resource.Name))
	}
	return strings.Join(got, ", ")
}

// isDetail reports whether a line is below another one: it is indented, whereas others begin with a time.
func isDetail(line string) bool {
	if rest, styled := strings.CutPrefix(line, "\x1b["); styled {
		_, line, _ = strings.Cut(rest, "m")
	}
	return strings.HasPrefix(line, " ")
}
