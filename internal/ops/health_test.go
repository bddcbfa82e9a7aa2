package ops

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tattler-dev/tattler/internal/control"
)

func TestReady(t *testing.T) {
	now := began.Add(10 * time.Minute)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	stream := func(resource string, state control.StreamState, since time.Duration) control.Stream {
		return control.Stream{Resource: resource, State: state, Since: ago(since), Error: "geheim", Namespace: "geheim"}
	}
	trying := func(state control.StreamState, now, all time.Duration) control.Stream {
		st := stream("pods", state, now)
		st.TryingSince = ago(all)
		return st
	}
	recorded := func(s control.Stream) control.Stream { s.ResourceVersion = "7"; return s }
	settled := func(streams ...control.Stream) control.Status { return control.Status{Settled: true, Streams: streams} }
	var many []control.Stream
	var some []string
	for i := range 25 {
		many = append(many, stream(fmt.Sprintf("kind%02d", i), control.Waiting, 2*time.Minute))
		if i < maxKinds {
			some = append(some, fmt.Sprintf("kind%02d: waiting for 2m0s", i))
		}
	}
	for _, tc := range []struct {
		why  string
		s    control.Status
		want []string
	}{
		{"all is well", settled(stream("pods", control.Live, time.Hour)), nil},
		{"nothing is watched, and that is known", settled(), nil},
		{"the start: the streams it waits for", control.Status{Streams: []control.Stream{
			stream("pods", control.Live, time.Second), stream("secrets", control.Forbidden, time.Second),
			stream("configmaps", control.Listing, 3*time.Second), stream("leases.coordination.k8s.io", control.Waiting, 2*time.Second),
		}}, []string{"starting: not every kind is live yet", "configmaps: listing for 3s", "leases.coordination.k8s.io: waiting for 2s"}},
		{"kinds that were never allowed, and gone ones, do not count", settled(stream("secrets", control.Forbidden, time.Hour), stream("widgets", control.Gone, time.Hour)), nil},
		{"a kind whose rights were taken away", settled(recorded(stream("secrets", control.Forbidden, 2*time.Minute))), []string{"secrets: forbidden for 2m0s"}},
		{"an API server that starts forbids everything for a moment", settled(recorded(stream("secrets", control.Forbidden, time.Minute))), nil},
		{"a list of a huge kind is on its way", settled(trying(control.Listing, 10*time.Minute, 10*time.Minute)), nil},
		{"a list that does not end", settled(trying(control.Listing, 11*time.Minute, 11*time.Minute)), []string{"pods: listing for 11m0s"}},
		{"it fails and lists in turns: it lists now", settled(trying(control.Listing, 3*time.Second, 11*time.Minute)),
			[]string{"pods: listing for 3s, not live for 11m0s"}},
		{"and now it waits", settled(trying(control.Waiting, 3*time.Second, 11*time.Minute)), []string{"pods: waiting for 3s, not live for 11m0s"}},
		{"it has just started to", settled(trying(control.Waiting, 3*time.Second, 9*time.Minute)), nil},
		{"the worst one of a kind is shown", settled(trying(control.Waiting, 3*time.Second, 20*time.Minute), trying(control.Listing, time.Minute, 11*time.Minute)),
			[]string{"pods: waiting for 3s, not live for 20m0s (2 of 2 streams)"}},
		{"a moment is nothing", settled(stream("pods", control.Waiting, time.Minute)), nil},
		{"a dead stream", settled(stream("pods", control.Waiting, 61*time.Second), stream("nodes", control.Live, time.Hour)), []string{"pods: waiting for 1m1s"}},
		{"streams of a kind are summed up: no namespace is named", settled(
			stream("pods", control.Waiting, 2*time.Minute), stream("pods", control.Live, time.Hour), stream("pods", control.Waiting, 3*time.Minute),
		), []string{"pods: waiting for 3m0s (2 of 3 streams)"}},
		{"the one that went first comes first", settled(stream("a", control.Waiting, 2*time.Minute), stream("b", control.Waiting, 3*time.Minute)),
			[]string{"b: waiting for 3m0s", "a: waiting for 2m0s"}},
		{"a short answer", settled(many...), append(some, "and 5 more kinds")},
		{"an unknown time is long ago", settled(control.Stream{Resource: "pods", State: control.Waiting}), []string{"pods: waiting"}},
		{"the journal", control.Status{Settled: true, Journal: control.Journal{Error: "/geheim: no space left", ErrorAt: ago(90 * time.Second)}},
			[]string{"the journal cannot be written for 1m30s"}},
		{"the journal, otherwise", control.Status{Settled: true, Journal: control.Journal{ReadError: "/geheim: malformed"}}, []string{"the journal cannot be read"}},
		{"the API server is away", control.Status{Settled: true, Away: "geheim", AwaySince: ago(2 * time.Minute)}, []string{"the API server cannot be reached for 2m0s"}},
		{"a start waits for it", control.Status{Away: "geheim", AwaySince: ago(5 * time.Second)}, []string{"starting: not every kind is live yet", "the API server cannot be reached for 5s"}},
		{"it restarts", control.Status{Settled: true, Away: "geheim", AwaySince: ago(30 * time.Second)}, nil},
		{"the journal is being opened: nothing else is known", control.Status{Starting: "opening the journal", Started: ago(150 * time.Second)},
			[]string{"the start: opening the journal for 2m30s"}},
		{"receivers are not ours", control.Status{Settled: true, Sinks: []control.Sink{{Name: "a", State: "retrying", Dead: 5, LagSeconds: 1e6}}}, nil},
	} {
		got := unready(&tc.s, now)
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.why, d)
		}
		if strings.Contains(strings.Join(got, "\n"), "geheim") {
			t.Errorf("%s: %q", tc.why, got)
		}
	}
}

// TestReadyz answers with the reasons, one per line.
func TestReadyz(t *testing.T) {
	if code, body := get(t, Options{Status: answering(control.Status{Settled: true})}, "/readyz"); code != 200 || body != "ok\n" {
		t.Errorf("%d: %q", code, body)
	}
	code, body := get(t, Options{Status: answering(control.Status{Journal: control.Journal{Error: "x"}})}, "/readyz?verbose")
	if code != 503 || body != "starting: not every kind is live yet\nthe journal cannot be written\n" {
		t.Errorf("%d: %q", code, body)
	}
}

// TestHealthzAtTheStart: however long the start takes, a restart would not help; the answer shows the current
// step.
func TestHealthzAtTheStart(t *testing.T) {
	s := control.Status{Started: time.Now().Add(-time.Hour), Starting: "opening the journal"}
	if code, body := get(t, Options{Status: answering(s)}, "/healthz"); code != 200 || body != "ok: opening the journal\n" {
		t.Errorf("%d: %q", code, body)
	}
}

// TestHealthz only fails if a restart would help: full's daemon has almost every other problem.
func TestHealthz(t *testing.T) {
	for _, tc := range []struct {
		why   string
		write time.Duration // under way
		code  int
		body  string
	}{
		{"nothing is written", 0, 200, "ok\n"},
		{"the disk is busy", time.Minute, 200, "ok\n"},
		{"a write hangs", 6 * time.Minute, 503, "one write to the journal has not ended for 6m0s\n"},
	} {
		synctest.Test(t, func(t *testing.T) { // so that the clock stands still
			s := full()
			if tc.write > 0 {
				s.Journal.WritingSince = time.Now().Add(-tc.write)
			}
			if code, body := ask(handlerOf(t.Context(), Options{Status: answering(s)}), "GET", "/healthz", "localhost"); code != tc.code || body != tc.body {
				t.Errorf("%s: %d: %q", tc.why, code, body)
			}
		})
	}
}
