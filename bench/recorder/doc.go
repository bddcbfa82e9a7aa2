// Package recorder measures the journal alone, and the whole daemon, as tattler run starts it, against an API
// server in another process. It has no peer.
package recorder

import "github.com/tattler-dev/tattler/bench/harness"

// Jobs are the measurements of this package.
func Jobs() []harness.Job {
	return []harness.Job{
		{Name: "tattler/journal", Run: written},
		{Name: "tattler/log", Run: firstPage},
		{Name: "tattler/past", Run: states},
		{Name: "tattler/daemon-events", Run: events},
		{Name: "tattler/daemon-webhook", Run: webhooks},
		{Name: "tattler/live-sink", Run: liveSink},
		{Name: "tattler/dead-sink", Run: deadSink},
		{Name: WholeJob, Run: whole},
		{Name: WholeCountJob, Run: wholeCounted},
		{Name: "tattler/daemon-record", Run: record},
		{Name: "tattler/daemon-restart", Run: restart},
	}
}
