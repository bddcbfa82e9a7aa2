package daemon

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
	"github.com/tattler-dev/tattler/internal/selection"
)

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		r.put("a", "1")
		began := time.Now()
		d := r.daemon(dir, Options{
			Retention: journal.Retention{Age: time.Hour, Size: 1 << 30},
			Sinks:     []deliver.Options{{Name: "up", Sink: &failing{}}, {Name: "down", Sink: &failing{down: true}, Retry: deliver.Retry{GiveUp: time.Hour}}},
		})
		r.put("a", "2")
		r.put("b", "1")
		d.pass(10 * time.Second)
		s := d.status()
		stuck := s.Sinks[1].Stuck
		if stuck == nil || stuck.ID == "" || stuck.Attempts < 2 {
			t.Fatalf("the blocking change: %+v", stuck)
		}
		s.RightsError = "" // the server has no reviews
		want := control.Status{
			Version: s.Version, Cluster: "test", PID: os.Getpid(), Started: began, Settled: true,
			Streams: []control.Stream{{
				Resource: "configmaps", Version: "v1", State: control.Live, Objects: 2, ResourceVersion: s.Streams[0].ResourceVersion,
				Since: began, Lists: 1, Watches: 1,
			}},
			Journal: control.Journal{
				Path: filepath.Join(dir, "journal.db"), Limit: 1 << 30, Age: 3600, First: 1, Last: 3, Oldest: began, Newest: began,
				Recorded: 3, Commits: s.Journal.Commits,
			},
			Sinks: []control.Sink{
				{Name: "up", To: "sent", State: "running", Cursor: 3, Delivered: 2, Attempts: s.Sinks[0].Attempts},
				{
					Name: "down", To: "sent", State: "retrying", Cursor: 1, Behind: 2, LagSeconds: 10, Attempts: s.Sinks[1].Attempts,
					Failures: s.Sinks[1].Failures, Error: "down", ErrorAt: s.Sinks[1].ErrorAt, RetryAt: s.Sinks[1].RetryAt,
					Stuck: &control.Stuck{ID: stuck.ID, Subject: "/api/v1/namespaces/shop/configmaps/a", Since: began, Attempts: stuck.Attempts, GiveUpAt: began.Add(time.Hour)},
				},
			},
			Orders: control.NewAudit(nil, nil).Counts(),
		}
		if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(control.Journal{}, "Used", "Free", "Log"), cmpopts.EquateApproxTime(time.Second)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s.Version == "" || s.Streams[0].ResourceVersion == "" || s.Journal.Used < 4096 || s.Journal.Commits < 2 || s.Sinks[1].Failures < 2 || !s.Sinks[1].RetryAt.After(time.Now()) {
			t.Errorf("%+v", s)
		}

		r.server.SetDown(true)
		d.pass(10 * time.Second)
		if s := d.status(); s.Away == "" || time.Since(s.AwaySince) < 5*time.Second || s.Streams[0].State != control.Waiting || s.Streams[0].Error == "" || s.Streams[0].ErrorAt.IsZero() || s.Streams[0].Passed() || s.Streams[0].TryingSince.IsZero() || !s.Settled {
			t.Errorf("while the server is away: %+v", s)
		}
		r.server.SetDown(false)
		d.pass(30 * time.Second)
		if s := d.status(); s.Away != "" || s.Streams[0].State != control.Live || !s.Streams[0].Passed() || !s.Streams[0].ErrorAt.Before(s.Streams[0].Since) {
			t.Errorf("once it is back: %+v", s)
		}
		d.stop()
	})
}

// TestStatusUnwritten makes the journal fail: that is reported, and so is that nothing is watched meanwhile.
func TestStatusUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		d, err := open(t.Context(), Options{
			Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
			Journal: filepath.Join(dir, "journal.db"), Key: filepath.Join(dir, "key"), listen: nowhere,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.capture(ctx) }()
		synctest.Wait()
		before, err := d.status(t.Context())
		if err != nil || before.Journal.Error != "" || len(before.Streams) != 1 {
			t.Errorf("%+v, %v", before, err)
		}
		if err := d.journal.Close(); err != nil {
			t.Fatal(err)
		}
		r.put("a", "1")
		synctest.Wait()
		s, err := d.status(t.Context())
		if err != nil || s.Journal.Failures != 1 || s.Journal.Error == "" || s.Journal.ErrorAt.IsZero() ||
			s.Streams[0].State != control.Waiting || !strings.Contains(s.Streams[0].Error, journal.ErrClosed.Error()) || s.Streams[0].ErrorAt.IsZero() {
			t.Errorf("%+v, %v", s, err)
		}
		if err := d.reader.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := d.status(t.Context()); err != nil || s.Journal.ReadError == "" || len(s.Streams) != 1 {
			t.Errorf("without a journal to read: %+v, %v", s, err)
		}
		gone, stop := context.WithCancel(t.Context())
		stop()
		if _, err := d.status(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller has gone: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStatusUnread: an unreadable journal is not a failed write.
func TestStatusUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := open(t.Context(), Options{
			Config: newRig(t).server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
			Journal: filepath.Join(t.TempDir(), "journal.db"), Key: filepath.Join(t.TempDir(), "key"), listen: nowhere,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.close(); err != nil {
				t.Error(err)
			}
		}()
		if err := d.reader.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := d.status(t.Context()); err != nil || s.Journal.ReadError == "" || s.Journal.Error != "" || !s.Journal.ErrorAt.IsZero() {
			t.Errorf("%+v, %v", s.Journal, err)
		}
	})
}

// TestStateOfSeveralWatchers: counters never decrease, and past errors are not reported.
func TestStateOfSeveralWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var s state
		run := func() control.Stream {
			w, err := capture.New(capture.Options{Scopes: []capture.Scope{{Types: []string{"configmaps"}}}, Config: r.server.Config(), Redactor: r.redactor, Quiet: r.rules})
			if err != nil {
				t.Fatal(err)
			}
			s.watches(w, r.server.Config())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			go func() {
				for m := range w.Messages() {
					s.observe(m)
				}
			}()
			<-time.After(time.Second)
			synctest.Wait()
			var st control.Status
			if s.fill(&st); len(st.Streams) != 1 || !st.Settled || s.watching() != w {
				t.Errorf("%+v", st)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			return st.Streams[0]
		}
		first := run()
		s.ended(errors.New("disk full"), nil)
		if s.watching() != nil {
			t.Error("one that has ended is not watching")
		}
		if second := run(); second.Lists != 2*first.Lists || second.Watches != 2*first.Watches || first.Watches == 0 || second.Error != "" {
			t.Errorf("%+v after %+v", second, first)
		}
		var st control.Status
		s.ended(nil, errors.New("no answer"))
		if s.fill(&st); st.Away != "no answer" || st.AwaySince.IsZero() || st.Streams[0].Error != "no answer" {
			t.Errorf("%+v", st)
		}
		s.wrote(journal.Appended{}, errors.New("disk full"))
		s.wrote(journal.Appended{Rows: 5, Quiet: 2, Duplicates: 1}, nil)
		st = control.Status{}
		want := control.Journal{Recorded: 5, Quiet: 2, Duplicates: 1, Commits: 1, Failures: 1}
		if s.fill(&st); st.Journal != want {
			t.Errorf("%+v", st.Journal)
		}
	})
}

// TestShrink checks that a sink that loses changes is named, and another one is not.
func TestShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		d := r.daemon(dir, Options{
			Retention: journal.Retention{Age: time.Hour},
			Sinks: []deliver.Options{
				{Name: "up", Sink: &failing{}}, {Name: "down", Sink: &failing{down: true}}, {Name: "still", Sink: &failing{}, Paused: true},
			},
		})
		r.put("a", "1")
		r.put("a", "2")
		d.pass(2 * time.Hour)
		check := func(lost, removed int64) {
			t.Helper()
			s := d.status()
			if s.Sinks[0].Lost != 0 || s.Sinks[1].Lost != lost || s.Sinks[2].Lost != lost || s.Journal.Removed != removed {
				t.Errorf("lost %d, %d and %d, removed %d; want 0, %d, %d, %d",
					s.Sinks[0].Lost, s.Sinks[1].Lost, s.Sinks[2].Lost, s.Journal.Removed, lost, lost, removed)
			}
		}
		check(2, 2)
		d.pass(2 * time.Hour)
		check(2, 2) // lost changes are logged once
		r.put("a", "3")
		d.pass(2 * time.Hour)
		check(3, 3)
		if n := strings.Count(d.log.String(), "too far behind"); n != 4 || strings.Contains(d.log.String(), "sink=up lost") {
			t.Errorf("said: %s", d.log.String())
		}
		d.stop()
	})
}

// TestLost: changes that a sink would not have received are not lost to it, and lost ones stay counted after
// the daemon's end.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		r.put("a", "1")
		o := Options{Retention: journal.Retention{Age: time.Hour}, Sinks: []deliver.Options{
			{Name: "changes", Sink: &failing{}, Paused: true}, {Name: "all", Sink: &failing{}, Paused: true, Snapshots: true},
		}}
		check := func(d *running, removed, changes, all int64) {
			t.Helper()
			if s := d.status(); s.Journal.Removed != removed || s.Sinks[0].Lost != changes || s.Sinks[1].Lost != all {
				t.Errorf("removed %d, lost %d and %d; want %d, %d and %d", s.Journal.Removed, s.Sinks[0].Lost, s.Sinks[1].Lost, removed, changes, all)
			}
		}
		d := r.daemon(dir, o)
		r.put("a", "1") // quiet: only its version
		d.pass(2 * time.Hour)
		check(d, 2, 0, 1)
		if said := d.log.String(); strings.Contains(said, "sink=changes lost") || strings.Count(said, "sink=all lost=1") != 1 {
			t.Errorf("said: %s", said)
		}
		r.put("a", "2")
		d.pass(2 * time.Hour)
		check(d, 3, 1, 2)
		d.stop()
		d = r.daemon(dir, o)
		check(d, 0, 1, 2)
		d.stop()
	})
}

var (
	secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// streams names the streams that a journal keeps; it must not be open.
func streams(t *testing.T, path string) (names []string) {
	t.Helper()
	j, err := journal.Open(t.Context(), path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	all, err := j.Streams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		names = append(names, strings.Join(strings.Fields(s.Stream.GroupResource+" "+s.Stream.Namespace+" "+s.Stream.Selection), " "))
	}
	return names
}

// TestForgetStreams: a stream that is no longer selected is dropped, once that is certain.
func TestForgetStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		r.server.Serve(secrets, "Secret")
		r.server.Serve(widgets, "Widget")
		r.put("a", "1")
		run := func(long time.Duration, scopes ...capture.Scope) string {
			t.Helper()
			d := r.daemon(dir, Options{Scopes: scopes})
			d.pass(long)
			d.stop()
			return d.log.String()
		}
		check := func(why string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, streams(t, filepath.Join(dir, "journal.db"))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", why, diff)
			}
		}
		run(10*time.Minute, capture.Scope{Types: []string{"configmaps,secrets,widgets"}})
		check("all that is configured", "configmaps", "secrets", "widgets.example.com")

		some := capture.Scope{Types: []string{"configmaps"}, Namespaces: selection.Namespaces{Include: []string{"shop"}}}
		run(10*time.Second, some)
		check("not at once", "configmaps", "configmaps shop", "secrets", "widgets.example.com")
		r.server.Unserve(widgets)
		log := run(10*time.Minute, some)
		check("kinds that nothing selects, served or not", "configmaps shop")
		if n := strings.Count(log, "no longer watched with this selection"); n != 3 {
			t.Errorf("said: %s", log)
		}
		r.server.Serve(widgets, "Widget")
		run(10*time.Minute, some, capture.Scope{Types: []string{"widgets"}, Labels: "a=b"})
		check("it came back under another selection", "configmaps shop", `widgets.example.com labels="a=b" fields=""`)
	})
}

// TestServe: an error of Options.Serve ends the daemon, and so does a socket that cannot be opened.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := newRig(t), t.TempDir()
		o := Options{
			Config: r.server.Config(), Cluster: "test", Scopes: []capture.Scope{{Types: []string{"configmaps"}}},
			Journal: filepath.Join(dir, "journal.db"), Key: filepath.Join(dir, "key"), listen: nowhere,
		}
		taken := errors.New("address in use")
		o.Serve = func(context.Context, func(context.Context) (control.Status, error)) error { return taken }
		if err := Run(t.Context(), o); !errors.Is(err, taken) {
			t.Errorf("served elsewhere: %v", err)
		}
		o.Serve = nil
		o.listen = func(string) (net.Listener, error) { return nil, taken }
		if err := Run(t.Context(), o); !errors.Is(err, taken) {
			t.Errorf("the socket: %v", err)
		}
		o.listen = func(string) (net.Listener, error) {
			l, _ := nowhere("")
			return l, l.Close()
		}
		if err := Run(t.Context(), o); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a socket that breaks: %v", err)
		}
	})
}

// TestHistoryShort: the log says at most once an hour whose changes the size limit removes, and the status says since when the
// history is whole.
func TestHistoryShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		d := r.daemon(t.TempDir(), Options{Retention: journal.Retention{Size: 512 << 10, Age: 30 * 24 * time.Hour}})
		if s := d.status(); !s.Journal.Cut.IsZero() || s.Journal.Short(time.Now()) {
			t.Errorf("before anything was removed: %+v", s.Journal)
		}
		for range 100 {
			for range 12 {
				noise := make([]byte, 6000)
				_, _ = rand.Read(noise)
				r.put("web", base64.StdEncoding.EncodeToString(noise))
			}
			d.pass(time.Minute)
		}
		s := d.status()
		if !s.Journal.Short(time.Now()) || s.Journal.Short(time.Now().Add(8*24*time.Hour)) || s.Journal.CutNamespace != "shop" || s.Journal.Removed == 0 || s.Journal.Used > 640<<10 {
			t.Errorf("%+v", s.Journal)
		}
		if n := strings.Count(d.log.String(), `level=WARN msg="the journal exceeded journal.retain.size`); n != 2 || !strings.Contains(d.log.String(), "namespace=shop removed=") {
			t.Errorf("logged %d times:\n%s", n, d.log.String())
		}
		d.stop()
	})
}

// TestCrowded: states that take half of the journal's limit are logged once, and reported.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 40 {
			r.put(fmt.Sprint("web-", i), rand.Text()+strings.Repeat(rand.Text(), 40))
		}
		d := r.daemon(t.TempDir(), Options{Retention: journal.Retention{Size: 16 << 10}})
		if s := d.status(); s.Journal.States != 0 || s.Journal.Crowded() {
			t.Errorf("before it was measured: %+v", s.Journal)
		}
		d.pass(25 * time.Minute)
		if s := d.status(); !s.Journal.Crowded() || s.Journal.States < 8<<10 || s.Journal.States > 64<<10 {
			t.Errorf("%+v", s.Journal)
		}
		if n := strings.Count(d.log.String(), "take half of journal.retain.size or more"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, d.log.String())
		}
		d.stop()
	})
}
