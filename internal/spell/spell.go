// Package spell suggests corrections of misspelt names.
package spell

import "strings"

// Nearest returns the known name closest to name, ignoring case: at most two edits away, fewer for short names. Failing
// that, it returns one that is a prefix of name or has it as a prefix, else "". The first of equally close names wins.
func Nearest(name string, known []string) string {
	best, near, kin := 3, "", ""
	lower := strings.ToLower(name)
	for _, k := range known {
		other := strings.ToLower(k)
		if d := edits(lower, other); d < min(best, len(k)/2+1) {
			best, near = d, k
		}
		if kin == "" && min(len(lower), len(other)) > 2 && (strings.HasPrefix(other, lower) || strings.HasPrefix(lower, other)) {
			kin = k
		}
	}
	if near == "" {
		return kin
	}
	return near
}

// edits returns the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
