package reflector

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// row is one transition of the table in the package's comment; any stands for every state.
type row struct{ state, input, next string }

// readTable reads the rows from the package's comment.
func readTable(t *testing.T) []row {
	src, err := os.ReadFile("step.go")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	_, text, _ := strings.Cut(string(src), "//\tstate ")
	for _, line := range strings.Split(text, "\n")[1:] {
		cells, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		if strings.HasPrefix(cells, " ") {
			continue // the continuation of a row
		}
		f := strings.Fields(cells)
		rows = append(rows, row{f[0], f[1], f[2]})
	}
	if len(rows) < 30 {
		t.Fatalf("read only %d rows", len(rows))
	}
	return rows
}

// TestEveryRowHasACase, and every case a row.
func TestEveryRowHasACase(t *testing.T) {
	rows := readTable(t)
	proven := map[row]bool{}
	for _, c := range stepCases() {
		r := row{c.m.State.String(), c.in.Event.String(), c.want.State.String()}
		if !slices.Contains(rows, r) {
			r.state = "any"
		}
		if !slices.Contains(rows, r) {
			t.Errorf("%s: no row says that %v, %v leads to %v", c.name, c.m.State, c.in.Event, c.want.State)
		}
		proven[r] = true
	}
	for _, r := range rows {
		if !proven[r] {
			t.Errorf("no case for %v", r)
		}
	}
}

// TestTableIsTheMachine: whatever else the machine holds, a step leads to the state in the table; without a row
// it changes nothing.
func TestTableIsTheMachine(t *testing.T) {
	var said, met [len(stateNames)][len(eventNames)][len(stateNames)]bool // state, input, next
	for _, r := range readTable(t) {
		for s, name := range stateNames {
			if r.state == name || r.state == "any" {
				said[s][slices.Index(eventNames[:], r.input)][slices.Index(stateNames[:], r.next)] = true
			}
		}
	}
	timing := DefaultTiming
	var nothing [len(stateNames)]bool
	for m := range machines {
		for e := range len(eventNames) {
			for _, in := range []Input{{}, {Short: true}, {Silent: true}} {
				in.Event = Event(e)
				next, eff := timing.step(m, in)
				changed := next != m || eff != Effects{}
				if says := said[m.State][e]; says == nothing && changed || says != nothing && !says[next.State] {
					t.Fatalf("%+v, %+v: the step goes on with %+v, %+v", m, in, next, eff)
				}
				met[m.State][e][next.State] = true
			}
		}
	}
	for _, r := range readTable(t) {
		s := slices.Index(stateNames[:], r.state)
		if s >= 0 && !met[s][slices.Index(eventNames[:], r.input)][slices.Index(stateNames[:], r.next)] {
			t.Errorf("no machine takes %v", r)
		}
	}
}

// machines yields machines of every state, in every combination of the fields that decide a transition.
func machines(yield func(Machine) bool) {
	for bits := range 1 << 13 {
		bit := func(n int) bool { return bits>>n&1 == 1 }
		count := func(n, c int) int {
			if bit(n) {
				return c
			}
			return 0
		}
		m := Machine{
			Synced: bit(0), Resuming: bit(1), Unpaged: bit(2), streaming: bit(3), refused: bit(4), next: DoList,
			relists: count(5, 2), short: count(6, 1), laps: count(7, 2), missing: count(8, 1), garbled: count(9, 1),
			works: bit(11), rejected: count(12, 2),
		}
		if bit(10) {
			m.next = DoProbe
			if bit(11) {
				m.next = DoWatch
			}
		}
		for s := range len(stateNames) {
			m.State = State(s)
			if !yield(m) {
				return
			}
		}
	}
}

// TestEveryStepGoesOn: after every possible result of a request, in the state in which it is made, the machine
// has a next action. A stream without one would stand still forever.
func TestEveryStepGoesOn(t *testing.T) {
	failures := []Event{Expired, Failed, Unauthorized, Refused, Missing, Stop}
	ends := map[State][]Event{
		Idle:     {Begin, Stop},
		Listing:  append([]Event{Listed, Unended, Replaced, Unverified}, failures...),
		Watching: append([]Event{Closed, Garbled, Replaced, Unverified}, failures...),
		Probing:  append([]Event{Alike, Unverified, Replaced}, failures...),
		Waiting:  {Timer, Stop},
		Parked:   {Timer, Returned, Retire, Stop},
	}
	timing := DefaultTiming
	for m := range machines {
		for _, e := range ends[m.State] {
			next, eff := timing.step(m, Input{Event: e, Err: errTest})
			if eff.Do == Continue && !(e == Listed && m.streaming) { // a streaming list becomes the watch
				t.Fatalf("%+v, %v: asks for nothing", m, e)
			}
			if next.State == Parked != (eff.Do == DoPark) || next.State == Stopped != (eff.Do == DoEnd) {
				t.Fatalf("%+v, %v: %v and %v", m, e, next.State, eff.Do)
			}
		}
	}
}

// TestEveryFailureIsWaitedFor: no sequence of responses makes a loop without a sleep: within ten fruitless
// requests, or watches of a single frame, the stream waits.
func TestEveryFailureIsWaitedFor(t *testing.T) {
	timing := DefaultTiming
	for _, m := range []Machine{{}, {Paged: true}, {Synced: true}, {Resuming: true}} {
		for _, listing := range []Event{Unended, Expired, Replaced, Unverified, Refused, Failed, Listed} {
			for _, watching := range []Event{Closed, Expired, Replaced, Unverified, Refused, Failed, Garbled} {
				for _, probing := range []Event{Alike, Unverified, Replaced, Refused, Failed} {
					answers := map[Action]Event{DoStream: listing, DoList: listing, DoWatch: watching, DoProbe: probing, Continue: watching}
					if listing == Unended { // only streaming lists can be Unended
						answers[DoList] = Listed
					}
					for _, frame := range []bool{false, true} {
						if !waits(&timing, m, answers, frame) {
							t.Errorf("%+v: lists end with %v, watches with %v, probes with %v, a frame before %v: a loop",
								m, listing, watching, probing, frame)
						}
					}
				}
			}
		}
	}
}

func waits(timing *Timing, m Machine, answers map[Action]Event, frame bool) bool {
	m, eff := timing.step(m, Input{Event: Begin})
	for range 10 {
		if frame && m.State == Watching {
			m, _ = timing.step(m, Input{Event: Progress})
		}
		m, eff = timing.step(m, Input{Event: answers[eff.Do], Err: errTest, Short: true, Silent: !frame})
		if eff.Do == DoSleep || eff.Do == DoPark || eff.Do == DoEnd || eff.Do == DoSkip { // skipping continues to read
			return true
		}
	}
	return false
}
