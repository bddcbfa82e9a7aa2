package compare

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Verdict is what a peer did with the changes of the cluster. All but Delay are counts.
type Verdict struct {
	Changes   int // in the cluster
	Deletions int // of these

	Quiet         int // changes that its rules leave out, and that it recorded
	Lost          int // other changes that never arrived
	LostDeletions int // of these
	Copies        int // repeats that a consumer can drop, by an ID that the first one had
	Repeats       int // repeats without an ID, or under another one
	Disorder      int // changes that first arrived after a later one of the same object
	Invented      int // versions that the cluster never had

	Delay   time.Duration // median, from the observer to the first arrival
	Missing []Change      // what was lost
}

// identity is the same for a change of the observer and its arrival. The version in a deletion's record is the deletion's,
// or the last one that the peer knew, so deletions are compared without.
type identity struct {
	uid     string
	version int64
	deleted bool
}

func identityOf(c Change) identity {
	if c.Type == "DELETED" {
		return identity{uid: c.UID, deleted: true}
	}
	return identity{uid: c.UID, version: c.Version}
}

// Judge compares what arrived with what the observer saw. It ignores arrivals of versions before the observer's first, such as
// those of a first list. A change in quiet that did not arrive is counted apart; nothing else is excused.
func Judge(seen []Change, arrived []Arrival, quiet ...Change) Verdict {
	var v Verdict
	if len(seen) == 0 {
		return v
	}
	begin := slices.MinFunc(seen, func(a, b Change) int { return cmp.Compare(a.Version, b.Version) }).Version
	truth := make(map[identity]Change, len(seen))
	for _, c := range seen {
		truth[identityOf(c)] = c
	}

	leftOut := make(map[identity]bool, len(quiet))
	for _, c := range quiet {
		leftOut[identityOf(c)] = true
	}
	first := map[identity]Arrival{}
	ids := map[string]bool{}
	newest := map[string]int64{} // by UID
	var delays []time.Duration
	for _, a := range arrived {
		id := identityOf(a.Change)
		actual, known := truth[id]
		switch earlier, again := first[id]; {
		case again && a.ID != "" && a.ID == earlier.ID:
			v.Copies++
			continue
		case again:
			v.Repeats++
			continue
		case a.ID != "" && ids[a.ID]:
			v.Repeats++ // a consumer that drops repeats by ID would drop this change
			continue
		case !known && a.Version < begin:
			continue
		case !known:
			v.Invented++
			continue
		}
		first[id] = a
		ids[a.ID] = true
		if actual.Version < newest[a.UID] {
			v.Disorder++
		}
		newest[a.UID] = max(newest[a.UID], actual.Version)
		delays = append(delays, a.At.Sub(actual.At))
	}

	v.Changes = len(truth)
	for id, c := range truth {
		if id.deleted {
			v.Deletions++
		}
		if _, ok := first[id]; ok {
			continue
		}
		if leftOut[id] {
			v.Quiet++
			continue
		}
		v.Lost++
		v.Missing = append(v.Missing, c)
		if id.deleted {
			v.LostDeletions++
		}
	}
	slices.SortFunc(v.Missing, func(a, b Change) int { return cmp.Compare(a.Version, b.Version) })
	v.Delay = Median(delays)
	return v
}

// Median returns the middle one, or the lower of the two in the middle; zero for none.
func Median[T cmp.Ordered](all []T) T {
	if len(all) == 0 {
		var zero T
		return zero
	}
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)-1)/2]
}

// String describes the change in a line.
func (c Change) String() string {
	return fmt.Sprintf("%s %s %s at version %d", c.Type, c.Kind, c.Name, c.Version)
}
