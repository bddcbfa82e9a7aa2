// Package recorder measures what records and delivers: the journal by itself, and the daemon whole, as
// tattler run starts it, against an API server in another process. There is no peer.
package recorder

import "github.com/tattler-dev/tattler/bench/harness"

// Jobs are what can be measured.
func Jobs() []harness.Job {
	return []harness.Job{
		{Name: "tattler/journal", Run: written},
		{Name: "tattler/log", Run: firstPage},
		{Name: "tattler/past", Run: states},
		{Name: "tattler/daemon-events", Run: events},
		{Name: "tattler/daemon-webhook", Run: webhooks},
		{Name: "tattler/live-sink", Run: liveSink},
		{Name: "tattler/dead-sink", Run: deadSink},
		{Name: "tattler/daemon-record", Run: record},
		{Name: "tattler/daemon-restart", Run: restart},
	}
}
