package suite

import "time"

// Alone is the peer's name in a row without a peer.
const Alone = "nothing"

// below and above are absolute aims.
func below(text string, limit float64) Aim {
	return Aim{Text: "≤ " + text, Limit: limit, Absolute: true}
}
func above(text string, limit float64) Aim {
	return Aim{Text: "≥ " + text, Limit: limit, Absolute: true, AtLeast: true}
}

// daemon measures tattler run, and the journal alone.
func daemon(z Size) []Scenario {
	all := []Scenario{journal(z), firstPage(z), past(z), capture(z), perStage(z), daemonRestart(z)}
	for i := range all {
		for k := range all[i].Rows {
			all[i].Rows[k].Beside = Alone
		}
	}
	return all
}

func journal(z Size) Scenario {
	job := "tattler/journal"
	return Scenario{Name: "journal", Objects: 500, Events: z.scale(100_000), Jobs: jobs(job), Rows: []RowSpec{
		{Name: "journal: prepared batches of 500 heartbeats, each synced", Unit: "1/s", Ours: Of(job, "heartbeat rows/s", 1), Aim: above("10,000/s", 10_000)},
		{Name: "journal: prepared batches of 500 image changes, each synced", Unit: "1/s", Ours: Of(job, "image rows/s", 1), Aim: above("10,000/s", 10_000)},
		{Name: "journal: from a change to its commit at 1,000/s, p99", Unit: "ms", Ours: Of(job, "heartbeat p99 ms", 1), Aim: below("50 ms", 50)},
		{Name: "journal: a heartbeat of a node, all in", Unit: "B", Ours: Of(job, "heartbeat B", 1), Aim: below("250 B", 250)},
		{Name: "journal: a change of a pod's image, all in", Unit: "B", Ours: Of(job, "image B", 1), Aim: below("250 B", 250)},
	}}
}

func firstPage(z Size) Scenario {
	job := "tattler/log"
	sc := Scenario{Name: "log", Objects: 500, Events: z.scale(1_000_000), Jobs: []Step{{Job: job, Limit: 15 * time.Minute}}}
	for _, by := range []struct{ what, name string }{
		{"newest", "log of 1,000,000 changes: first page"},
		{"object", "log of 1,000,000 changes: first page of an object"},
		{"kind", "log of 1,000,000 changes: a rare kind"},
		{"namespace", "log of 1,000,000 changes: a rare namespace"},
		{"manager", "log of 1,000,000 changes: a rare manager"},
		{"operation", "log of 1,000,000 changes: a rare operation"},
	} {
		sc.Rows = append(sc.Rows, RowSpec{Name: by.name, Unit: "ms", Ours: Of(job, by.what+" ms", 1), Aim: below("50 ms", 50)})
	}
	return sc
}

func capture(z Size) Scenario {
	events, hook := "tattler/daemon-events", "tattler/daemon-webhook"
	return Scenario{Name: "daemon", Objects: z.scale(5000), Events: z.scale(30_000), Jobs: jobs(events, hook), Rows: []RowSpec{
		{Name: "daemon: from an update to its commit, whole", Unit: "1/s", Ours: Per(events, "sent", "events s", 1), Aim: above("3,000/s", 3000),
			Note: "pending updates of pods, on two processors that the server shares"},
		{Name: "daemon: CPU for each", Unit: "µs", Ours: Per(events, "events cpu s", "sent", 1e-6)},
		{Name: "daemon: from a change to the webhook, median", Unit: "ms", Ours: Of(hook, "median ms", 1)},
		{Name: "daemon: from a change to the webhook, p99", Unit: "ms", Ours: Of(hook, "p99 ms", 1)},
	}}
}

func daemonRestart(z Size) Scenario {
	n := z.scale(100_000)
	first, again := "tattler/daemon-record", "tattler/daemon-restart"
	return Scenario{Name: "daemon-restart", Objects: n, Jobs: jobs(first, again), Rows: []RowSpec{
		{Name: "daemon, 100,000 pods: first start until all are recorded", Unit: "s", Ours: Of(first, "recorded s", 1)},
		{Name: "daemon, 100,000 pods: RSS", Unit: "MiB", Ours: Of(first, "steady rss B", mib), Aim: below("400 MiB", 400)},
		{Name: "daemon, 100,000 pods: peak RSS", Unit: "MiB", Ours: Of(first, "steady peak rss B", mib)},
		{Name: "daemon, 100,000 pods: live heap", Unit: "MiB", Ours: Of(first, "steady heap B", mib)},
		{Name: "daemon, 100,000 pods: restart until live", Unit: "s", Ours: Of(again, "live s", 1), Aim: below("3 s", 3)},
		{Name: "daemon, 100,000 pods: RSS after a restart", Unit: "MiB", Ours: Of(again, "steady rss B", mib), Aim: below("400 MiB", 400)},
		{Name: "daemon, 100,000 pods: peak RSS of a restart", Unit: "MiB", Ours: Of(again, "steady peak rss B", mib)},
		{Name: "daemon, 100,000 pods: lists in a restart, beyond limit=1", Unit: "", Ours: Of(again, "lists", 1), Aim: Aim{Text: "0", Limit: 0, Absolute: true}},
	}}
}
