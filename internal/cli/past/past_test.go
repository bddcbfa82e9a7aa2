package past

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/kube"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestFile: a flag precedes the environment, which precedes the kubeconfig.
func TestFile(t *testing.T) {
	none := kube.Flags{Kubeconfig: "/nonexistent"}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, tc := range []struct{ why, flag, env, want, err string }{
		{"a flag", "/a", "b", "/a", ""},
		{"the environment, from here", "", "b", filepath.Join(dir, "b"), ""},
		{"the context", "", "", "", "/nonexistent"},
	} {
		t.Setenv(kube.JournalVariable, tc.env)
		f := Flags{Kube: none, Path: tc.flag}
		got, err := f.File(t.Context())
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.why, got, err)
		}
	}
}

// TestOpenReader: if there is no journal, the error says what to do.
func TestOpenReader(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ why, path, want string }{
		{"none", filepath.Join(dir, "none"), "there is no journal at " + dir + "/none: start tattler run"},
		{"an empty file, which a daemon was about to fill", empty, "there is no journal at " + empty},
		{"a folder", dir, dir + " is not a regular file: --journal takes the file of a journal"},
	} {
		if _, err := OpenReader(t.Context(), tc.path); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("opening creates %v, %v", left, err)
	}
}

// TestPurged: an open journal, such as that of tattler ui, returns nothing that was purged after it was opened, although it
// read the changes before it.
func TestPurged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	w, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	kind := journal.Kind{Version: "v1", Resource: "secrets", Kind: "Secret", Namespaced: true}
	batch := journal.Batch{Stream: journal.Stream{GroupResource: "secrets"}, Head: journal.Head{Version: "9", Epoch: 1, Live: true, EverLive: true, At: start}}
	var last []byte
	for n := range 4 {
		r := journal.Row{Meta: journal.Meta{Op: event.Updated, Kind: kind, Namespace: "shop", Name: "key", UID: "u", ResourceVersion: fmt.Sprint(n + 1),
			Time: start.Add(time.Duration(n) * time.Minute), At: start.Add(time.Duration(n) * time.Minute)}, Before: last, After: fmt.Appendf(nil, `{"metadata":{"name":"key","uid":"u"},"value":"hunter%d"}`, n)}
		if n == 0 {
			r.Op = event.Created
		}
		last = r.After
		batch.Rows = append(batch.Rows, r)
	}
	if _, err := w.Append(t.Context(), []journal.Batch{batch}); err != nil {
		t.Fatal(err)
	}
	f := Flags{Path: path}
	j, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var all []journal.Entry
	q := journal.Query{OldestFirst: true, Quiet: true, Snapshots: true}
	for e, err := range j.Rows(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for e, err := range j.Rows(t.Context(), q) { // a page shows only the first
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Contents(t.Context()); err != nil {
			t.Fatal(err)
		}
		break
	}
	if err := w.Purge(t.Context(), journal.Purge{Until: start.Add(2*time.Minute + time.Second)}, nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{journal.ErrNotFound, journal.ErrNotFound, journal.ErrNotFound, journal.ErrPurged} {
		if before, _, err := all[i].Contents(t.Context()); !errors.Is(err, want) || before != nil {
			t.Errorf("change %d: %s, %v, want %v", i, before, err, want)
		}
	}
}
