package ops

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/internal/control"
	"github.com/tattler-dev/tattler/internal/leaktest"
)

var update = flag.Bool("update", false, "write testdata/metrics.txt and docs/metrics.md")

func TestMain(m *testing.M) { leaktest.Main(m) }

// golden compares a file with its expected text, or writes it.
func golden(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s does not match the code: run `go test ./internal/ops -update`; it should be:\n%s", file, want)
	}
}

// began is when the daemon of full was started.
var began = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// full is a status with everything set, including what must not be public: that contains the word geheim.
func full() control.Status {
	return control.Status{
		Version: "v1.2.3", Cluster: "geheim-cluster", PID: 17, Started: began, Settled: true,
		Away: "dial tcp 10.0.0.1:6443: token geheim", AwaySince: began,
		Audits: []control.Audits{
			{Resource: "configmaps", Passed: 3, Missed: 1, Failed: 2},
			{Resource: "widgets.example.com", Contents: true, Passed: 2, Reread: 40},
		},
		Streams: []control.Stream{
			{Resource: "deployments.apps", Version: "v1", Namespace: "geheim-shop", Selection: "app=geheim", State: control.Live,
				Since: began, Objects: 3, ResourceVersion: "987654321", Lists: 1, Watches: 10, Gaps: 2},
			{Resource: "deployments.apps", Version: "v1", Namespace: "geheim-pay", State: control.Waiting,
				Since: began, TryingSince: began.Add(-90 * time.Second), Error: "geheim", Objects: 4, ResourceVersion: "987654321", Lists: 2, Watches: 20, Gaps: 1},
			{Resource: "pods", Version: "v1", State: control.Listing, Since: began, TryingSince: began, Objects: 100, Lists: 1},
			{Resource: "secrets", Version: "v1", State: control.Forbidden, Since: began, Error: "geheim"},
			{Resource: "roles.rbac.authorization.k8s.io", Version: "v1", State: control.Forbidden, Since: began, Error: "geheim", ResourceVersion: "987654321"},
			{Resource: "widgets.example.com", Version: "v1", State: control.Gone, Since: began, Error: "geheim", Gaps: 1},
		},
		Journal: control.Journal{
			Path: "/geheim/journal.db", Used: 1000, Free: 200, Log: 30, Limit: 4000, States: 2500, ClockJump: 31536000, ClockHold: 3600, Age: 86400, First: 5, Last: 987654321,
			Oldest: began.Add(-time.Hour), Newest: began.Add(1500 * time.Millisecond), Cut: began.Add(-time.Minute), CutNamespace: "geheim-shop", CutCluster: "geheim",
			Recorded: 50, Quiet: 20, Duplicates: 3, Commits: 7, Removed: 4, Error: "geheim: no space left on device", ErrorAt: began, Failures: 2,
		},
		Sinks: []control.Sink{
			{Name: "file", To: "file /geheim.jsonl", State: "running", Cursor: 987654321, Delivered: 30, Attempts: 12},
			{Name: "hook", To: "webhook https://geheim", State: "retrying", Cursor: 987654321, Behind: 8, LagSeconds: 61.5, Dead: 2, SetAside: 1,
				Delivered: 22, Attempts: 33, Failures: 5, Lost: 6, FilterErrors: 9, FilterError: "geheim", Error: "geheim", ErrorAt: began, RetryAt: began},
		},
		Traces: &control.Traces{To: "https://geheim:4318", Exported: 90, Dropped: 14, Queued: 6, Error: "geheim", ErrorAt: began},
		Orders: []control.OrderCount{{Order: "pause", Done: 3, Refused: 1, Failed: 2}},

		PageRefusals: []control.PageRefusal{{Reason: "connections", Count: 8}, {Reason: "streams"}},
	}
}

// answering returns a Status function with a fixed result.
func answering(s control.Status) func(context.Context) (control.Status, error) {
	return func(context.Context) (control.Status, error) { return s, nil }
}
