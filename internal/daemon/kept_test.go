package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestKeptDamagedPage: the objects of an unreadable page are unknown. Each time the state is requested, it ends
// with an error: otherwise the missing objects would be reported as deleted.
func TestKeptDamagedPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	name := journal.Stream{GroupResource: "configmaps"}
	kind := journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true}
	var rows []journal.Row
	for i := range 60 {
		object := fmt.Appendf(nil, `{"data":{"needle-%d-":"%s"}}`, i, strings.Repeat("x", 100+i))
		rows = append(rows, journal.Row{After: fmt.Appendf(object, "%x", bytes.Repeat([]byte{byte(i), 77, byte(3 * i)}, 50)), Meta: journal.Meta{
			Op: event.Snapshot, Kind: kind, Namespace: "shop", Name: fmt.Sprint("c-", i), UID: fmt.Sprint("u-", i), ResourceVersion: "1", Time: time.Unix(1, 0), At: time.Unix(1, 0),
		}})
	}
	_, err = j.Append(t.Context(), []journal.Batch{{Stream: name, Head: journal.Head{Version: "1", Live: true, EverLive: true}, Rows: rows}})
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(file, []byte("needle-30-"))
	if at < 0 {
		t.Fatal("the object is not found in the file")
	}
	file[at] ^= 1
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if j, err = journal.Open(t.Context(), path, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var log bytes.Buffer
	k := &kept{journal: j, log: slog.New(slog.NewTextHandler(&log, nil)), damaged: map[journal.Stream]bool{}}
	for i := range 3 {
		var last error
		n := 0
		for _, err := range k.objects(t.Context(), name) {
			if last != nil {
				t.Error("something follows the error")
			}
			if last = err; err == nil {
				n++
			}
		}
		var damage *journal.DamagedError
		if !errors.As(last, &damage) || n >= len(rows) {
			t.Errorf("time %d: %d objects, then %v", i+1, n, last)
		}
	}
	if !k.isDamaged(name) {
		t.Error("it is not remembered")
	}
	if n := strings.Count(log.String(), "a page of the journal is damaged"); n != 1 {
		t.Errorf("it is said %d times: %s", n, log.String())
	}
}

// TestDeadLettersPushOut: a dead letter that displaces another one is logged.
func TestDeadLettersPushOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := &outbox{Journal: j, log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := errors.Join(o.SetAside(t.Context(), deliver.DeadLetter{Sink: "hook", Seq: 1}), j.Close()); err != nil || log.Len() > 0 {
		t.Fatalf("%v: %s", err, log.String())
	}
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO dead (sink, seq, change, reason, attempts) SELECT 'hook', i, '', '', 1 FROM n`, journal.MaxDeadLetters))
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	if j, err = journal.Open(t.Context(), path, journal.Options{}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	o.Journal = j
	if err := o.SetAside(t.Context(), deliver.DeadLetter{Sink: "hook", Seq: 1 << 40}); err != nil || !strings.Contains(log.String(), "sink=hook lost=1 kept=10000") {
		t.Errorf("%v: %s", err, log.String())
	}
}
