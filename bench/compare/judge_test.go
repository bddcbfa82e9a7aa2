package compare

import (
	"testing"
	"time"
)

// past is a small history: two objects, one of which is deleted.
func past() []Change {
	at := time.Date(2026, 11, 1, 10, 42, 0, 0, time.UTC)
	return []Change{
		{UID: "a", Kind: "pods", Version: 10, Type: "ADDED", At: at},
		{UID: "b", Kind: "pods", Version: 11, Type: "ADDED", At: at},
		{UID: "a", Kind: "pods", Version: 12, Type: "MODIFIED", At: at},
		{UID: "a", Kind: "pods", Version: 13, Type: "MODIFIED", At: at},
		{UID: "b", Kind: "pods", Version: 14, Type: "DELETED", At: at},
	}
}

// TestJudge: a faultless delivery has no complaint, and each fault has its own.
func TestJudge(t *testing.T) {
	perfect := func() (all []Arrival) {
		for i, c := range past() {
			c.At = c.At.Add(time.Duration(i) * time.Millisecond)
			all = append(all, Arrival{Change: c, ID: string(rune('A' + i))})
		}
		return all
	}
	base := Verdict{Changes: 5, Deletions: 1, Delay: 2 * time.Millisecond}
	for _, tc := range []struct {
		name  string
		fault func(all []Arrival) []Arrival
		quiet []Change
		want  func(v *Verdict)
	}{
		{"nothing", func(all []Arrival) []Arrival { return all }, nil, func(*Verdict) {}},
		{"an update is lost", func(all []Arrival) []Arrival { return append(all[:2], all[3:]...) }, nil, func(v *Verdict) { v.Lost = 1 }},
		{"a quiet update is left out", func(all []Arrival) []Arrival { return append(all[:2], all[3:]...) },
			[]Change{{UID: "a", Version: 12, Type: "MODIFIED"}}, func(v *Verdict) { v.Quiet = 1 }},
		{"another than the quiet update is lost", func(all []Arrival) []Arrival { return append(all[:2], all[3:]...) },
			[]Change{{UID: "a", Version: 13, Type: "MODIFIED"}}, func(v *Verdict) { v.Lost = 1 }},
		{"a quiet update arrives", func(all []Arrival) []Arrival { return all },
			[]Change{{UID: "a", Version: 12, Type: "MODIFIED"}}, func(*Verdict) {}},
		{"a deletion is lost", func(all []Arrival) []Arrival { return all[:4] }, nil, func(v *Verdict) { v.Lost, v.LostDeletions = 1, 1 }},
		{"a deletion has the last known version", func(all []Arrival) []Arrival { all[4].Version = 11; return all }, nil, func(*Verdict) {}},
		{"a repeat has its ID", func(all []Arrival) []Arrival { return append(all, all[2]) }, nil, func(v *Verdict) { v.Copies = 1 }},
		{"a repeat has another ID", func(all []Arrival) []Arrival {
			again := all[2]
			again.ID = "Z"
			return append(all, again)
		}, nil, func(v *Verdict) { v.Repeats = 1 }},
		{"a repeat has no ID", func(all []Arrival) []Arrival {
			for i := range all {
				all[i].ID = ""
			}
			return append(all, all[2])
		}, nil, func(v *Verdict) { v.Repeats = 1 }},
		{"two changes have one ID", func(all []Arrival) []Arrival { all[3].ID = all[2].ID; return all }, nil, func(v *Verdict) { v.Repeats, v.Lost = 1, 1 }},
		{"two updates are swapped", func(all []Arrival) []Arrival { all[2], all[3] = all[3], all[2]; return all }, nil, func(v *Verdict) { v.Disorder = 1 }},
		{"a deletion is early", func(all []Arrival) []Arrival { all[1], all[4] = all[4], all[1]; return all }, nil, func(v *Verdict) { v.Disorder = 1 }},
		{"a version is invented", func(all []Arrival) []Arrival {
			return append(all, Arrival{Change: Change{UID: "a", Kind: "pods", Version: 99, Type: "MODIFIED"}, ID: "Y"})
		}, nil, func(v *Verdict) { v.Invented = 1 }},
		{"an object of the first list", func(all []Arrival) []Arrival {
			return append([]Arrival{{Change: Change{UID: "c", Kind: "pods", Version: 3, Type: "ADDED"}, ID: "X"}}, all...)
		}, nil, func(*Verdict) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, want := Judge(past(), tc.fault(perfect()), tc.quiet...), base
			tc.want(&want)
			if len(got.Missing) != want.Lost {
				t.Errorf("%d changes are listed as missing, %d lost", len(got.Missing), want.Lost)
			}
			got.Missing, got.Delay, want.Delay = nil, 0, 0
			if !equal(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
	if got := Judge(past(), perfect()); got.Delay != base.Delay {
		t.Errorf("the median delay is %v, want %v", got.Delay, base.Delay)
	}
}

func equal(a, b Verdict) bool {
	return a.Changes == b.Changes && a.Deletions == b.Deletions && a.Quiet == b.Quiet && a.Lost == b.Lost && a.LostDeletions == b.LostDeletions &&
		a.Copies == b.Copies && a.Repeats == b.Repeats && a.Disorder == b.Disorder && a.Invented == b.Invented
}
