package report

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/control/sinkadmin"
)

func utc(t *testing.T) time.Time {
	t.Helper()
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
}

// check compares a text, of which no line is wider than 80 columns, with one that is indented by tabs.
func check(t *testing.T, want, got string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimLeft(want, "\n"), "\t", "")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s\n%s", d, got)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
}

func TestStatus(t *testing.T) {
	now := utc(t)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	s := control.Status{
		Version: "1.2.3", Cluster: "prod", PID: 4711, Started: before(3*time.Hour + 12*time.Minute), Settled: true,
		Away: "dial tcp 10.0.0.1:6443: connection refused", AwaySince: before(12 * time.Second),
		Streams: []control.Stream{
			{Resource: "pods", State: control.Live, Objects: 40},
			{Resource: "nodes", State: control.Live, Objects: 3},
			{
				Resource: "secrets", State: control.Forbidden, Since: before(3 * time.Hour),
				Error: `secrets is forbidden: User "system:serviceaccount:tattler:tattler" cannot list resource "secrets" in API group "" at the cluster scope`,
			},
			{Resource: "widgets.example.com", Namespace: "shop", Selection: `labels="app=x" fields=""`, State: control.Waiting, Since: before(time.Minute), TryingSince: before(20 * time.Minute), Error: "the server is\x1b[31m currently\nunable", ErrorAt: before(time.Minute)},
			{Resource: "gadgets.example.com", State: control.Gone, Since: before(time.Hour)},
		},
		Journal: control.Journal{
			Path: "/var/lib/tattler/journal.db", Used: 327_155_712, Limit: 1 << 30, Age: 30 * 24 * 3600,
			States: 600 << 20, ClockJump: 365 * 24 * 3600, ClockHold: 23 * 3600,
			Cut: before(3 * time.Hour), CutNamespace: "sh\x1bop", CutCluster: "east",
			First: 1, Last: 12345, Oldest: before(50 * time.Hour), Newest: before(time.Second), Recorded: 12345, Quiet: 8001, Removed: 12,
			Error: "append journal: disk full", ErrorAt: before(3 * time.Minute),
		},
		Sinks: []control.Sink{
			{Name: "everything", To: "file all.jsonl", State: "running", Delivered: 123456, Error: "an error that has passed"},
			{
				Name: "hook", To: "webhook example.com", State: "retrying", Behind: 512, LagSeconds: 192, Delivered: 899, Dead: 2, Lost: 7,
				Error: "503 Service Unavailable", ErrorAt: before(12 * time.Second), RetryAt: now.Add(8 * time.Second),
				FilterErrors: 1, FilterError: "no such key: spec",
				Stuck: &control.Stuck{ID: "abc", Subject: "/api/v1/namespaces/shop/configmaps/web", Since: before(3 * time.Hour), Attempts: 40, GiveUpAt: now.Add(21 * time.Hour)},
			},
			{Name: "später", State: "paused", Behind: 3, Held: 3},
		},
		Left: []string{"old"},
	}
	var b strings.Builder
	if err := Status(&b, &s, now, 0); err != nil {
		t.Fatal(err)
	}
	check(t, `
	tattler 1.2.3 records prod: process 4711, up 3h12m
	The API server cannot be reached for 12s: dial tcp 10.0.0.1:6443: connection
	refused

	Streams   2 live, 1 waiting, 1 forbidden, 1 gone; 43 objects
	          waiting widgets.example.com in shop with labels="app=x" fields="", for
	          60s, not live for 20m
	                    the server is\x1b[31m currently unable (60s ago)
	          forbidden secrets, for 3h
	                    secrets is forbidden: User
	                    "system:serviceaccount:tattler:tattler" cannot list resource
	                    "secrets" in API group "" at the cluster scope
	          gone gadgets.example.com, for 60m

	Sinks
	          NAME        STATE     BEHIND    LAG  DELIVERED  DEAD  LOST
	          everything  running        0     0s     123456     0     0
	          hook        retrying     512  3m12s        899     2     7
	            503 Service Unavailable (12s ago, tried again in 8s)
	            change abc (/api/v1/namespaces/shop/configmaps/web) has blocked it
	            for 3h, after 40 attempts; it becomes a dead letter in 21h: tattler
	            sinks skip hook abc makes it a dead letter now
	            its where failed on 1 change, delivered anyway: no such key: spec
	            2 dead letters: tattler sinks dead hook
	          später      paused         3     0s          -     0     -
	            holds 3 changes, to send later
	          old is no longer configured, but the journal keeps its cursor: tattler
	          sinks remove old

	Journal   /var/lib/tattler/journal.db
	          312 MiB of 1 GiB in use, changes are kept for 30d
	          the last states of watched objects take 600 MiB, half of that or more:
	          see docs/operations.md, Sizing
	          lack of space cuts the history short: changes of namespace sh\x1bop of
	          cluster east seen until 2026-03-01 09:00:00 (3h ago) were removed; see
	          docs/operations.md, Sizing
	          the clock is 365d ahead of the elapsed time: for another 23h, changes
	          are removed by age only if they are old by both
	          it holds changes seen from 2026-02-27 10:00:00 to 2026-03-01 11:59:59
	          12345 changes recorded since the start, 8001 of them quiet; 12 old
	          ones removed
	          it cannot be written since 2026-03-01 11:57:00: append journal: disk
	          full
	`, b.String())
}

// TestStatusOfOneThatStarts: little is known, and many streams are named in few lines.
func TestStatusOfOneThatStarts(t *testing.T) {
	now := utc(t)
	s := control.Status{Version: "devel", Cluster: "in-cluster", PID: 1, Started: now.Add(-time.Second)}
	for range maxRows + 2 {
		s.Streams = append(s.Streams, control.Stream{Resource: "pods", State: control.Listing, Objects: 1})
	}
	s.Streams = append(s.Streams, control.Stream{Resource: "nodes", State: control.Listing, Error: strings.Repeat("<html> ", 200)})
	var b strings.Builder
	if err := Status(&b, &s, now, 60); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"It has just started", "13 listing; 12 objects\n", "and 3 more that are listing", "none: changes are recorded only", "it holds no change yet", "0 B in use\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	s.Streams = s.Streams[maxRows+2:]
	b.Reset()
	if err := Status(&b, &s, now, 60); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "<html>"); n == 0 || n > maxError/7+1 || !strings.Contains(b.String(), "…") {
		t.Errorf("a page as an error: %d times in\n%s", n, b.String())
	}
	for line := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(line) > 61 {
			t.Errorf("too wide: %s", line)
		}
	}
	s.Streams, b = nil, strings.Builder{}
	if err := Status(&b, &s, now, 1); err != nil || !strings.Contains(b.String(), "none yet") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestStatusUnread: values of an unreadable journal are not shown as 0.
func TestStatusUnread(t *testing.T) {
	now := utc(t)
	s := control.Status{
		Version: "devel", Cluster: "prod", PID: 1, Started: now, Settled: true,
		Journal: control.Journal{Path: "/j.db", Recorded: 3, ReadError: "read journal /j.db: disk I/O error"},
		Sinks:   []control.Sink{{Name: "hook", To: "webhook", State: "running", Delivered: 17}},
	}
	var b strings.Builder
	if err := Status(&b, &s, now, 0); err != nil {
		t.Fatal(err)
	}
	check(t, `
	tattler devel records prod: process 1, up 0s

	Streams   none yet

	Sinks
	          NAME  STATE    BEHIND  LAG  DELIVERED  DEAD  LOST
	          hook  running       ?    ?         17     ?     0

	Journal   /j.db
	          it cannot be read: read journal /j.db: disk I/O error
	          3 changes recorded since the start, 0 of them quiet
	`, b.String())
}

func TestLetters(t *testing.T) {
	now := utc(t)
	var b strings.Builder
	err := Letters(&b, []sinkadmin.Letter{
		{ID: "abcdefghijklmnopqrstuvwxyz", Kept: true, Op: "updated", Resource: "deployments.apps", Namespace: "shop", Name: "web", Reason: "400 Bad Request", Attempts: 3, Since: now},
		{ID: "bcdefghijklmnopqrstuvwxyza", Kept: true, Op: "gap", Resource: "pods", Reason: "checksum differs", Since: now},
		{ID: "cdefghijklmnopqrstuvwxyzab", Reason: "400 Bad Request", Attempts: 1, Since: now},
	}, now, 0)
	if err != nil {
		t.Fatal(err)
	}
	check(t, `
	abcdefghijklmnopqrstuvwxyz  updated deployments.apps web in shop
	    after 3 attempts: 400 Bad Request (2026-03-01 12:00:00)
	bcdefghijklmnopqrstuvwxyza  gap pods
	    checksum differs (2026-03-01 12:00:00)
	cdefghijklmnopqrstuvwxyzab  the journal no longer has the change
	    after 1 attempt: 400 Bad Request (2026-03-01 12:00:00)
	`, b.String())
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 999 << 10: "999 KiB", 1000 << 10: "1.0 MiB", 1 << 20: "1 MiB",
		10 << 30: "10 GiB", 5000 << 40: "5000 TiB",
	} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
