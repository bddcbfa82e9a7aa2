package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/cli/setup"
	"github.com/tattler-dev/tattler/internal/config"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestPlaces: each disk and file system has its level.
func TestPlaces(t *testing.T) {
	s := serve(t)
	for _, tc := range []struct {
		why    string
		place  journal.Place
		config string
		check  string
		want   Level
	}{
		{"a local disk", journal.Place{}, "", "journal.filesystem", OK},
		{"a network file system", journal.Place{FileSystem: "NFS"}, "", "journal.filesystem", Error},
		{"perhaps one", journal.Place{FileSystem: "FUSE", Perhaps: true}, "", "journal.filesystem", Warning},
		{"one that is allowed", journal.Place{FileSystem: "NFS"}, "network: true, ", "journal.filesystem", OK},
		{"a full disk", journal.Place{Known: true, Free: 1 << 20}, "", "journal.space", Error},
		{"less than the limit", journal.Place{Known: true, Free: 1 << 29}, "", "journal.space", Warning},
		{"the journal has taken the rest", journal.Place{Known: true, Free: 1 << 29, Used: 1 << 30}, "", "journal.space", Note},
		{"three times the limit", journal.Place{Known: true, Free: 3 << 30}, "", "journal.space", OK},
		{"no limit", journal.Place{Known: true, Free: 3 << 30}, "retain: {size: 0}, ", "journal.space", Note},
		{"a system that does not say", journal.Place{}, "", "journal.space", Note},
	} {
		o, _ := s.options(t, "")
		o.Setup.File = s.write(t, "other.yaml", "apiVersion: tattler.dev/v1alpha1\nkind: Config\njournal: {"+tc.config+"path: "+filepath.Join(s.dir, "journal.db")+"}\n")
		tc.place.Dir = s.dir
		o.host.place = func(string) (journal.Place, error) { return tc.place, nil }
		if l, title := level(t, s.examine(t, o), tc.check); l != tc.want {
			t.Errorf("%s: %s: %s", tc.why, l, title)
		}
	}
	o, _ := s.options(t, "")
	o.host.place = func(string) (journal.Place, error) { return journal.Place{}, fs.ErrPermission }
	if l, _ := level(t, s.examine(t, o), "journal.folder"); l != Error {
		t.Error(l)
	}
	o.host.place = func(string) (journal.Place, error) { return journal.Place{Dir: filepath.Join(s.dir, "none")}, nil }
	if l, _ := level(t, s.examine(t, o), "journal.writable"); l != Error {
		t.Error(l)
	}
}

func TestMemory(t *testing.T) {
	s := serve(t)
	for _, tc := range []struct {
		objects, limit int64
		want           Level
	}{
		{100, 0, OK}, {100, 512 << 20, OK}, {100, 80 << 20, Warning}, {100, 50 << 20, Error}, {100_000, 256 << 20, Warning}, {1_000_000, 1 << 30, Error}, {-1, 1 << 30, Note},
	} {
		o, _ := s.options(t, "")
		o.host.limit = func(int) (int64, string) { return tc.limit, "memory.max" }
		x := &examination{o: o, host: o.host, objects: tc.objects}
		x.memory()
		if l, title := level(t, x, "memory.limit"); l != tc.want {
			t.Errorf("%+v: %s: %s", tc, l, title)
		}
	}
}

// TestJournal examines one that grows, and one that is damaged.
func TestJournal(t *testing.T) {
	s := serve(t)
	path := filepath.Join(s.dir, "journal.db")
	// A change per minute for five hours, each with a version of the server.
	rows := []journal.Row{}
	now := time.Now()
	for i := range 300 {
		version := s.Put(core("configmaps"), "shop", "c0", map[string]any{"data": map[string]any{"a": strconv.Itoa(i)}})
		if i == 290 {
			s.Compact()
		}
		at := now.Add(time.Duration(i-300) * time.Minute)
		rows = append(rows, journal.Row{
			Meta: journal.Meta{
				Op: event.Updated, Kind: journal.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
				Namespace: "shop", Name: "c0", UID: "u", ResourceVersion: version, Time: at, At: at,
			},
			After: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c0","namespace":"shop","uid":"u","resourceVersion":%q},"data":{"a":"%d"}}`, version, i),
		})
	}
	j, err := journal.Open(t.Context(), path, journal.Options{Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	stream := journal.Stream{GroupResource: "configmaps"}
	if _, err := j.Append(t.Context(), []journal.Batch{{Stream: stream, Head: journal.Head{Version: "1", At: now}, Rows: rows}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	o, _ := s.options(t, "")
	x := s.examine(t, o)
	if l, title := level(t, x, "journal.growth"); l == Warning || l == Error || !strings.Contains(title, "300 changes in 4h, 0.017 a second") {
		t.Errorf("%s: %s", l, title)
	}
	// The version of minute 290 is ten minutes old, and the oldest that is left.
	if l, title := level(t, x, "server.history"); l != OK || !strings.HasPrefix(title, "the server's history reaches back at least 10m") || !strings.Contains(title, ", and less than 15m") {
		t.Errorf("%s: %s", l, title)
	}
	s.Compact()
	s.Put(core("configmaps"), "shop", "c1", nil)
	s.Compact()
	if l, title := level(t, s.examine(t, o), "server.history"); l != Warning {
		t.Errorf("%s: %s", l, title)
	}

	if err := os.WriteFile(path, []byte("not a journal at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, title := level(t, s.examine(t, o), "journal.health"); l != Error {
		t.Errorf("%s: %s", l, title)
	}
}

// TestDaemonFindings: what a running daemon reports becomes findings.
func TestDaemonFindings(t *testing.T) {
	x := &examination{status: &control.Status{
		Version: "1.2.3", Cluster: "prod", PID: 7, Away: "connection refused",
		MissingRights: []control.Lack{{Resource: "secrets", Verbs: []string{"list"}}, {Resource: "namespaces", Name: "shop", Verbs: []string{"get"}, Without: "less is known"}},
		Streams:       []control.Stream{{Resource: "pods", State: control.Live}, {Resource: "secrets", State: control.Forbidden}},
		Sinks:         []control.Sink{{Name: "hook", State: "retrying", Dead: 2, Lost: 3, Error: "503"}},
	}}
	x.daemon()
	x.delivery("hook")
	var got []string
	for _, f := range x.findings {
		got = append(got, string(f.Level)+" "+f.Check)
		if f.Level != OK && f.Action == "" {
			t.Errorf("it does not say what to do: %+v", f)
		}
	}
	want := "ok daemon.running|error daemon.away|error daemon.rights|warning daemon.rights|error daemon.streams|warning daemon.dead|warning daemon.lost|error sinks.delivery"
	if strings.Join(got, "|") != want {
		t.Errorf("%s", strings.Join(got, "|"))
	}
}

// TestMemoryLimit reads this process's own cgroup: whatever it is, it is not negative, and a missing process has none.
func TestMemoryLimit(t *testing.T) {
	if n, from := memoryLimit(os.Getpid()); n < 0 || (n == 0) != (from == "") {
		t.Errorf("%d from %q", n, from)
	}
	if n, _ := memoryLimit(1 << 30); n != 0 {
		t.Error(n)
	}
	if _, err := os.Stat("/proc/self"); errors.Is(err, fs.ErrNotExist) {
		if n, _ := memoryLimit(os.Getpid()); n != 0 {
			t.Error(n)
		}
	}
}

// TestGrowthOfSmallClusters checks a journal whose limit holds more years than a Duration.
func TestGrowthOfSmallClusters(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 42, 0, 0, time.UTC)
	week := journal.Size{First: 1, Last: 120, Oldest: now.Add(-7 * 24 * time.Hour), Newest: now}
	for _, tc := range []struct {
		used int64
		age  time.Duration
		want Level
	}{
		{215 << 10, 0, OK}, // more than a century
		{215 << 10, 365 * 24 * time.Hour, OK},
		{215 << 20, 0, Note}, // a year
		{215 << 20, 30 * 24 * time.Hour, OK},
		{215 << 20, 2 * 365 * 24 * time.Hour, Note},
	} {
		c := &setup.Setup{Config: &config.Config{}}
		c.Journal.Retain.Size, c.Journal.Retain.Age = 10<<30, tc.age
		x, size := begin(&Options{}, c, nil), week
		x.objects = 60
		size.Used = tc.used
		x.growth(&size)
		if l, _ := level(t, x, "journal.growth"); l != tc.want || strings.Contains(x.findings[0].Meaning, "-") {
			t.Errorf("%d bytes a week, at most %s: %+v", tc.used, tc.age, x.findings[0])
		}
	}
}
