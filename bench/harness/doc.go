// Package harness runs measurements, each in a process of its own, and tells what they mean.
//
// A program calls [Main] first: where it was started to make one measurement, Main does that and
// does not return. Otherwise it makes a [Runner], which starts the program again for each
// measurement.
//
//   - A measurement has a deadline, in its own process and in the one that started it.
//   - A child dies with its parent (on Linux, however the parent dies).
package harness

import (
	"context"
	"time"
)

// Job is a measurement. It runs alone in a process.
type Job struct {
	// Name identifies it: side/what, such as "client-go/typed".
	Name string
	// Run measures. ctx ends at the job's deadline.
	Run func(ctx context.Context, in Input) (Sample, error)
}

// Server says how to reach an API server.
type Server struct {
	URL    string `json:"url"`
	CAFile string `json:"caFile"`
	Token  string `json:"token,omitempty"`
	// Control is the address by which the synthetic server is told what to do; empty for a real one.
	Control string `json:"control,omitempty"`
	// Objects is how many pods it has, Widgets how many Widgets.
	Objects int `json:"objects"`
	Widgets int `json:"widgets,omitempty"`
	// Apps is how many applications the pods of the synthetic server are of; 0 is 200.
	Apps int `json:"apps,omitempty"`
}

// Input is what a job is told.
type Input struct {
	Job    string `json:"job"`
	Server Server `json:"server"`
	// Events is how many changes happen; it depends on the job what they are.
	Events int `json:"events,omitempty"`
	// Profile is the file for a CPU profile of the job; empty is none.
	Profile string `json:"profile,omitempty"`
	// Seed is the generator's.
	Seed uint64 `json:"seed,omitempty"`
	// Dir is a folder that the jobs of one round share.
	Dir string `json:"dir,omitempty"`
	// Seconds bound the job, from its start.
	Seconds int `json:"seconds"`
	// MemoryLimit is GOMEMLIMIT, bytes; 0 is none.
	MemoryLimit int64 `json:"memoryLimit,omitempty"`
}

func (in Input) limit() time.Duration { return time.Duration(in.Seconds) * time.Second }

// Sample is what one run of a job measured, by name. Names end in the unit: "cpu s", "heap B".
type Sample map[string]float64
