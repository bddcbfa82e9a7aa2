// Package suite defines the scenarios, their peers and their aims, and runs them.
//
// A [Scenario] is a server and the jobs that run against it, one after another, round by round:
// A B C, A B C. Its rows have the medians over the rounds.
package suite

import (
	"slices"

	"github.com/tattler-dev/tattler/bench/harness"
)

// Row is a result: one line of the table and of latest.jsonl.
type Row struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Ours and Peer are medians over the rounds, or null if not measured.
	Ours *float64 `json:"ours"`
	Peer *float64 `json:"peer"`
	// Ratio is Ours/Peer.
	Ratio *float64 `json:"ratio"`
	// Aim is for the ratio ("≤ 1.5×") or for Ours ("≤ 1 s"). Without an aim it is empty, and Met is null.
	Aim string `json:"aim"`
	Met *bool  `json:"met"`
	// PeerVersion names the peer.
	PeerVersion string `json:"peerVersion"`
	Rounds      int    `json:"rounds"`
	// N is the number of objects on the server.
	N int `json:"n"`
	// OursSpread and PeerSpread are (maximum-minimum)/median over the rounds.
	OursSpread float64 `json:"oursSpread"`
	PeerSpread float64 `json:"peerSpread"`
	// Note is a caveat for the reader.
	Note string `json:"note,omitempty"`
}

// Aim is the goal of a row. The zero value means no goal: the row is for information.
type Aim struct {
	Text  string
	Limit float64
	// Absolute applies the limit to Ours, not to the ratio.
	Absolute bool
	// AtLeast makes the limit a minimum; otherwise it is a maximum.
	AtLeast bool
}

// met reports whether the row reaches the aim; nil if that is unknown.
func (a Aim) met(r *Row) *bool {
	v := r.Ratio
	if a.Absolute {
		v = r.Ours
	}
	if a.Text == "" || v == nil {
		return nil
	}
	met := *v <= a.Limit
	if a.AtLeast {
		met = *v >= a.Limit
	}
	return &met
}

// Measure selects one value from the samples of a job.
type Measure struct {
	Job string
	// Value reads it from a sample, in the row's unit; false if the sample lacks it.
	Value func(harness.Sample) (float64, bool)
}

// Of is a named value, divided by a number.
func Of(job, name string, by float64) Measure {
	return Measure{job, func(s harness.Sample) (float64, bool) {
		v, ok := s[name]
		return v / by, ok
	}}
}

// Per is the quotient of two values, divided by a number.
func Per(job, name, of string, by float64) Measure {
	return Measure{job, func(s harness.Sample) (float64, bool) {
		v, ok := s[name]
		d, ok2 := s[of]
		return v / d / by, ok && ok2 && d != 0
	}}
}

// RowSpec defines a row.
type RowSpec struct {
	Name, Unit string
	Ours, Peer Measure
	Aim        Aim
	// Beside names the peer if it is not client-go.
	Beside string
	Note   string
}

// Results has the samples of each job, one for each successful round.
type Results map[string][]harness.Sample

// values returns the values of a measure over the rounds, sorted.
func (r Results) values(m Measure) []float64 {
	var list []float64
	for _, s := range r[m.Job] {
		if v, ok := m.Value(s); ok {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return list
}

// row computes the row for a server with n objects.
func (s RowSpec) row(r Results, peerVersion string, n int) Row {
	row := Row{Name: s.Name, Unit: s.Unit, Aim: s.Aim.Text, N: n, PeerVersion: peerVersion, Note: s.Note}
	if s.Beside != "" {
		row.PeerVersion = s.Beside
	}
	ours, peer := r.values(s.Ours), r.values(s.Peer)
	row.Ours, row.OursSpread = median(ours)
	row.Peer, row.PeerSpread = median(peer)
	row.Rounds = max(len(ours), len(peer))
	if row.Ours != nil && row.Peer != nil && *row.Peer != 0 {
		ratio := *row.Ours / *row.Peer
		row.Ratio = &ratio
	}
	row.Met = s.Aim.met(&row)
	return row
}

// median returns the median and the spread of sorted values; nil without values.
func median(sorted []float64) (m *float64, spread float64) {
	n := len(sorted)
	if n == 0 {
		return nil, 0
	}
	v := (sorted[(n-1)/2] + sorted[n/2]) / 2
	if v != 0 {
		spread = (sorted[n-1] - sorted[0]) / v
	}
	return &v, spread
}
