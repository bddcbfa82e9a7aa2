package reflector

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errTest = errors.New("test")

func TestStep(t *testing.T) {
	timing := DefaultTiming
	first := timing.First
	for _, c := range []struct {
		name string
		m    Machine
		in   Input
		want Machine
		eff  Effects
	}{
		{"a stream begins with a list", Machine{}, Input{Event: Begin},
			Machine{State: Listing}, Effects{Do: DoList}},
		{"an accepted list ends an earlier failure", Machine{State: Listing, Err: errTest, Attempts: 3}, Input{Event: Accepted},
			Machine{State: Listing, Attempts: 3}, Effects{}},
		{"a complete list is watched, and failures are forgotten", Machine{State: Listing, Attempts: 3, missing: 1}, Input{Event: Listed},
			Machine{State: Watching, Synced: true}, Effects{Do: DoWatch}},
		{"an expired token begins the list again, in one page, without a gap", Machine{State: Listing}, Input{Event: Expired},
			Machine{State: Listing, Unpaged: true}, Effects{Do: DoList}},
		{"410 to a list without a token makes no sense: a failure", Machine{State: Listing, Unpaged: true}, Input{Event: Expired, Err: errTest},
			Machine{State: Waiting, Unpaged: true, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
		{"a list from the past is another history", Machine{State: Listing, Synced: true}, Input{Event: Rewritten},
			Machine{State: Listing, Synced: true, relists: 1}, Effects{NewEpoch: true, Gap: ReasonRewritten, Do: DoList}},
		{"histories that alternate: not in a loop", Machine{State: Listing, Synced: true, relists: 2}, Input{Event: Rewritten, Err: errTest},
			Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, rewritten: true, next: DoList}, Effects{Gap: ReasonRewritten, Do: DoSleep, Delay: first}},
		{"the epoch begins with the list", Machine{State: Waiting, Synced: true, rewritten: true, next: DoList}, Input{Event: Timer},
			Machine{State: Listing, Synced: true}, Effects{NewEpoch: true, Do: DoList}},
		{"a list that fails before the first sync is tried again", Machine{State: Listing}, Input{Event: Failed, Err: errTest},
			Machine{State: Waiting, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
		{"a relist that fails is a relist again: the version is gone", Machine{State: Listing, Synced: true}, Input{Event: Failed, Err: errTest},
			Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
		{"an accepted watch ends an earlier failure, but may fail again at once", Machine{State: Watching, Err: errTest, Attempts: 3, missing: 1}, Input{Event: Accepted},
			Machine{State: Watching, Attempts: 3}, Effects{}},
		{"a frame proves that the watch works", Machine{State: Watching, Attempts: 3, relists: 1, garbled: 2}, Input{Event: Progress},
			Machine{State: Watching}, Effects{}},
		{"a clean close is no failure", Machine{State: Watching}, Input{Event: Closed},
			Machine{State: Watching}, Effects{Do: DoWatch}},
		{"a watch without a frame may be one at a version from the future", Machine{State: Watching}, Input{Event: Closed, Silent: true},
			Machine{State: Probing}, Effects{Do: DoProbe}},
		{"one short watch is nothing yet", Machine{State: Watching}, Input{Event: Closed, Short: true},
			Machine{State: Watching, short: 1}, Effects{Do: DoWatch}},
		{"two are a server to be careful with", Machine{State: Watching, short: 1}, Input{Event: Closed, Short: true, Err: errTest},
			Machine{State: Waiting, Err: errTest, Attempts: 1, short: 2, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
		{"a long watch ends the suspicion", Machine{State: Watching, short: 5, Attempts: 5}, Input{Event: Closed},
			Machine{State: Watching}, Effects{Do: DoWatch}},
		{"410: relist at once", Machine{State: Watching, Synced: true}, Input{Event: Expired},
			Machine{State: Listing, Synced: true, relists: 1}, Effects{Gap: ReasonExpired, Do: DoList}},
		{"410 after every relist: not in a loop", Machine{State: Watching, Synced: true, relists: 2}, Input{Event: Expired, Err: errTest},
			Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, next: DoList}, Effects{Gap: ReasonExpired, Do: DoSleep, Delay: first}},
		{"an unreadable frame: the connection may be to blame", Machine{State: Watching}, Input{Event: Garbled},
			Machine{State: Watching, garbled: 1}, Effects{Do: DoWatch}},
		{"the same again: skip it", Machine{State: Watching, garbled: 1}, Input{Event: Garbled},
			Machine{State: Watching, garbled: 2}, Effects{Gap: ReasonGarbled, Do: DoSkip}},
		{"more of it belongs to the same gap", Machine{State: Watching, garbled: 2}, Input{Event: Garbled},
			Machine{State: Watching, garbled: 3}, Effects{Do: DoSkip}},
		{"unreadable frames may not make a loop either", Machine{State: Watching, short: 1}, Input{Event: Garbled, Short: true, Err: errTest},
			Machine{State: Waiting, Err: errTest, Attempts: 1, short: 2, garbled: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
		{"a broken watch is resumed behind a probe", Machine{State: Watching, Synced: true}, Input{Event: Failed, Err: errTest},
			Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
		{"delays double", Machine{State: Probing, Synced: true, Attempts: 2}, Input{Event: Failed, Err: errTest},
			Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 3, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * first}},
		{"up to half a minute", Machine{State: Probing, Attempts: 50}, Input{Event: Failed},
			Machine{State: Waiting, Attempts: 51, next: DoList}, Effects{Do: DoSleep, Delay: 30 * time.Second}},
		{"a server that is away may return at any moment", Machine{State: Probing, Attempts: 50}, Input{Event: Failed, Unreachable: true},
			Machine{State: Waiting, Attempts: 51, next: DoList}, Effects{Do: DoSleep, Delay: 5 * time.Second}},
		{"what the server asks for is honoured", Machine{State: Listing}, Input{Event: Failed, RetryAfter: 7 * time.Second},
			Machine{State: Waiting, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: 7 * time.Second}},
		{"forbidden: somebody must act first", Machine{State: Listing}, Input{Event: Refused, Err: errTest},
			Machine{State: Waiting, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: time.Minute}},
		{"a kind that was never served is parked at once", Machine{State: Listing}, Input{Event: Missing, Err: errTest},
			Machine{State: Parked, Err: errTest, missing: 1}, Effects{Do: DoEnd}},
		{"a kind that was served is asked once more", Machine{State: Watching, Synced: true}, Input{Event: Missing, Err: errTest},
			Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, missing: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * first}},
		{"and parked then", Machine{State: Probing, Synced: true, missing: 1}, Input{Event: Missing, Err: errTest},
			Machine{State: Parked, Synced: true, Err: errTest, missing: 2}, Effects{Do: DoEnd}},
		{"the same history is resumed; the failure ends with the watch's acceptance", Machine{State: Probing, Err: errTest}, Input{Event: Alike},
			Machine{State: Watching, Err: errTest}, Effects{Do: DoWatch}},
		{"another history is listed", Machine{State: Probing, Err: errTest}, Input{Event: Rewritten},
			Machine{State: Listing, Err: errTest, relists: 1}, Effects{NewEpoch: true, Gap: ReasonRewritten, Do: DoList}},
		{"410 to a probe makes no sense: a failure", Machine{State: Probing}, Input{Event: Expired, Err: errTest},
			Machine{State: Waiting, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
		{"after the sleep, list", Machine{State: Waiting, Err: errTest, next: DoList}, Input{Event: Timer},
			Machine{State: Listing, Err: errTest}, Effects{Do: DoList}},
		{"after the sleep, probe", Machine{State: Waiting, Err: errTest, next: DoProbe}, Input{Event: Timer},
			Machine{State: Probing, Err: errTest}, Effects{Do: DoProbe}},
		{"stop ends everything", Machine{State: Waiting, Synced: true}, Input{Event: Stop},
			Machine{State: Stopped, Synced: true}, Effects{Do: DoEnd}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, eff := timing.step(c.m, c.in)
			opts := cmp.Options{cmp.AllowUnexported(Machine{}), cmpopts.EquateErrors()}
			if diff := cmp.Diff(c.want, m, opts); diff != "" {
				t.Errorf("machine (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.eff, eff); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEveryStepGoesOn: whatever a request can end with, in the state in which it is made, asks for
// something next. A stream that asked for nothing would stand still for ever.
func TestEveryStepGoesOn(t *testing.T) {
	failures := []Event{Expired, Failed, Refused, Missing}
	ends := map[State][]Event{
		Idle:     {Begin},
		Listing:  append([]Event{Listed, Rewritten}, failures...),
		Watching: append([]Event{Closed, Garbled}, failures...),
		Probing:  append([]Event{Alike, Rewritten}, failures...),
		Waiting:  {Timer},
	}
	timing := DefaultTiming
	for state, events := range ends {
		for _, e := range append(events, Stop) {
			for _, synced := range []bool{false, true} {
				m, eff := timing.step(Machine{State: state, Synced: synced}, Input{Event: e, Err: errTest})
				if eff.Do == Continue {
					t.Errorf("%v, %v: %+v asks for nothing", state, e, m)
				}
				if over := m.State == Parked || m.State == Stopped; over != (eff.Do == DoEnd) {
					t.Errorf("%v, %v: %v and %v", state, e, m.State, eff.Do)
				}
			}
		}
	}
}
