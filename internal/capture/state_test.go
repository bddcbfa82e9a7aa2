package capture

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tattler-dev/tattler/informer"
)

func TestOutage(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	refused := errors.New("connection refused")
	a, b, extension := outageKey{resource: "a"}, outageKey{resource: "b"}, outageKey{resource: "c.example.com"}
	type in struct {
		at    float64
		key   outageKey
		state informer.State
		err   error
		gap   bool
		apart bool // the gap is separate
	}
	for _, tt := range []struct {
		why  string
		in   []in
		till float64
		want []Away
	}{
		{
			"one absence that cuts two streams is one line at its start and one at its end",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: refused},
				{at: 0.5, key: b, state: informer.Waiting, err: refused},
				{at: 8, key: a, state: informer.Listing},
				{at: 8, key: a, gap: true},
				{at: 9, key: a, state: informer.Watching},
				{at: 10, key: b, state: informer.Watching},
			},
			12,
			[]Away{
				{Since: at(0), Err: refused, Streams: 2},
				{Since: at(0), Until: at(10), Err: refused, Streams: 2, Relisted: 1},
			},
		},
		{
			"a short one has no line at its start",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: refused},
				{at: 0.5, key: a, state: informer.Watching},
			},
			3,
			[]Away{{Since: at(0), Until: at(0.5), Err: refused, Streams: 1}},
		},
		{
			"a stream that comes back while another goes does not end it",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: refused},
				{at: 2, key: a, state: informer.Watching},
				{at: 2.5, key: b, state: informer.Waiting, err: refused},
				{at: 5, key: b, state: informer.Watching},
			},
			7,
			[]Away{
				{Since: at(0), Err: refused, Streams: 1},
				{Since: at(0), Until: at(5), Err: refused, Streams: 2},
			},
		},
		{
			"a kind that is no longer served does not keep it open",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: refused},
				{at: 0, key: b, state: informer.Waiting, err: refused},
				{at: 1, key: a, state: informer.Watching},
				{at: 1, key: b, state: informer.Parked},
			},
			3,
			[]Away{{Since: at(0), Until: at(1), Err: refused, Streams: 2}},
		},
		{
			"a server that answers 403 is not away",
			[]in{{at: 0, key: a, state: informer.Waiting, err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)}},
			3,
			nil,
		},
		{
			"an extension that is down does not begin one, and does not keep it open",
			[]in{
				{at: 0, key: extension, state: informer.Waiting, err: apierrors.NewServiceUnavailable("")},
				{at: 3, key: a, state: informer.Waiting, err: refused},
				{at: 3, key: extension, state: informer.Waiting, err: &net.OpError{Op: "dial", Err: refused}},
				{at: 5, key: a, state: informer.Watching},
				{at: 6, key: extension, state: informer.Waiting, err: apierrors.NewServiceUnavailable("")},
			},
			9,
			[]Away{
				{Since: at(3), Err: refused, Streams: 2},
				{Since: at(3), Until: at(6), Err: refused, Streams: 2},
			},
		},
		{
			"why it does not come back says more than how it broke",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: io.ErrUnexpectedEOF},
				{at: 0.5, key: a, state: informer.Waiting, err: refused},
			},
			2,
			[]Away{{Since: at(0), Err: refused, Streams: 1}},
		},
		{
			"one that refuses after it came back has come back",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: refused},
				{at: 1, key: a, state: informer.Waiting, err: apierrors.NewForbidden(schema.GroupResource{}, "", nil)},
			},
			3,
			[]Away{{Since: at(0), Until: at(1), Err: refused, Streams: 1}},
		},
		{
			"a gap of a stream that was not cut has another cause",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: refused},
				{at: 0.5, key: b, gap: true, apart: true},
				{at: 1, key: a, state: informer.Watching},
			},
			3,
			[]Away{{Since: at(0), Until: at(1), Err: refused, Streams: 1}},
		},
		{
			"a server that answers 503 while it starts is",
			[]in{
				{at: 0, key: a, state: informer.Waiting, err: apierrors.NewServiceUnavailable("starting")},
				{at: 1, key: a, state: informer.Watching},
			},
			3,
			[]Away{{Since: at(0), Until: at(1), Streams: 1}},
		},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var o outage
			var got []Away
			next := 0
			for s := 0.0; s <= tt.till; s += 0.25 {
				for ; next < len(tt.in) && tt.in[next].at <= s; next++ {
					i := tt.in[next]
					if i.gap {
						if o.gap(i.key) == i.apart {
							t.Errorf("the gap is accounted for: %v", i.apart)
						}
						continue
					}
					o.observe(at(i.at), i.key, informer.Status{State: i.state, Err: i.err, Synced: true, Since: start.Add(-time.Hour)})
				}
				if away := o.tick(at(s)); away != nil {
					got = append(got, *away)
				}
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v, want %+v", got, tt.want)
			}
			for i, w := range tt.want {
				if w.Err == nil || errors.Is(got[i].Err, w.Err) {
					w.Err = got[i].Err
				}
				if got[i] != w {
					t.Errorf("got %+v, want %+v", got[i], w)
				}
			}
		})
	}
}

// TestSilence: an API server that freezes keeps its connections, which are closed only later. The absence
// counts from the newest sign of life of all streams.
func TestSilence(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 42, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	a, b := outageKey{resource: "configmaps"}, outageKey{resource: "pods"}
	for _, tt := range []struct {
		why    string
		err    error
		silent bool
		since  time.Time
		other  time.Time // the last sign of life of a stream that has not been cut
	}{
		{"HTTP/2's ping was not answered", errors.New("http2: client connection lost"), true, at(12), at(2)},
		{"the watchdog gave up", errors.New("the watch fell silent"), true, at(12), at(2)},
		{"another stream came later", errors.New("the watch fell silent"), true, at(25), at(25)},
		{"another stream is live again", errors.New("the watch fell silent"), true, at(12), at(61)},
		{"the peer closed: it was alive until then", io.ErrUnexpectedEOF, false, at(60), at(25)},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var o outage
			o.observe(at(60), a, informer.Status{State: informer.Waiting, Err: tt.err, Synced: true, LastCurrent: at(5)})
			o.observe(at(60), b, informer.Status{State: informer.Waiting, Err: tt.err, Synced: true, LastCurrent: at(12)})
			if o.unsure() {
				o.alive(tt.other)
			}
			o.observe(at(63), a, informer.Status{State: informer.Watching, Synced: true, LastCurrent: at(63)})
			o.observe(at(63), b, informer.Status{State: informer.Watching, Synced: true, LastCurrent: at(63)})
			got := o.tick(at(64))
			if got == nil || got.Silent != tt.silent || !got.Since.Equal(tt.since) || !got.Until.Equal(at(63)) {
				t.Errorf("got %+v, want silent %v since %v until %v", got, tt.silent, tt.since, at(63))
			}
		})
	}
}

func TestGapWithoutOutageStandsAlone(t *testing.T) {
	var o outage
	if o.gap(outageKey{resource: "a"}) {
		t.Error("a gap is accounted for by no absence")
	}
}

// TestNetChanges: only gaps that an outage of the server explains may be combined with it.
func TestNetChanges(t *testing.T) {
	for reason, want := range map[string]bool{
		informer.ReasonExpired: true,
		informer.ReasonExpired + ", " + informer.ReasonHistoryChanged: true,
		informer.ReasonExpired + ", " + informer.ReasonTransform:      false,
		informer.ReasonGone:         false,
		informer.ReasonSlowConsumer: false,
		informer.ReasonUnreadable:   false,
	} {
		if netChanges(reason) != want {
			t.Errorf("%q: %v", reason, !want)
		}
	}
}

func TestExisted(t *testing.T) {
	obj := func(created string, writes ...string) map[string]any {
		var fields []any
		for _, w := range writes {
			fields = append(fields, map[string]any{"time": w})
		}
		return map[string]any{"metadata": map[string]any{"creationTimestamp": created, "managedFields": fields}}
	}
	const t0, t1 = "2026-11-21T10:00:00Z", "2026-11-21T10:00:05Z"
	look := time.Date(2026, 11, 21, 10, 0, 3, 500, time.UTC)
	for _, tt := range []struct {
		why  string
		obj  map[string]any
		last time.Time
		want bool
	}{
		{"created and not written since", obj(t0, t0), time.Time{}, false},
		{"written after it was created", obj(t0, t1), time.Time{}, true},
		{"written by two within a second", obj(t0, t0, t0), time.Time{}, true},
		{"an entry without a time says nothing", obj(t0, ""), time.Time{}, false},
		{"found by a list, older than the last look", obj(t0, t0), look, true},
		{"found by a list, younger than the last look", obj(t1, t1), look, false},
	} {
		if got := existed(tt.obj, tt.last); got != tt.want {
			t.Errorf("%s: %v", tt.why, got)
		}
	}
}
