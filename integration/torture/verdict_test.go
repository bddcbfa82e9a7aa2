package torture

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/journal"
)

// judge compares everything with the watcher's history, and returns the judge.
func (to *torture) judge(ctx context.Context) *judge {
	to.Helper()
	if err := within(ctx, 3*time.Minute, to.watcher.behind); err != nil {
		to.Error(err)
	}
	server := state(ctx, to.T, to.watcher.api, to.namespaces)
	p, err := to.watcher.finish()
	if err != nil {
		to.Error(err)
	}
	j := newJudge(p, to.observer.causes, to.namespaces...)
	readJournal(ctx, to.T, to.daemon.journal, j)
	j.end(server)
	j.away(to.daemon.off)
	j.away(to.still)
	j.unreached(to.out, to.daemon.off)
	listed := func(r *row) bool { return true }
	later := func(r *row) bool { return r.op != event.Snapshot }
	some := func(r *row) bool { return r.op == event.Created || r.op == event.Deleted }
	j.sink("file", listed, fileLines(to.T, to.changes()))
	j.sink("all", later, to.all.receipts())
	j.sink("slow", later, to.slow.receipts())
	j.sink("some", some, to.some.receipts())
	j.sink("stdout", later, whole(to.T, to.daemon.printed()))
	sinks := map[string]func(*row) bool{"file": listed, "all": later, "slow": later, "some": some, "stdout": later}
	if changes, deliveries := j.traces(sinks, to.collector.received()); changes == 0 || deliveries == 0 {
		to.Errorf("the collector received %d spans of changes and %d of deliveries", changes, deliveries)
	} else {
		to.Logf("traces: %d changes, %d deliveries, answers %v", changes, deliveries, to.collector.answers)
	}
	if verdict := j.verdict(); verdict != "" {
		to.Error(verdict)
	}
	to.Logf("the gaps: %v", j.reasons())
	to.Logf("judged: %d versions in the journal, %d dated by their objects, %d within %d gaps, %d that the watcher could not see; %d runs; troubles %v; answers %v %v; disk: %s",
		j.exact, j.dated, j.net, len(j.gaps), j.unseen, to.daemon.runs, to.done, to.all.answers, to.some.answers, to.disk.how)
	if err := errors.Join(slices.Concat(to.all.errs, to.some.errs, to.slow.errs, to.collector.errs)...); err != nil {
		to.Error(err)
	}
	if full := to.done["the disk is full"] + to.done["the disk is full, and stays so"]; full > 0 && to.disk.fill != nil && to.done[noticed] == 0 {
		to.Errorf("the disk was full %d times, but the daemon never noticed", full)
	}
	if j.dated == 0 {
		to.Error("no change could be dated by its object")
	}
	if j.unseen*10 > j.exact {
		to.Errorf("the watcher could not see %d of %d versions: too many", j.unseen, j.exact)
	}
	to.checkCommand(j)
	return j
}

// checkCommand compares the output of the command with the judged rows and the sinks' messages.
func (to *torture) checkCommand(j *judge) {
	to.Helper()
	out, _ := to.daemon.tattler("log", "--journal", to.daemon.journal, "-o", "json", "--limit", "0", "--noise")
	printed := map[string]string{}
	for line := range strings.Lines(out) {
		var e struct{ ID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			to.Fatalf("tattler log printed %.200q: %v", line, err)
		}
		printed[e.ID] = strings.TrimSpace(line)
	}
	for i := range j.listed {
		if r := &j.listed[i]; r.op != event.Snapshot && printed[r.id] == "" {
			to.Errorf("tattler log does not print %v", r)
		}
	}
	others := 0
	for _, g := range to.all.receipts() {
		var e struct{ ID string }
		if err := json.Unmarshal(g.body, &e); err == nil && printed[e.ID] != string(g.body) {
			if others++; others < 3 {
				to.Errorf("tattler log prints\n%s\nbut a sink received\n%s", printed[e.ID], g.body)
			}
		}
	}
	r := j.listed[to.rng.IntN(len(j.listed))]
	if text, _ := to.daemon.tattler("show", "--journal", to.daemon.journal, r.id); !strings.Contains(text, r.id) || !strings.Contains(text, r.name) {
		to.Errorf("tattler show %s prints %s", r.id, text)
	}
}

// state returns the server's objects of our kinds in namespaces.
func state(ctx context.Context, t *testing.T, a *api, namespaces []string) map[identity][]byte {
	t.Helper()
	all := map[identity][]byte{}
	for _, r := range kinds {
		items, _, err := a.list(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			id, ns, body := itemOf(t, r, item)
			if slices.Contains(namespaces, ns) {
				all[id] = body
			}
		}
	}
	return all
}

// readJournal passes the rows of a journal, which must be intact, to a judge.
func readJournal(ctx context.Context, t *testing.T, path string, j *judge) {
	t.Helper()
	r, err := journal.OpenReader(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := r.Verify(ctx, journal.Verifying{Damage: func(d journal.Damage) { t.Errorf("the journal is damaged: %+v", d) }})
	if err != nil || rep.Damaged > 0 {
		t.Errorf("verify: %+v, %v", rep, err)
	}
	for e, err := range r.Rows(ctx, journal.Query{Quiet: true, Snapshots: true, OldestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before, after, err := e.Contents(ctx)
		if err != nil {
			t.Fatal(err)
		}
		j.row(row{
			seq: e.Seq, id: e.ID, op: e.Op, kind: e.Kind.GroupResource(), namespace: e.Namespace, name: e.Name, uid: e.UID,
			version: e.ResourceVersion, derived: e.Net, quiet: e.Quiet, gap: e.Gap, absence: e.Absence, since: e.Since, at: e.At, time: e.Time,
			before: before, after: after,
		})
	}
}

// whole removes lines torn by a full disk: those that are the beginning of another line.
func whole(t *testing.T, lines []receipt) []receipt {
	t.Helper()
	sorted := slices.SortedFunc(slices.Values(lines), func(a, b receipt) int { return cmp.Compare(string(a.body), string(b.body)) })
	return slices.DeleteFunc(slices.Clone(lines), func(l receipt) bool {
		i, _ := slices.BinarySearchFunc(sorted, l, func(a, b receipt) int { return cmp.Compare(string(a.body), string(b.body)) })
		for i < len(sorted) && string(sorted[i].body) == string(l.body) {
			i++
		}
		return i < len(sorted) && strings.HasPrefix(string(sorted[i].body), string(l.body))
	})
}
