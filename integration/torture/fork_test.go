package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/journal"
)

// TestFork restores a backup of etcd, under the running and under the stopped daemon. The server then has
// another history, in which the same versions of the same objects occur again with other contents.
func TestFork(t *testing.T) {
	for _, tc := range []struct {
		why                string
		stopped, overtaken bool // overtaken: when the daemon sees it, the server is ahead of its old version
	}{
		{why: "running"},
		{why: "running, the server is ahead", overtaken: true},
		{why: "stopped, the server is behind", stopped: true},
		{why: "stopped, the server is ahead", stopped: true, overtaken: true},
	} {
		t.Run(tc.why, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			f := newFork(ctx, t)
			f.daemon.ready(ctx)
			f.write(ctx, f.watcher, 60)
			f.arrived(ctx, f.watcher, "before")

			backup := filepath.Join(t.TempDir(), "etcd")
			f.do(ctx, action{what: "etcd is killed and copied", forgets: true}, func(ctx context.Context) error {
				return errors.Join(plane.KillEtcd(), os.CopyFS(backup, os.DirFS(f.etcd())), plane.StartEtcd(ctx))
			})
			f.write(ctx, f.watcher, 40)
			lost := f.hammer(ctx, f.watcher)
			f.arrived(ctx, f.watcher, "lost")
			f.must(within(ctx, 3*time.Minute, f.watcher.behind))
			first, err := f.watcher.finish()
			f.must(err)
			if tc.stopped {
				f.daemon.end()
			}
			f.proxy.refuse(tc.overtaken)

			f.do(ctx, action{what: "the backup is restored", forgets: true, replaces: true}, func(ctx context.Context) error {
				return errors.Join(plane.KillAPIServer(), plane.KillEtcd(), os.RemoveAll(f.etcd()), os.CopyFS(f.etcd(), os.DirFS(backup)),
					os.Chmod(f.etcd(), 0o700), plane.StartEtcd(ctx), plane.StartAPIServer(ctx))
			})
			second, err := startWatcher(ctx)
			f.must(err)
			t.Cleanup(second.stop)
			var again map[string]bool
			if tc.overtaken {
				again = f.hammer(ctx, second)
				f.write(ctx, second, 60)
				f.proxy.refuse(false)
			}
			f.daemon.ready(ctx)
			if !tc.stopped {
				f.noticed(ctx)
			}
			if !tc.overtaken {
				again = f.hammer(ctx, second)
			}
			f.write(ctx, second, 40)
			f.arrived(ctx, second, "after")
			f.must(within(ctx, 3*time.Minute, second.behind))
			server := state(ctx, t, second.api, f.namespaces)
			f.daemon.end()
			now, err := second.finish()
			f.must(err)

			n := 0
			for version := range again {
				if lost[version] {
					n++
				}
			}
			t.Logf("%d versions of one object were in both histories", n)
			if n < 5 {
				t.Errorf("only %d versions were reused: nothing is proven", n)
			}
			f.judge(ctx, first, now, server, tc.overtaken)
		})
	}
}

// fork is a daemon whose server gets another history.
type fork struct {
	*testing.T
	rng        *rand.Rand
	namespaces []string
	watcher    *watcher
	observer   *observer
	proxy      *proxy
	daemon     *daemon
	changes    string
}

func newFork(ctx context.Context, t *testing.T) *fork {
	t.Helper()
	f := &fork{T: t, rng: chance(t), namespaces: []string{fmt.Sprintf("fork-%x", time.Now().UnixNano())}}
	a, err := newAPI()
	f.must(err)
	f.must(makeNamespaces(ctx, a, f.namespaces...))
	f.watcher, err = startWatcher(ctx)
	f.must(err)
	t.Cleanup(f.watcher.stop)
	dir := t.TempDir()
	f.changes = filepath.Join(dir, "changes.jsonl")
	f.observer = newObserver(t, plane.Kubeconfig())
	f.proxy = newProxy(t, f.observer)
	f.daemon = newObservedDaemon(t, filepath.Join(dir, "state", "journal.db"), f.observer, f.proxy, fields{
		"cluster": fields{"name": "fork"},
		"watch":   []fields{{"resources": fields{"include": kindNames()}, "namespaces": fields{"include": f.namespaces}}},
		"redact":  []fields{{"resources": []string{"configmaps"}, "paths": []string{"data.hush"}}},
		"journal": fields{"path": filepath.Join(dir, "state", "journal.db")},
		"sinks":   []fields{{"name": "file", "snapshots": true, "file": fields{"path": f.changes}}},
	})
	return f
}

func (f *fork) etcd() string { return filepath.Join(plane.Dir(), "etcd") }

func (f *fork) do(ctx context.Context, d action, what func(context.Context) error) {
	f.Helper()
	f.must(f.observer.during(ctx, f.watcher.api, d, what))
}

func (f *fork) must(errs ...error) {
	f.Helper()
	if err := errors.Join(errs...); err != nil {
		f.Fatal(err)
	}
}

// write makes hands write for a while.
func (f *fork) write(ctx context.Context, w *watcher, n int64) {
	f.Helper()
	h, err := newHands(ctx, w, f.rng, 100, f.namespaces...)
	f.must(err)
	defer h.stop()
	f.must(within(ctx, 3*time.Minute, func() error { return h.some(ctx, n) }))
}

// hammer repeatedly writes one object that exists in both histories, and returns its versions.
func (f *fork) hammer(ctx context.Context, w *watcher) map[string]bool {
	f.Helper()
	versions := map[string]bool{}
	for i := range 150 {
		body, err := json.Marshal(fields{"data": fields{"k": fmt.Sprint(f.rng.Uint64(), " ", i)}})
		f.must(err)
		var answer []byte
		var sent time.Time
		f.must(within(ctx, 2*time.Minute, func() error {
			sent = time.Now()
			answer, err = w.api.do(ctx, "PATCH", configMaps.path(f.namespaces[0], "last-before"), "application/merge-patch+json", body)
			return err
		}))
		w.answered(configMaps, sent, answer)
		var o stem
		f.must(json.Unmarshal(answer, &o))
		versions[o.Metadata.ResourceVersion] = true
	}
	return versions
}

// arrived creates an object of each kind and waits until the daemon has delivered them.
func (f *fork) arrived(ctx context.Context, w *watcher, name string) {
	f.Helper()
	a, err := newAPI()
	f.must(err)
	h := &hand{api: a, watcher: w, rng: f.rng}
	for _, r := range kinds {
		f.must(within(ctx, 2*time.Minute, func() error {
			err := h.create(ctx, r, f.namespaces[0], "last-"+name)
			if isRefusal(err, 409) { // of an attempt without a response
				return nil
			}
			return err
		}))
	}
	err = within(ctx, 3*time.Minute, func() error {
		data, err := os.ReadFile(f.changes)
		if err != nil {
			return err
		}
		for _, r := range kinds {
			if subject := fmt.Sprintf("/%s/%s/last-%s\"", f.namespaces[0], r.plural, name); !bytes.Contains(data, []byte(subject)) {
				return fmt.Errorf("%s was not delivered", subject)
			}
		}
		return nil
	})
	f.must(err)
}

// noticed waits until every stream has recorded that history changed.
func (f *fork) noticed(ctx context.Context) {
	f.Helper()
	f.must(within(ctx, 5*time.Minute, func() error { // a bookmark comes every minute
		n := 0
		for line := range bytes.Lines(read(f.T, f.changes)) {
			if bytes.Contains(line, []byte(`"op":"gap"`)) && forks(string(line)) {
				n++
			}
		}
		if n < len(kinds) {
			return fmt.Errorf("%d of %d streams recorded that history changed", n, len(kinds))
		}
		return nil
	}))
}

// judge judges the journal by the first history up to the gap that says that history changed, and by the second
// from there.
func (f *fork) judge(ctx context.Context, first, second *past, server map[identity][]byte, overtaken bool) {
	f.Helper()
	for _, r := range kinds { // the daemon began before the first write
		first.start[r.name()], second.start[r.name()] = "0", "0"
	}
	j := newJudge(first, f.observer.causes, f.namespaces...)
	j.next = second
	early := 0
	if overtaken {
		j.early = &early
	}
	readJournal(ctx, f.T, f.daemon.journal, j)
	j.end(server)
	j.sink("file", func(*row) bool { return true }, fileLines(f.T, f.changes))
	if verdict := j.verdict(); verdict != "" {
		f.Error(verdict)
	}
	forked := 0
	for _, g := range j.gaps {
		if forks(g.gap.Reason) {
			forked++
		}
	}
	if forked != len(kinds) {
		f.Errorf("%d gaps for a changed history, want one for each of %d streams", forked, len(kinds))
	}
	f.Logf("judged: %d versions in the journal, %d within %d gaps, %d of the other history before its gap", j.exact, j.net, len(j.gaps), early)

	w, err := journal.Open(ctx, f.daemon.journal, journal.Options{})
	f.must(err)
	defer w.Close()
	streams, err := w.Streams(ctx)
	f.must(err)
	for _, s := range streams {
		if s.Head.Epoch != 2 {
			f.Errorf("%+v is in epoch %d, want 2", s.Stream, s.Head.Epoch)
		}
	}
}
