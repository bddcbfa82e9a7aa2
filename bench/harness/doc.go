// Package harness runs measurements, each in a separate process.
//
// A program calls [Main] first. If it was started to make one measurement, Main makes it and does
// not return. Otherwise the program calls [Run] for each measurement, which starts the program
// again.
//
//   - A measurement has a deadline, both in its process and in the parent.
//   - A child dies with its parent (on Linux, however the parent dies).
package harness

import (
	"context"
	"time"
)

// Job is a measurement. It has a process to itself.
type Job struct {
	// Name identifies it: side/what, such as "client-go/typed".
	Name string
	// Run measures. ctx ends at the job's deadline.
	Run func(ctx context.Context, in Input) (Sample, error)
}

// Server is the address of an API server, and its size.
type Server struct {
	URL    string `json:"url"`
	CAFile string `json:"caFile"`
	Token  string `json:"token,omitempty"`
	// Control is the address of the synthetic server's control; empty for a real server.
	Control string `json:"control,omitempty"`
	// Objects is the number of pods, Widgets the number of Widgets.
	Objects int `json:"objects"`
	Widgets int `json:"widgets,omitempty"`
	// Apps is the number of applications of the synthetic server's pods; 0 means 200.
	Apps int `json:"apps,omitempty"`
}

// Input is the input of a job.
type Input struct {
	Job    string `json:"job"`
	Server Server `json:"server"`
	// Events is the number of changes; their kind depends on the job.
	Events int `json:"events,omitempty"`
	// Part is the part of the job to measure; empty means all.
	Part string `json:"part,omitempty"`
	// Profile is the file for a CPU profile of the job; empty means no profile.
	Profile string `json:"profile,omitempty"`
	// Seed is the seed of the generator.
	Seed uint64 `json:"seed,omitempty"`
	// Dir is a folder that the jobs of one round share.
	Dir string `json:"dir,omitempty"`
	// Counted is set in a process whose instructions are counted: see Counter.Run and Count.
	Counted *Counted `json:"counted,omitempty"`
	// NoGC turns garbage collection off in the job's process.
	NoGC bool `json:"noGC,omitempty"`
	// Seconds is the job's time limit.
	Seconds int `json:"seconds"`
	// MemoryLimit is GOMEMLIMIT, bytes; 0 means no limit.
	MemoryLimit int64 `json:"memoryLimit,omitempty"`
}

func (in Input) limit() time.Duration { return time.Duration(in.Seconds) * time.Second }

// Sample has the values that one run of a job measured, by name. A name ends in the unit: "cpu s", "heap B".
type Sample map[string]float64
