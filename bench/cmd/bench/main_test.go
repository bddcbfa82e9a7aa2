package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/bench/peer"
	"github.com/tattler-dev/tattler/bench/suite"
)

// TestMain lets the test binary be the child, too.
func TestMain(m *testing.M) {
	begin()
	os.Exit(m.Run())
}

// TestJobs: every job that a scenario names exists, and a scenario uses every job except the bare downloads.
func TestJobs(t *testing.T) {
	known, used := map[string]bool{}, map[string]bool{}
	for _, j := range jobs() {
		if known[j.Name] {
			t.Errorf("two jobs are named %s", j.Name)
		}
		known[j.Name] = true
	}
	for _, sc := range suite.Scenarios(suite.Size{Objects: 10}) {
		run := map[string]bool{}
		for _, step := range sc.Jobs {
			run[step.Job] = true
		}
		for _, job := range sc.Warm {
			used[job] = true
		}
		for job := range run {
			used[job] = true
		}
		for _, r := range sc.Rows {
			for _, job := range []string{r.Ours.Job, r.Peer.Job} {
				if job != "" && !run[job] {
					t.Errorf("row %q needs %s, which scenario %s does not run", r.Name, job, sc.Name)
				}
			}
		}
	}
	for job := range used {
		if !known[job] {
			t.Errorf("job %s does not exist", job)
		}
	}
	for job := range known {
		if !used[job] && !strings.HasPrefix(job, "bare/") {
			t.Errorf("no scenario runs %s", job)
		}
	}
}

// TestScenarios runs tiny versions of the scenarios that need no control plane. Every row must have values.
func TestScenarios(t *testing.T) {
	n := 0
	for _, sc := range suite.Scenarios(suite.Size{Objects: 100, Tiny: true}) {
		if sc.Real {
			continue
		}
		if n++; n > 1 {
			sc.Warm = nil // the same for all, and without rows
		}
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel() // the numbers do not matter
			runScenario(t, sc)
		})
	}
	if n == 0 {
		t.Error("there are no scenarios")
	}
}

func runScenario(t *testing.T, sc suite.Scenario) {
	t.Helper()
	rows, err := suite.Run(t.Context(), []suite.Scenario{sc}, suite.Options{Rounds: 1, Seed: 1, Out: t.Output(), PeerVersion: peer.Version()})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || len(rows) != len(sc.Rows) {
		t.Fatalf("there are %d rows, not %d", len(rows), len(sc.Rows))
	}
	for i, r := range rows {
		if r.Ours == nil && sc.Rows[i].Ours.Job != "" || r.Peer == nil && sc.Rows[i].Peer.Job != "" {
			t.Errorf("the row lacks a value: %+v", r)
		}
		if !regexp.MustCompile(`^client-go v0\.37\.\d+$|^(our|its) steady heap$|^nothing$|^one by one$|^no dead sink$|^our first sync$`).MatchString(r.PeerVersion) {
			t.Errorf("row %q has the peer %q", r.Name, r.PeerVersion)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-n", "-1"}, {"surplus"}, {"-run", "("}, {"-nonsense"}} {
		if err := run(args); err == nil {
			t.Errorf("run accepted the arguments %q", args)
		}
	}
}
