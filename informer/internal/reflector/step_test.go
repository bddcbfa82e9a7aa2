package reflector

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tattler-dev/tattler/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var errTest = errors.New("test")

const first = 250 * time.Millisecond // the delay after the first failure

// stepCase is one step; its name gives the reason for the expected result.
type stepCase struct {
	name string
	m    Machine
	in   Input
	want Machine
	eff  Effects
}

var listCases = []stepCase{
	{"a stream begins with a list, as a stream", Machine{}, Input{Event: Begin},
		Machine{State: Listing, streaming: true}, Effects{Do: DoStream}},
	{"or in pages, if the caller says so", Machine{Paged: true}, Input{Event: Begin},
		Machine{State: Listing, Paged: true}, Effects{Do: DoList}},
	{"a parked stream that is tried again lists against the state that it has", Machine{Synced: true}, Input{Event: Begin},
		Machine{State: Listing, Synced: true, streaming: true}, Effects{Do: DoStream}},
	{"a loaded state is probed, not listed", Machine{Resuming: true}, Input{Event: Begin},
		Machine{State: Probing, Resuming: true}, Effects{Do: DoProbe}},
	{"an accepted list ends an earlier failure", Machine{State: Listing, Err: errTest, Attempts: 3, missing: 1}, Input{Event: Accepted},
		Machine{State: Listing, Attempts: 3}, Effects{}},
	{"a list in pages is followed by a watch, and failures are cleared", Machine{State: Listing, Attempts: 3, missing: 1, broken: 2}, Input{Event: Listed},
		Machine{State: Watching, Synced: true}, Effects{Do: DoWatch}},
	{"the list has what was unreadable in the watch; failing watches are still counted", Machine{State: Listing, garbled: 2, denied: 3}, Input{Event: Listed},
		Machine{State: Watching, Synced: true, denied: 3}, Effects{Do: DoWatch}},
	{"a streaming list is the watch already", Machine{State: Listing, Attempts: 3, broken: 1, streaming: true}, Input{Event: Listed},
		Machine{State: Watching, Synced: true}, Effects{Do: Continue}},
	{"pages after a refused stream: its form was the reason, which is remembered", Machine{State: Listing, refused: true}, Input{Event: Listed},
		Machine{State: Watching, Synced: true, Paged: true}, Effects{Do: DoWatch}},
	{"a list ends the resumption of a loaded state", Machine{State: Listing, Resuming: true, laps: 2, streaming: true}, Input{Event: Listed},
		Machine{State: Watching, Synced: true}, Effects{Do: Continue}},
	{"a server that does not know streaming lists is asked for pages from then on", Machine{State: Listing, streaming: true}, Input{Event: Unended, Err: errTest},
		Machine{State: Listing, Paged: true}, Effects{Do: DoList}},
	{"a refusal may be about the form: ask for pages at once", Machine{State: Listing, streaming: true}, Input{Event: Refused, Err: errTest},
		Machine{State: Listing, refused: true}, Effects{Do: DoList}},
	{"pages are refused too: it was not about the form", Machine{State: Listing, refused: true}, Input{Event: Refused, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: time.Minute}},
	{"an expired token begins the list again, in one page, without a gap", Machine{State: Listing, Paged: true}, Input{Event: Expired},
		Machine{State: Listing, Paged: true, Unpaged: true}, Effects{Do: DoList}},
	{"410 to a list without a token is a failure", Machine{State: Listing, Unpaged: true, broken: 2}, Input{Event: Expired, Err: errTest},
		Machine{State: Waiting, Unpaged: true, Err: errTest, Attempts: 1, broken: 2, next: DoList}, Effects{Do: DoSleep, Delay: first}},
	{"so it is to a streaming list, which names no version", Machine{State: Listing, streaming: true}, Input{Event: Expired, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, broken: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
	{"a list from the past is another history", Machine{State: Listing, Synced: true, streaming: true}, Input{Event: Replaced},
		Machine{State: Listing, Synced: true, relists: 1, streaming: true}, Effects{Trust: Outdated, Gap: ReasonReplaced, Do: DoStream}},
	{"alternating histories do not loop", Machine{State: Listing, Synced: true, relists: 2}, Input{Event: Replaced, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, trust: Outdated, next: DoList}, Effects{Gap: ReasonReplaced, Do: DoSleep, Delay: first}},
	{"the epoch begins with the list", Machine{State: Waiting, Synced: true, trust: Outdated, next: DoList}, Input{Event: Timer},
		Machine{State: Listing, Synced: true, streaming: true}, Effects{Trust: Outdated, Do: DoStream}},
	{"an audit that missed something ends while the stream lists", Machine{State: Listing, Synced: true, streaming: true}, Input{Event: Unverified, Err: ErrMissed},
		Machine{State: Listing, Synced: true, relists: 1, streaming: true}, Effects{Trust: Uncertain, Gap: ReasonMissed, Do: DoStream}},
	{"uncertainty does not loop either", Machine{State: Listing, Synced: true, relists: 2}, Input{Event: Unverified, Err: ErrMissed},
		Machine{State: Waiting, Synced: true, Err: ErrMissed, Attempts: 1, relists: 3, trust: Uncertain, next: DoList}, Effects{Gap: ReasonMissed, Do: DoSleep, Delay: first}},
	{"uncertainty does not weaken a proof", Machine{State: Listing, Synced: true, trust: Outdated}, Input{Event: Unverified, Err: ErrMissed},
		Machine{State: Listing, Synced: true, relists: 1, streaming: true}, Effects{Trust: Outdated, Gap: ReasonMissed, Do: DoStream}},
	{"a list that fails before the first sync is tried again", Machine{State: Listing}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
	{"a streaming list that fails is tried again as one", Machine{State: Listing, streaming: true}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, broken: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
	{"once", Machine{State: Waiting, broken: 1, next: DoList}, Input{Event: Timer},
		Machine{State: Listing, broken: 1, streaming: true}, Effects{Do: DoStream}},
	{"the second time, pages may get through", Machine{State: Waiting, broken: 2, next: DoList}, Input{Event: Timer},
		Machine{State: Listing, broken: 2}, Effects{Do: DoList}},
	{"a failed relist is repeated: the version is gone", Machine{State: Listing, Synced: true}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
}

var watchCases = []stepCase{
	{"an accepted watch ends an earlier failure, but may fail again at once", Machine{State: Watching, Err: errTest, Attempts: 3, missing: 1}, Input{Event: Accepted},
		Machine{State: Watching, Attempts: 3}, Effects{}},
	{"a frame alone proves little: the watch may end at once", Machine{State: Watching, Attempts: 3, relists: 1, garbled: 2, denied: 2}, Input{Event: Progress},
		Machine{State: Watching, Attempts: 3, relists: 1}, Effects{}},
	{"a lasting watch clears failures", Machine{State: Watching, Attempts: 3, relists: 1, garbled: 2, denied: 2, rejected: 2, suspect: true}, Input{Event: Progress, Lasting: true},
		Machine{State: Watching}, Effects{}},
	{"a clean close is not a failure", Machine{State: Watching}, Input{Event: Closed},
		Machine{State: Watching}, Effects{Do: DoWatch}},
	{"a watch without a frame may be one at a version from the future", Machine{State: Watching}, Input{Event: Closed, Silent: true},
		Machine{State: Probing}, Effects{Do: DoProbe}},
	{"one short watch is tolerated", Machine{State: Watching}, Input{Event: Closed, Short: true},
		Machine{State: Watching, short: 1}, Effects{Do: DoWatch}},
	{"two short watches cause a delay", Machine{State: Watching, Synced: true, short: 1}, Input{Event: Closed, Short: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, short: 2, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"a long watch ends the suspicion", Machine{State: Watching, short: 5, Attempts: 5, denied: 2}, Input{Event: Closed},
		Machine{State: Watching}, Effects{Do: DoWatch}},
	{"410: relist at once", Machine{State: Watching, Synced: true}, Input{Event: Expired},
		Machine{State: Listing, Synced: true, relists: 1, streaming: true}, Effects{Gap: ReasonExpired, Do: DoStream}},
	{"410 after every relist: not in a loop", Machine{State: Watching, Synced: true, relists: 2}, Input{Event: Expired, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, next: DoList}, Effects{Gap: ReasonExpired, Do: DoSleep, Delay: first}},
	{"an event of another history", Machine{State: Watching, Synced: true}, Input{Event: Replaced},
		Machine{State: Listing, Synced: true, relists: 1, streaming: true}, Effects{Trust: Outdated, Gap: ReasonReplaced, Do: DoStream}},
	{"after every list: not in a loop", Machine{State: Watching, Synced: true, relists: 2}, Input{Event: Replaced, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, trust: Outdated, next: DoList}, Effects{Gap: ReasonReplaced, Do: DoSleep, Delay: first}},
	{"an audit missed something: contents are compared, the history stays", Machine{State: Watching, Synced: true}, Input{Event: Unverified, Err: ErrMissed},
		Machine{State: Listing, Synced: true, relists: 1, streaming: true}, Effects{Trust: Uncertain, Gap: ReasonMissed, Do: DoStream}},
	{"after every list: not in a loop", Machine{State: Watching, Synced: true, relists: 2}, Input{Event: Unverified, Err: ErrMissed},
		Machine{State: Waiting, Synced: true, Err: ErrMissed, Attempts: 1, relists: 3, trust: Uncertain, next: DoList}, Effects{Gap: ReasonMissed, Do: DoSleep, Delay: first}},
	{"an unreadable frame: the connection may be to blame", Machine{State: Watching}, Input{Event: Garbled},
		Machine{State: Watching, garbled: 1}, Effects{Do: DoWatch}},
	{"unreadable again, the object is known: skip it", Machine{State: Watching, garbled: 1}, Input{Event: Garbled, Known: true},
		Machine{State: Watching, garbled: 2}, Effects{Gap: ReasonGarbled, Do: DoSkip}},
	{"more of it belongs to the same gap", Machine{State: Watching, garbled: 2}, Input{Event: Garbled, Known: true},
		Machine{State: Watching, garbled: 3}, Effects{Do: DoSkip}},
	{"an unknown object may have been deleted: nothing after it before a list", Machine{State: Watching, Synced: true, garbled: 1}, Input{Event: Garbled},
		Machine{State: Listing, Synced: true, relists: 1, garbled: 2, streaming: true}, Effects{Gap: ReasonGarbled, Do: DoStream}},
	{"not in a loop", Machine{State: Watching, Synced: true, garbled: 1, relists: 2}, Input{Event: Garbled, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, garbled: 2, next: DoList}, Effects{Gap: ReasonGarbled, Do: DoSleep, Delay: first}},
	{"unreadable frames do not loop either", Machine{State: Watching, Synced: true, short: 1}, Input{Event: Garbled, Short: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, short: 2, garbled: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"a broken watch is resumed after a probe", Machine{State: Watching, Synced: true}, Input{Event: Failed, Unreachable: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"however often: a list does not help against broken connections", Machine{State: Watching, Synced: true, denied: 3}, Input{Event: Failed, Unreachable: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 3, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"so is a watch that an overloaded server ends", Machine{State: Watching, Synced: true, denied: 1}, Input{Event: Failed, Overload: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 2, next: DoProbe}, Effects{Do: DoSleep, Delay: 2 * first}},
	{"however often: our version is not to blame", Machine{State: Watching, Synced: true, denied: 8, rejected: 2, suspect: true, works: true}, Input{Event: Failed, Overload: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 9, next: DoProbe}, Effects{Do: DoSleep, Delay: 30 * time.Second}},
	{"any other server error may pass", Machine{State: Watching, Synced: true}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"or our version is the reason: the next probe finds out", Machine{State: Watching, Synced: true, denied: 1}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 2, suspect: true, next: DoProbe}, Effects{Do: DoSleep, Delay: 2 * first}},
	{"the probe's watch works, but ours does not", Machine{State: Watching, Synced: true, denied: 2, suspect: true, works: true, rejected: 1}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 3, suspect: true, rejected: 2, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * first}},
	{"for the third time: our version is the reason", Machine{State: Watching, Synced: true, denied: 3, suspect: true, works: true, rejected: 2}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 4, suspect: true, next: DoList}, Effects{Gap: ReasonUnwatched, Do: DoSleep, Delay: 8 * first}},
	{"if no watch works, a list does not help", Machine{State: Watching, Synced: true, denied: 5, suspect: true}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 6, suspect: true, next: DoProbe}, Effects{Do: DoSleep, Delay: 32 * first}},
	{"a refused watch says nothing about a list's form", Machine{State: Watching, Synced: true}, Input{Event: Refused, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 1, rejected: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: time.Minute}},
	{"if only watches are refused, list", Machine{State: Watching, Synced: true, denied: 5, rejected: 2}, Input{Event: Refused, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 6, next: DoList}, Effects{Gap: ReasonUnwatched, Do: DoSleep, Delay: time.Minute}},
	{"or not found", Machine{State: Watching, Synced: true, denied: 8, rejected: 2}, Input{Event: Missing, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 9, missing: 1, next: DoList}, Effects{Gap: ReasonUnwatched, Do: DoSleep, Delay: 30 * time.Second}},
	{"a token that was rotated", Machine{State: Watching, Synced: true, rejected: 2}, Input{Event: Unauthorized, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 1, unauthorized: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: time.Second}},
	{"only watches count: a failed probe after one does not", Machine{State: Probing, Synced: true, denied: 3, rejected: 2}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 3, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
}

var resumeCases = []stepCase{
	{"a loaded state is watched once it is verified", Machine{State: Probing, Resuming: true}, Input{Event: Alike},
		Machine{State: Watching, Resuming: true}, Effects{Do: DoWatch}},
	{"it counts as a list once it has caught up", Machine{State: Watching, Resuming: true, laps: 1}, Input{Event: CaughtUp},
		Machine{State: Watching, Synced: true}, Effects{}},
	{"a watch that did not catch up: probe", Machine{State: Watching, Resuming: true}, Input{Event: Closed},
		Machine{State: Probing, Resuming: true, laps: 1}, Effects{Do: DoProbe}},
	{"the second: compare", Machine{State: Watching, Resuming: true, laps: 1}, Input{Event: Closed},
		Machine{State: Probing, Resuming: true, laps: 2}, Effects{Do: DoProbe}},
	{"the comparison shows that it is current", Machine{State: Probing, Resuming: true, laps: 2}, Input{Event: CaughtUp},
		Machine{State: Watching, Synced: true}, Effects{Do: DoWatch}},
	{"the third: list", Machine{State: Watching, Resuming: true, laps: 2}, Input{Event: Closed},
		Machine{State: Listing, Resuming: true, laps: 3, relists: 1, streaming: true}, Effects{Trust: Uncertain, Gap: ReasonUnverified, Do: DoStream}},
	{"a watch that ends at once shows nothing and is not a lap", Machine{State: Watching, Resuming: true, laps: 2, short: 0}, Input{Event: Closed, Short: true},
		Machine{State: Probing, Resuming: true, laps: 2, short: 1}, Effects{Do: DoProbe}},
	{"unless all do", Machine{State: Watching, Resuming: true, laps: 2, short: maxShort}, Input{Event: Closed, Short: true, Err: errTest},
		Machine{State: Listing, Resuming: true, laps: 3, short: maxShort, relists: 1, streaming: true}, Effects{Trust: Uncertain, Gap: ReasonUnverified, Do: DoStream}},
	{"a first watch without a frame proves nothing: a busy server omits a late bookmark", Machine{State: Watching, Resuming: true}, Input{Event: Closed, Silent: true},
		Machine{State: Probing, Resuming: true, laps: 1}, Effects{Do: DoProbe}},
	{"a server that shuts down proves nothing", Machine{State: Watching, Resuming: true}, Input{Event: Closed, Silent: true, Short: true},
		Machine{State: Probing, Resuming: true, short: 1}, Effects{Do: DoProbe}},
	{"an expired version is a gap, not another history", Machine{State: Watching, Resuming: true}, Input{Event: Expired},
		Machine{State: Listing, Resuming: true, relists: 1, streaming: true}, Effects{Gap: ReasonExpired, Do: DoStream}},
	{"an unverifiable state is listed, by content", Machine{State: Probing, Resuming: true}, Input{Event: Unverified},
		Machine{State: Listing, Resuming: true, relists: 1, streaming: true}, Effects{Trust: Uncertain, Gap: ReasonUnverified, Do: DoStream}},
	{"an unverifiable state after many relists does not loop", Machine{State: Probing, Resuming: true, relists: 2}, Input{Event: Unverified, Err: errTest},
		Machine{State: Waiting, Resuming: true, Err: errTest, Attempts: 1, relists: 3, trust: Uncertain, next: DoList}, Effects{Gap: ReasonUnverified, Do: DoSleep, Delay: first}},
	{"a failed probe is not a reason to list", Machine{State: Probing, Resuming: true}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Resuming: true, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"nor is a watch that breaks while catching up", Machine{State: Watching, Resuming: true}, Input{Event: Failed, Unreachable: true, Err: errTest},
		Machine{State: Waiting, Resuming: true, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"a list that replaced the resumption stays a list", Machine{State: Listing, Resuming: true, streaming: true}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Resuming: true, Err: errTest, Attempts: 1, broken: 1, next: DoList}, Effects{Do: DoSleep, Delay: first}},
	{"the kind of a loaded state was served", Machine{State: Probing, Resuming: true}, Input{Event: Missing, Err: errTest},
		Machine{State: Waiting, Resuming: true, Err: errTest, Attempts: 1, missing: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * time.Second}},
}

var otherCases = []stepCase{
	{"delays double", Machine{State: Probing, Synced: true, Attempts: 2}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 3, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * first}},
	{"up to half a minute", Machine{State: Probing, Attempts: 50}, Input{Event: Failed},
		Machine{State: Waiting, Attempts: 51, next: DoList}, Effects{Do: DoSleep, Delay: 30 * time.Second}},
	{"an unreachable server may return at any moment", Machine{State: Probing, Attempts: 50}, Input{Event: Failed, Unreachable: true},
		Machine{State: Waiting, Attempts: 51, next: DoList}, Effects{Do: DoSleep, Delay: 5 * time.Second}},
	{"the server's Retry-After is honoured", Machine{State: Listing}, Input{Event: Failed, RetryAfter: 7 * time.Second},
		Machine{State: Waiting, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: 7 * time.Second}},
	{"a 401 is tried again soon: client-go drops its cached token", Machine{State: Listing, streaming: true}, Input{Event: Unauthorized, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, unauthorized: 1, next: DoList}, Effects{Do: DoSleep, Delay: time.Second}},
	{"the third less soon", Machine{State: Probing, Synced: true, Attempts: 2, unauthorized: 2}, Input{Event: Unauthorized, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 3, unauthorized: 3, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * time.Second}},
	{"the fourth is a refusal", Machine{State: Probing, Synced: true, Attempts: 3, unauthorized: 3}, Input{Event: Unauthorized, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 4, unauthorized: 4, next: DoProbe}, Effects{Do: DoSleep, Delay: time.Minute}},
	{"forbidden: an administrator must act first", Machine{State: Listing}, Input{Event: Refused, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, next: DoList}, Effects{Do: DoSleep, Delay: time.Minute}},
	{"a kind that is not served is asked for once more: 404 is not about the form", Machine{State: Listing, streaming: true}, Input{Event: Missing, Err: errTest},
		Machine{State: Waiting, Err: errTest, Attempts: 1, missing: 1, next: DoList}, Effects{Do: DoSleep, Delay: 4 * time.Second}},
	{"also one that was served", Machine{State: Watching, Synced: true}, Input{Event: Missing, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 1, rejected: 1, missing: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: 4 * time.Second}},
	{"then it is parked", Machine{State: Probing, Synced: true, missing: 1}, Input{Event: Missing, Err: errTest},
		Machine{State: Parked, Synced: true, Err: errTest, missing: 2}, Effects{Do: DoPark, Delay: 30 * time.Second}},
	{"its kind is looked for at growing intervals", Machine{State: Parked, Synced: true, Err: errTest, missing: 2, looks: 1}, Input{Event: Timer},
		Machine{State: Parked, Synced: true, Err: errTest, missing: 2, looks: 2}, Effects{Do: DoPark, Delay: 2 * time.Minute}},
	{"a kind that is served again is listed against the known state", Machine{State: Parked, Synced: true, Err: errTest, missing: 2, looks: 3, laps: 1, Unpaged: true}, Input{Event: Returned},
		Machine{State: Listing, Synced: true, streaming: true}, Effects{Gap: ReasonGone, Do: DoStream}},
	{"so is a loaded state, which was never verified", Machine{State: Parked, Resuming: true, Paged: true, Err: errTest, missing: 2}, Input{Event: Returned},
		Machine{State: Listing, Paged: true}, Effects{Gap: ReasonGone, Do: DoList}},
	{"a kind that was removed has no objects", Machine{State: Parked, Resuming: true, Err: errTest, missing: 2, looks: 1}, Input{Event: Retire},
		Machine{State: Parked, Err: errTest, missing: 2, looks: 1}, Effects{Gap: ReasonGone, Drop: true, Do: DoPark, Delay: time.Minute}},
	{"a failure in between may be a server starting", Machine{State: Probing, Synced: true, missing: 1}, Input{Event: Failed, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"any success shows that the kind is served", Machine{State: Probing, Synced: true, missing: 1}, Input{Event: Alike},
		Machine{State: Watching, Synced: true}, Effects{Do: DoWatch}},
	{"so does a refusal", Machine{State: Listing, missing: 1, streaming: true}, Input{Event: Refused, Err: errTest},
		Machine{State: Listing, refused: true}, Effects{Do: DoList}},
	{"the probe finds that watches work", Machine{State: Probing, suspect: true}, Input{Event: Alike, Works: true},
		Machine{State: Watching, suspect: true, works: true}, Effects{Do: DoWatch}},
	{"the same history is resumed; the failure ends with the watch's acceptance", Machine{State: Probing, Err: errTest}, Input{Event: Alike},
		Machine{State: Watching, Err: errTest}, Effects{Do: DoWatch}},
	{"another history is listed", Machine{State: Probing, Err: errTest}, Input{Event: Replaced},
		Machine{State: Listing, Err: errTest, relists: 1, streaming: true}, Effects{Trust: Outdated, Gap: ReasonReplaced, Do: DoStream}},
	{"not in a loop", Machine{State: Probing, Synced: true, relists: 2}, Input{Event: Replaced, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, relists: 3, trust: Outdated, next: DoList}, Effects{Gap: ReasonReplaced, Do: DoSleep, Delay: first}},
	{"410 to a probe is a failure", Machine{State: Probing, Synced: true}, Input{Event: Expired, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"after the sleep, list", Machine{State: Waiting, Err: errTest, next: DoList}, Input{Event: Timer},
		Machine{State: Listing, Err: errTest, streaming: true}, Effects{Do: DoStream}},
	{"after the sleep, probe", Machine{State: Waiting, Err: errTest, next: DoProbe}, Input{Event: Timer},
		Machine{State: Probing, Err: errTest}, Effects{Do: DoProbe}},
	{"after the sleep, watch", Machine{State: Waiting, Synced: true, Err: errTest, next: DoWatch}, Input{Event: Timer},
		Machine{State: Watching, Synced: true, Err: errTest}, Effects{Do: DoWatch}},
	{"429 to a watch: only the watch is repeated", Machine{State: Watching, Synced: true}, Input{Event: Failed, Overload: true, Throttled: true, Err: errTest},
		Machine{State: Waiting, Synced: true, Err: errTest, Attempts: 1, denied: 1, next: DoWatch, throttled: true}, Effects{Do: DoSleep, Delay: first}},
	{"once a watch is accepted, nothing is throttled", Machine{State: Watching, Synced: true, Err: errTest, throttled: true}, Input{Event: Accepted},
		Machine{State: Watching, Synced: true}, Effects{}},
	{"a loaded state is verified again", Machine{State: Watching, Resuming: true}, Input{Event: Failed, Overload: true, Throttled: true, Err: errTest},
		Machine{State: Waiting, Resuming: true, Err: errTest, Attempts: 1, denied: 1, next: DoProbe}, Effects{Do: DoSleep, Delay: first}},
	{"stop ends everything", Machine{State: Waiting, Synced: true}, Input{Event: Stop},
		Machine{State: Stopped, Synced: true}, Effects{Do: DoEnd}},
}

func stepCases() []stepCase {
	var all []stepCase
	for _, some := range [][]stepCase{listCases, watchCases, resumeCases, otherCases} {
		all = append(all, some...)
	}
	return all
}

func TestStep(t *testing.T) {
	timing := DefaultTiming
	for _, c := range stepCases() {
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
