package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	journaldb "github.com/tattler-dev/tattler/internal/journal"
)

// TestUnusableJournal: every verb says what is wrong with which file, and what to do, and fails. Nothing on the disk changes.
func TestUnusableJournal(t *testing.T) {
	whole, err := os.ReadFile(recordedPast(t))
	if err != nil {
		t.Fatal(err)
	}
	write := func(t *testing.T, path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sql := func(t *testing.T, path, text string) {
		t.Helper()
		c, err := sqlite3.Open("file:" + filepath.ToSlash(path))
		if err == nil {
			err = errors.Join(c.Exec(text), c.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const start, other, name = "start tattler run", "or name another file with --journal", "--journal takes the file of a journal"
	for _, tt := range []struct {
		why  string
		make func(t *testing.T, path string)
		want []string
	}{
		{"nothing", func(*testing.T, string) {}, []string{"there is no journal at", start, other}},
		{"an empty file", func(t *testing.T, path string) { write(t, path, nil) }, []string{"there is no journal at", start, other}},
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"is not a regular file", name}},
		{"a text", func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("text ", 99))) }, []string{"not a SQLite database", name}},
		{"a few bytes", func(t *testing.T, path string) { write(t, path, whole[:7]) }, []string{"not a SQLite database", name}},
		{"the database of another program", func(t *testing.T, path string) { sql(t, path, "CREATE TABLE t (x)") }, []string{"is not a journal", name}},
		{"a newer format", func(t *testing.T, path string) { write(t, path, whole); sql(t, path, "PRAGMA user_version = 99") }, []string{"a newer tattler made", "upgrade tattler"}},
		{"an older format", func(t *testing.T, path string) { write(t, path, whole); sql(t, path, "PRAGMA user_version = 4") }, []string{"an unreleased tattler made", "move the file away"}},
		{"a truncated file", func(t *testing.T, path string) { write(t, path, whole[:len(whole)/4096/2*4096+100]) }, []string{"damaged", "verify"}},
		{"a damaged first page", func(t *testing.T, path string) {
			b := append([]byte(nil), whole...)
			copy(b[200:], "damage")
			write(t, path, b)
		}, []string{"damaged", "verify"}},
		{"a log that cannot be opened", func(t *testing.T, path string) {
			write(t, path, whole)
			if err := os.Mkdir(path+"-wal", 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"-wal", "the right to write journal.db and the files beside it: run the command as the daemon's user"}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "journal.db")
			tt.make(t, path)
			before := files(t, dir)
			for _, args := range [][]string{
				{"log"}, {"log", "--stat"}, {"log", "-f"}, {"get", "cm"}, {"diff"}, {"blame", "cm/flag"}, {"show", "abcd"}, {"ui"}, {"status"},
				{"sinks"}, {"journal", "stats"}, {"journal", "verify"}, {"journal", "purge", "--until", "1d", "--yes"},
			} {
				code, out, stderr := tattler(t.Context(), append(append([]string{"tattler"}, args...), "--journal", path)...)
				want := tt.want
				switch verb := strings.Join(args, " "); {
				case verb == "status": // it asks the daemon
					want = []string{"no daemon records into " + path, start}
				case verb == "journal verify": // its report is its output
					out, stderr = "", out+stderr
				case strings.HasPrefix(verb, "journal purge") && strings.Contains(tt.why, "log that"): // it writes
					want = []string{"-wal"}
				}
				if code == 0 || code == 3 || out != "" {
					t.Errorf("%s: exit code %d, %q", args, code, out)
				}
				if !strings.Contains(stderr, path) && !strings.Contains(stderr, "damaged page") {
					t.Errorf("%s does not name the file: %s", args, stderr)
				}
				for _, w := range want {
					if w == "verify" && args[len(args)-1] == w {
						w = "To continue, stop it, move the journal"
					}
					if !strings.Contains(stderr, w) {
						t.Errorf("%s: no %q in: %s", args, w, stderr)
					}
				}
				if after := files(t, dir); !cmp.Equal(without(before), without(after)) {
					t.Errorf("%s changes the disk: %s", args, cmp.Diff(without(before), without(after)))
				}
			}
			if !strings.Contains(tt.why, "format") && !strings.Contains(tt.why, "damaged") && !strings.Contains(tt.why, "truncated") && !strings.Contains(tt.why, "log") {
				if d := cmp.Diff(before, files(t, dir)); d != "" {
					t.Errorf("files beside what is not a journal: %s", d)
				}
			}
		})
	}
}

// without leaves out what tattler makes beside every journal: the log, its index, and the lock of writers.
func without(files map[string]string) map[string]string {
	rest := map[string]string{}
	for name, content := range files {
		if ext := filepath.Ext(name); ext != ".db-wal" && ext != ".db-shm" && ext != ".lock" {
			rest[name] = content
		}
	}
	return rest
}

// files returns what is in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if all[name] = "folder"; d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		all[name] = fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKilledDaemon: a journal whose daemon was killed has changes in its log only, and every verb reads them.
func TestKilledDaemon(t *testing.T) {
	path := recordedPast(t)
	j, err := journaldb.Open(t.Context(), path, journaldb.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	last := journaldb.Row{Meta: journaldb.Meta{Op: event.Created, Kind: cmKind, Namespace: "shop", Name: "last", UID: "last", ResourceVersion: "100", Time: ten, At: ten}, After: []byte(`{"kind":"ConfigMap"}`)}
	_, err = j.Append(t.Context(), []journaldb.Batch{{
		Stream: journaldb.Stream{GroupResource: "configmaps"}, Head: journaldb.Head{Version: "100", Epoch: 1, Live: true, At: ten}, Rows: []journaldb.Row{last},
	}})
	if err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "journal.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + end)
		if err == nil {
			err = os.WriteFile(killed+end, b, 0o600)
		}
		if err != nil || len(b) == 0 {
			t.Fatal(len(b), err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"log", "cm/last"}, {"get", "cm/last"}, {"blame", "cm/last"}, {"journal", "verify"}, {"journal", "stats"}} {
		code, out, stderr := tattler(t.Context(), append(append([]string{"tattler"}, args...), "--journal", killed)...)
		if code != 0 || args[0] != "journal" && args[0] != "blame" && !strings.Contains(out, "last") {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, stderr)
		}
	}
}
