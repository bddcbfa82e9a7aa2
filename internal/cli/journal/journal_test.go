package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/past"
	"github.com/tattler-dev/tattler/internal/cli/terminal"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/leaktest"
	"github.com/tattler-dev/tattler/internal/usage"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var then = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// streams captures a command's output.
type streams struct{ out, err bytes.Buffer }

func (s *streams) io() *terminal.IO {
	return &terminal.IO{Out: &s.out, Err: &s.err, ErrTTY: true, Width: func() int { return 80 }}
}

// record writes a journal: a pod that shows a value and then, under other rules, hides it.
func record(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	must(t, err)
	kind := journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	row := func(op event.Op, version, before, after string, at time.Time) journal.Row {
		return journal.Row{Before: []byte(before), After: []byte(after), Meta: journal.Meta{
			Op: op, Kind: kind, Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: version, Time: at, At: at,
		}}
	}
	batch := func(rules string, rows ...journal.Row) []journal.Batch {
		return []journal.Batch{{
			Stream: journal.Stream{GroupResource: "pods"}, Rows: rows,
			Head: journal.Head{Version: "9", Live: true, EverLive: true, Pipeline: rules, At: then},
		}}
	}
	_, err = j.Rules(t.Context(), "open", then)
	must(t, err)
	_, err = j.Append(t.Context(), batch("open", row(event.Created, "1", "", "s3cret", then), row(event.Updated, "2", "s3cret", "s3cret, again", then)))
	must(t, err)
	_, err = j.Rules(t.Context(), "closed", then.Add(time.Hour))
	must(t, err)
	hidden := row("", "2", "", "hidden", then)
	hidden.Rewritten = true
	_, err = j.Append(t.Context(), batch("closed", hidden, row(event.Updated, "3", "hidden", "hidden!", then.Add(time.Hour))))
	must(t, err)
	must(t, j.SetCursor(t.Context(), "hook", 1))
	must(t, j.Close())
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStats(t *testing.T) {
	var s streams
	o := &StatsOptions{IO: s.io(), Output: "text", Now: func() time.Time { return then.Add(2 * time.Hour) }}
	o.Past.Path = record(t)
	must(t, Stats(t.Context(), o))
	for _, want := range []string{"prod (format ", "changes  3, 0 of them quiet; 0 gaps;", "(120m ago)", "(60m ago)", "2 changes were recorded under other redaction rules", "pods  3 ", "1 stream, 1 complete", "hook  2 changes"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	for line := range strings.Lines(s.out.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 && !strings.HasPrefix(line, "journal") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if t.Failed() {
		t.Log(s.out.String())
	}
}

func TestStatsJSON(t *testing.T) {
	var s streams
	o := &StatsOptions{IO: s.io(), Output: "json"}
	o.Past.Path = record(t)
	c, err := sqlite3.Open("file:" + o.Past.Path)
	must(t, err)
	must(t, c.Exec("UPDATE sinks SET lost = 1234"))
	must(t, c.Close())
	must(t, Stats(t.Context(), o))
	var got Summary
	must(t, json.Unmarshal(s.out.Bytes(), &got))
	if len(got.Sinks) == 1 && (got.Sinks[0].Lost != 1234 || got.Sinks[0].Paused) {
		t.Errorf("%+v", got.Sinks)
	}
	if got.Changes != 3 || got.OtherRules == nil || got.OtherRules.Changes != 2 || !got.OtherRules.Before.Equal(then.Add(time.Hour)) ||
		len(got.Kinds) != 1 || got.Kinds[0].Live != 1 || len(got.Sinks) != 1 || got.Sinks[0].Behind != 2 || !got.Oldest.Equal(then) {
		t.Errorf("%s", s.out.String())
	}
}

// TestStatsOfClusters: one kind in two clusters is two rows.
func TestStatsOfClusters(t *testing.T) {
	var s streams
	o := &StatsOptions{IO: s.io(), Output: "text", Now: func() time.Time { return then }}
	o.Past.Path = record(t)
	j, err := journal.Open(t.Context(), o.Past.Path, journal.Options{})
	must(t, err)
	row := journal.Row{Meta: journal.Meta{
		Op: event.Created, Kind: journal.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Cluster: "staging"},
		Namespace: "shop", Name: "web", UID: "u1", ResourceVersion: "1", Time: then, At: then,
	}, After: []byte("{}")}
	_, err = j.Append(t.Context(), []journal.Batch{{Stream: journal.Stream{GroupResource: "pods", Cluster: "staging"}, Rows: []journal.Row{row}}})
	must(t, errors.Join(err, j.Close(), Stats(t.Context(), o)))
	for _, want := range []string{"\npods          3 ", "\nstaging pods  1 ", "\nstaging pods  all        first list was interrupted"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(s.out.String())
	}
}

// TestNoJournal: each command says where it looked, and creates no file.
func TestNoJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	var s streams
	stats, verify, purge := &StatsOptions{IO: s.io(), Output: "text"}, &VerifyOptions{IO: s.io()}, &PurgeOptions{IO: s.io(), OlderRules: true, Yes: true}
	stats.Past.Path, verify.Past.Path, purge.Past.Path = path, path, path
	for name, err := range map[string]error{"stats": Stats(t.Context(), stats), "verify": Verify(t.Context(), verify), "purge": Purge(t.Context(), purge)} {
		if err == nil || !strings.Contains(err.Error(), "there is no journal at "+path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a journal was made")
	}
}

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		why  string
		harm func(t *testing.T, path string)
		fail string // the error; empty: no damage
		want []string
	}{
		{"intact", func(*testing.T, string) {}, "", []string{"is not damaged: 3 changes and 1 object were read"}},
		{"every page was changed", func(t *testing.T, path string) { flip(t, path, 1, 1000) }, " damage", []string{"damaged page: ", "Page: the file itself is damaged"}},
		{"one page was changed", func(t *testing.T, path string) { flip(t, path, 5, 5) }, " damage", []string{"damaged page: ", "Page: the file itself is damaged"}},
		{"a content was changed, with valid page checksums", func(t *testing.T, path string) {
			c, err := sqlite3.Open("file:" + path)
			must(t, err)
			must(t, c.Exec("UPDATE contents SET before = substr(before, 1, 2) || x'00' || substr(before, 4) WHERE seq = 2"))
			must(t, c.Close())
		}, "2 damages", []string{"damaged content: change 2, before, of pods shop/web: ", "Content: these changes"}},
		{"a block does not list a change's manager", func(t *testing.T, path string) {
			c, err := sqlite3.Open("file:" + path)
			must(t, err)
			must(t, c.Exec("UPDATE changes SET manager = 99 WHERE seq = 1; INSERT INTO managers VALUES (99, 'me', 1)"))
			must(t, c.Close())
		}, "1 damage", []string{"damaged index: change 1 does not match its block 1", "Index: tattler log may omit"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			var s streams
			o := &VerifyOptions{IO: s.io()}
			o.Past.Path = record(t)
			c.harm(t, o.Past.Path)
			err := Verify(t.Context(), o)
			if (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%v, want %q", err, c.fail)
			}
			for _, want := range c.want {
				if !strings.Contains(s.out.String(), want) {
					t.Errorf("the output lacks %q:\n%s", want, s.out.String())
				}
			}
			if c.fail == "" && !strings.Contains(s.err.String(), "reading pages") || s.err.Len() > 0 && !strings.HasSuffix(s.err.String(), "\x1b[K") {
				t.Errorf("progress is %q", s.err.String())
			}
		})
	}
}

// flip flips a bit in some pages of a file.
func flip(t *testing.T, path string, from, to int) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	for page := from; page <= to && page*4096 < len(b); page++ {
		b[page*4096+2000] ^= 1
	}
	must(t, os.WriteFile(path, b, 0o600))
}

func TestPurge(t *testing.T) {
	for _, c := range []struct {
		why    string
		o      PurgeOptions
		answer string
		left   int64
		out    string
		asked  []string
	}{
		{"--yes", PurgeOptions{OlderRules: true, Yes: true}, "", 1, "2 changes removed for good\n", []string{"2 changes, 0 of them quiet", "sink hook has not got 1 change of these"}},
		{"yes at the prompt", PurgeOptions{OlderRules: true, InTTY: true}, "yes\n", 1, "2 changes removed for good\n", []string{"Remove it? [y/N]"}},
		{"no at the prompt", PurgeOptions{OlderRules: true, InTTY: true}, "n\n", 3, "nothing was removed\n", []string{"Remove it?"}},
		{"no answer", PurgeOptions{OlderRules: true, InTTY: true}, "", 3, "nothing was removed\n", nil},
		{"until a time", PurgeOptions{Until: "2026-11-21T10:30:00Z", Yes: true}, "", 1, "2 changes removed for good\n", []string{"the state before 1 change that stays, which will say so"}},
		{"of one cluster", PurgeOptions{Until: "2026-11-21T10:30:00Z", Cluster: "prod", Yes: true}, "", 1, "2 changes removed for good\n", []string{"journal.db, of cluster prod, for good"}},
		{"until before the first, of one cluster", PurgeOptions{Until: "2026-11-21T09:30:00Z", Cluster: "prod", Yes: true}, "", 3, "there is nothing to remove: nothing in ", nil},
		{"until before the first", PurgeOptions{Until: "2026-11-21T09:30:00Z", Yes: true}, "", 3, "there is nothing to remove", nil},
	} {
		t.Run(c.why, func(t *testing.T) {
			var s streams
			c.o.IO, c.o.In = s.io(), strings.NewReader(c.answer)
			c.o.Past.Path = record(t)
			t.Setenv("SQLITE_TMPDIR", t.TempDir())
			must(t, Purge(t.Context(), &c.o))
			if !strings.HasPrefix(s.out.String(), c.out) {
				t.Errorf("the output is %q, want %q", s.out.String(), c.out)
			}
			for _, want := range c.asked {
				if !strings.Contains(s.err.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, s.err.String())
				}
			}
			r, err := journal.OpenReader(t.Context(), c.o.Past.Path)
			must(t, err)
			defer r.Close()
			stats, err := r.Stats(t.Context())
			if err != nil || stats.Changes != c.left {
				t.Errorf("%d changes are left, %v; want %d", stats.Changes, err, c.left)
			}
		})
	}
}

func TestPurgeRefuses(t *testing.T) {
	var s streams
	now := func() time.Time { return then }
	for _, c := range []struct {
		why string
		o   PurgeOptions
	}{
		{"neither flag", PurgeOptions{Yes: true}},
		{"both flags", PurgeOptions{OlderRules: true, Until: "30d", Yes: true}},
		{"an invalid time", PurgeOptions{Until: "soon", Yes: true}},
		{"no terminal", PurgeOptions{OlderRules: true}},
		{"a cluster, with older rules", PurgeOptions{OlderRules: true, Cluster: "prod", Yes: true}},
		{"a cluster that the journal does not have", PurgeOptions{Until: "30d", Cluster: "staging", Yes: true}},
	} {
		c.o.IO, c.o.Now, c.o.Past.Path = s.io(), now, record(t)
		var wrong *usage.Error
		if err := Purge(t.Context(), &c.o); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	path := record(t)
	j, err := journal.Open(t.Context(), path, journal.Options{})
	must(t, err)
	defer j.Close()
	o := &PurgeOptions{IO: s.io(), OlderRules: true, Yes: true}
	o.Past.Path = path
	if err := Purge(t.Context(), o); err == nil || !strings.Contains(err.Error(), "tattler run has it open; end it first") {
		t.Errorf("beside a daemon: %v", err)
	}
}

// TestPurgeInterrupted: an interrupt at the prompt ends the command.
func TestPurgeInterrupted(t *testing.T) {
	var s streams
	in, answer, err := os.Pipe()
	must(t, err)
	defer in.Close()
	ctx, cancel := context.WithCancel(t.Context())
	o := &PurgeOptions{IO: s.io(), OlderRules: true, In: in, InTTY: true}
	o.Past.Path = record(t)
	o.IO.Err = writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("Remove it?")) {
			cancel()
		}
		return len(p), nil
	})
	must(t, Purge(ctx, o))
	must(t, answer.Close())
	if s.out.String() != "nothing was removed\n" {
		t.Errorf("the output is %q", s.out.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := number(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1024: "1 KiB", 1000: "1 KiB", 1500 << 10: "1.5 MiB", 512 << 20: "512 MiB", 3 << 40: "3 TiB"} {
		if got := size(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
}

// TestPurgeFreeSpace: deleted data in free space, as after retention or a rewritten state, is erased even if no change is
// to be removed.
func TestPurgeFreeSpace(t *testing.T) {
	path := record(t)
	t.Setenv("SQLITE_TMPDIR", t.TempDir())
	purge := func() string {
		var s streams
		must(t, Purge(t.Context(), &PurgeOptions{IO: s.io(), Past: past.Flags{Path: path}, OlderRules: true, Yes: true}))
		return s.out.String()
	}
	purge() // what the other rules made
	const planted = "hunter2-hunter2-hunter2-hunter2"
	db, err := sqlite3.Open("file:" + path)
	must(t, err)
	must(t, db.Exec("CREATE TABLE scrap (t TEXT); INSERT INTO scrap VALUES ('"+planted+"'); DROP TABLE scrap; PRAGMA wal_checkpoint(TRUNCATE)"))
	must(t, db.Close())
	raw := func() bool {
		b, err := os.ReadFile(path)
		must(t, err)
		return strings.Contains(string(b), planted)
	}
	if !raw() {
		t.Fatal("the file does not contain the value: the test proves nothing")
	}
	if out := purge(); !strings.Contains(out, "free space of its files was erased") || raw() {
		t.Errorf("%q; still there: %t", out, raw())
	}
}

// TestPurgeDeadLetters: dead letters of removed changes are something to remove.
func TestPurgeDeadLetters(t *testing.T) {
	path := record(t)
	t.Setenv("SQLITE_TMPDIR", t.TempDir())
	run := func() (string, string) {
		var s streams
		must(t, Purge(t.Context(), &PurgeOptions{IO: s.io(), Past: past.Flags{Path: path}, OlderRules: true, Yes: true}))
		return s.out.String(), s.err.String()
	}
	run() // recorded under the other rules
	const planted = "hunter2-hunter2-hunter2-hunter2"
	j, err := journal.Open(t.Context(), path, journal.Options{})
	must(t, err)
	_, err = j.SetAside(t.Context(), journal.DeadLetter{Sink: "hook", Seq: 1, Reason: "400 for " + planted, At: then})
	must(t, err)
	must(t, j.Close())
	out, asked := run()
	if !strings.Contains(asked, "1 dead letter of changes that are removed now or were before") || out != "0 changes removed for good\n" {
		t.Errorf("%q\n%q", asked, out)
	}
	b, err := os.ReadFile(path)
	if must(t, err); strings.Contains(string(b), planted) {
		t.Error("its reason is still there")
	}
	if out, _ = run(); !strings.Contains(out, "there is nothing to remove") {
		t.Errorf("again: %q", out)
	}
}

// TestBackupAndRestore: the commands do what they report.
func TestBackupAndRestore(t *testing.T) {
	path, to := record(t), filepath.Join(t.TempDir(), "backup.db")
	var s streams
	must(t, Backup(t.Context(), &BackupOptions{IO: s.io(), Past: past.Flags{Path: path}, To: to}))
	if got := s.out.String(); !strings.HasPrefix(got, to+" is a backup of "+path+": ") {
		t.Errorf("backup says %q", got)
	}
	if err := Backup(t.Context(), &BackupOptions{IO: s.io(), Past: past.Flags{Path: path}, To: to}); err == nil || !strings.Contains(err.Error(), "choose another file") {
		t.Errorf("over a file: %v", err)
	}
	s = streams{}
	restore := &RestoreOptions{IO: s.io(), Past: past.Flags{Path: path}, From: to, Now: func() time.Time { return then }}
	must(t, Restore(t.Context(), restore))
	aside := path + ".before-20261121T100000Z"
	if got := s.out.String(); !strings.Contains(got, path+" is restored from "+to) || !strings.Contains(got, "the old journal is now "+aside+"\n") {
		t.Errorf("restore says %q", got)
	}
	for _, p := range []string{path, aside} {
		s = streams{}
		must(t, Verify(t.Context(), &VerifyOptions{IO: s.io(), Past: past.Flags{Path: p}}))
	}
	j, err := journal.Open(t.Context(), path, journal.Options{})
	must(t, err)
	defer j.Close()
	if err := Restore(t.Context(), restore); err == nil || !strings.Contains(err.Error(), "tattler run has it open") {
		t.Errorf("while it is open: %v", err)
	}
}
