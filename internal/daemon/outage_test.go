package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/informer/informertest"
	"github.com/tattler-dev/tattler/internal/capture"
	"github.com/tattler-dev/tattler/internal/deliver"
	"github.com/tattler-dev/tattler/internal/journal"
)

// TestOutages: an outage of the API server is an absence, from the last sign of life to the return, with the
// changes caught up; a reconnect is not.
func TestOutages(t *testing.T) {
	for _, tc := range []struct {
		why string
		// run causes an outage, and returns when it started and ended.
		run                 func(r *rig, d *running) (from, to time.Time)
		changes, incomplete int64
		none                bool
	}{
		{"a server that is down", func(r *rig, d *running) (from, to time.Time) {
			from = time.Now()
			r.server.SetDown(true)
			d.pass(12 * time.Second)
			r.put("a", "2")
			r.put("b", "1")
			r.server.SetDown(false)
			return from, time.Now()
		}, 2, 0, false},
		{"a server that lost its history meanwhile", func(r *rig, d *running) (from, to time.Time) {
			from = time.Now()
			r.server.SetDown(true)
			d.pass(12 * time.Second)
			r.put("a", "2")
			r.put("a", "3")
			r.server.Skip(10)
			r.server.Compact()
			r.server.SetDown(false)
			return from, time.Now()
		}, 1, 1, false},
		{"a server that is frozen, which is noticed when nothing came for long", func(r *rig, d *running) (from, to time.Time) {
			r.server.Bookmark() // from then on silence counts
			d.pass(time.Second)
			r.server.Bookmark()
			from = time.Now()
			d.pass(time.Second)
			r.server.Mute(true)
			thaw := r.server.Misbehave(informertest.Fault{On: informertest.Lists | informertest.Watches | informertest.StreamingLists, Effect: informertest.Hang})
			r.put("a", "2")
			d.pass(200 * time.Second)
			thaw()
			r.server.Mute(false)
			r.server.Cut()
			return from, time.Now()
		}, 1, 0, false},
		{"a connection that breaks", func(r *rig, d *running) (from, to time.Time) {
			r.server.Cut()
			r.put("a", "2")
			return
		}, 0, 0, true},
		{"a server that is away for a moment", func(r *rig, d *running) (from, to time.Time) {
			r.server.SetDown(true)
			d.pass(time.Second)
			r.put("a", "2")
			r.server.SetDown(false)
			return
		}, 0, 0, true},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, dir, got := newRig(t), t.TempDir(), &sent{}
				r.put("a", "1")
				d := r.daemon(dir, Options{Sinks: []deliver.Options{{Name: "x", Sink: got}}})
				d.pass(10 * time.Second)
				from, to := tc.run(r, d)
				d.pass(2 * time.Minute)
				d.stop()
				var want []event.Data
				if !tc.none {
					want = append(want, absent(from, to, tc.changes, tc.incomplete))
					want[0].Absence.Reason = event.AbsenceUnreachable
				}
				// The return is noticed when the next attempt succeeds.
				if d := cmp.Diff(want, got.absences, cmpopts.EquateApproxTime(40*time.Second), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("absences (-want +got):\n%s", d)
				}
				if tc.none || len(got.absences) != 1 {
					return
				}
				o := got.absences[0].Observed
				if d := o.After.Sub(from).Abs(); d > 2*time.Second { // what was on its way then was not seen
					t.Errorf("it starts at %v, %v from the last sign of life", o.After, d)
				}
				if o.At.Before(to) {
					t.Errorf("it ends at %v, before the server was back at %v", o.At, to)
				}
			})
		})
	}
}

// TestStopInOutage: if a daemon is stopped while the server is away, the absence starts with the outage.
func TestStopInOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir, got := newRig(t), t.TempDir(), &sent{}
		o := Options{Sinks: []deliver.Options{{Name: "x", Sink: got}}}
		r.put("a", "1")
		d := r.daemon(dir, o)
		d.pass(10 * time.Second)
		from := time.Now()
		r.server.SetDown(true)
		d.pass(30 * time.Second)
		d.stop()
		r.put("a", "2")
		r.server.SetDown(false)
		d = r.daemon(dir, o)
		d.pass(time.Minute)
		d.stop()
		if len(got.absences) != 1 || got.absences[0].Observed.After.Sub(from).Abs() > time.Second || got.absences[0].Absence.Changes != 1 {
			t.Errorf("since %v: %+v", from, got.absences)
		}
	})
}

// TestOutagesFollow: absences do not overlap, and each counts the changes after its own start.
func TestOutagesFollow(t *testing.T) {
	at := func(s float64) time.Time {
		return time.Unix(1_700_000_000, 0).Add(time.Duration(s * float64(time.Second)))
	}
	away := func(from, to float64) *capture.Away { return &capture.Away{Since: at(from), Until: at(to)} }
	batch := func(n int) *journal.Batch {
		b := &journal.Batch{Stream: journal.Stream{GroupResource: "pods"}}
		for range n {
			b.Rows = append(b.Rows, journal.Row{Meta: journal.Meta{Op: event.Updated, Since: at(0)}})
		}
		return b
	}
	o := outages{ended: at(5)}
	o.count(at(1), batch(7)) // of the absence before
	if row := o.observe(away(3, 12)); row != nil {
		t.Errorf("%+v", row)
	}
	o.count(at(12.5), batch(3))
	if row := o.due(at(13)); row != nil {
		t.Errorf("before everything is caught up with: %+v", row)
	}
	first := o.observe(away(11, 30)) // the next one, at once
	if first == nil || !first.Since.Equal(at(5)) || !first.At.Equal(at(12)) || first.Absence.Changes != 3 {
		t.Fatalf("%+v", first)
	}
	o.count(at(30.1), batch(2))
	o.count(at(31.5), batch(2))
	second := o.due(at(34))
	if second == nil || !second.Since.Equal(at(12)) || !second.At.Equal(at(30)) || second.Absence.Changes != 4 {
		t.Fatalf("%+v", second)
	}
	if row := o.observe(away(40, 44)); row != nil || o.due(at(60)) != nil {
		t.Error("4 s are not an absence")
	}
	o.count(at(61), batch(1))
	if o.due(at(200)); len(o.late) != 0 {
		t.Errorf("%d are remembered", len(o.late))
	}
}
