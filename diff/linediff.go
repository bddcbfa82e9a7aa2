package diff

import (
	"fmt"
	"sort"
	"strings"
)

// region: lines a[a0:a1] became b[b0:b1]; one of the two may be empty.
type region struct{ a0, a1, b0, b1 int }

// maxEdits bounds the work of changedRegions: its time is the number of lines times the edits, its memory the square of the
// edits (a few MB).
const maxEdits = 1000

// changedRegions finds a smallest set of lines to remove and add (Myers, "An O(ND) Difference Algorithm and Its Variations",
// 1986). ok is false if it would take more than maxEdits.
func changedRegions(a, b []string) (regions []region, ok bool) {
	front := 0
	for front < min(len(a), len(b)) && a[front] == b[front] {
		front++
	}
	back := 0
	for back < min(len(a), len(b))-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	midA, midB := a[front:len(a)-back], b[front:len(b)-back]
	if len(midA) == 0 || len(midB) == 0 {
		if len(midA)+len(midB) == 0 {
			return nil, true
		}
		return []region{{front, front + len(midA), front, front + len(midB)}}, true
	}
	same, ok := commonLines(midA, midB)
	if !ok {
		return nil, false
	}
	var x, y int
	for _, s := range append(same, [2]int{len(midA), len(midB)}) {
		if s[0] > x || s[1] > y {
			regions = append(regions, region{front + x, front + s[0], front + y, front + s[1]})
		}
		x, y = s[0]+1, s[1]+1
	}
	return regions, true
}

// commonLines returns the indexes in a and b of a longest common subsequence, in order.
func commonLines(a, b []string) (same [][2]int, ok bool) {
	// reach[k+offset] is how far the paths on diagonal k (x - y) have come in a; trace keeps its state before each edit, for
	// backtrack.
	offset := min(len(a)+len(b), maxEdits) + 1
	reach := make([]int, 2*offset+1)
	var trace [][]int
	for d := 0; d < offset; d++ {
		trace = append(trace, append([]int(nil), reach[offset-d-1:offset+d+2]...))
		for k := -d; k <= d; k += 2 {
			x := reach[offset+k-1] + 1
			if k == -d || k != d && reach[offset+k-1] < reach[offset+k+1] {
				x = reach[offset+k+1]
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			reach[offset+k] = x
			if x >= len(a) && x-k >= len(b) {
				return backtrack(trace, len(a), len(b)), true
			}
		}
	}
	return nil, false
}

// backtrack follows the path back from (x, y) and returns the shared lines.
func backtrack(trace [][]int, x, y int) [][2]int {
	var same [][2]int
	for d := len(trace) - 1; d >= 0; d-- {
		reach, zero := trace[d], d+1 // diagonal k is reach[zero+k]
		k := x - y
		prev := k - 1
		if k == -d || k != d && reach[zero+k-1] < reach[zero+k+1] {
			prev = k + 1
		}
		prevX := reach[zero+prev]
		if d == 0 {
			prevX, prev = 0, 0
		}
		for x > prevX && y > prevX-prev {
			x--
			y--
			same = append(same, [2]int{x, y})
		}
		x, y = prevX, prevX-prev
	}
	for i, j := 0, len(same)-1; i < j; i, j = i+1, j-1 {
		same[i], same[j] = same[j], same[i]
	}
	return same
}

// hunks returns the lines of the regions with context; a note marks omitted lines between them. most bounds the removed and
// the added lines per region; left counts those that are omitted.
func hunks(regions []region, a, b []string, context, most int) (out []Line, left int) {
	beginning := func(lines []string) []string {
		n := min(len(lines), most)
		left += len(lines) - n
		return lines[:n]
	}
	shown := 0 // in lines of a
	for i, r := range regions {
		start := max(shown, r.a0-context)
		if i > 0 && start > shown {
			out = append(out, Line{NoteLine, "    …"})
		}
		for _, l := range a[start:r.a0] {
			out = append(out, bodyLine(ContextLine, l))
		}
		for _, l := range beginning(a[r.a0:r.a1]) {
			out = append(out, bodyLine(RemoveLine, l))
		}
		for _, l := range beginning(b[r.b0:r.b1]) {
			out = append(out, bodyLine(AddLine, l))
		}
		shown = min(len(a), r.a1+context)
		if i+1 < len(regions) {
			shown = min(shown, regions[i+1].a0)
		}
		for _, l := range a[r.a1:shown] {
			out = append(out, bodyLine(ContextLine, l))
		}
	}
	return out, left
}

// fitting returns hunks of at most so many lines, as far as possible: first with less context, then with less of each region,
// but always with some removed and some added lines.
func fitting(regions []region, a, b []string, context, lines int) ([]Line, int) {
	whole := max(len(a), len(b))
	for ; ; context-- {
		if out, left := hunks(regions, a, b, context, whole); len(out) <= lines || context == 0 {
			if len(out) <= lines {
				return out, left
			}
			break
		}
	}
	most := sort.Search(min(lines, whole), func(n int) bool { // the first number that is too large
		out, _ := hunks(regions, a, b, 0, n+1)
		return len(out) > lines
	})
	return hunks(regions, a, b, 0, max(most, 1))
}

// maxPlaces bounds the places in a header.
const maxPlaces = 5

// places names the regions: "line 2 of 3", "lines 2-4, 9 of 30", "line 7 of 12 removed".
func places(regions []region, lenA, lenB int, unit string) string {
	added, removed := true, true
	for _, r := range regions {
		added = added && r.a0 == r.a1
		removed = removed && r.b0 == r.b1
	}
	total, verb := lenB, ""
	switch {
	case removed:
		total, verb = lenA, " removed"
	case added:
		verb = " added"
	}
	var list []string
	plural := len(regions) > 1
	for i, r := range regions {
		if i == maxPlaces {
			list = append(list, "…")
			break
		}
		from, to := r.b0, r.b1
		if removed {
			from, to = r.a0, r.a1
		}
		plural = plural || to-from > 1
		switch to - from {
		case 0:
			list = append(list, fmt.Sprintf("after %d", from))
		case 1:
			list = append(list, fmt.Sprint(to))
		default:
			list = append(list, fmt.Sprintf("%d-%d", from+1, to))
		}
	}
	if plural {
		unit += "s"
	}
	return fmt.Sprintf("%s %s of %d%s", unit, strings.Join(list, ", "), total, verb)
}
