package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/bench/peer"
	"github.com/tattler-dev/tattler/bench/suite"
)

// TestMain lets the test's program be the child, too.
func TestMain(m *testing.M) {
	begin()
	os.Exit(m.Run())
}

// TestJobs: every job that a scenario names is there, and every job that measures something is used.
func TestJobs(t *testing.T) {
	known, used := map[string]bool{}, map[string]bool{}
	for _, j := range jobs() {
		if known[j.Name] {
			t.Errorf("job %s is there twice", j.Name)
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
					t.Errorf("row %q wants %s, which scenario %s does not run", r.Name, job, sc.Name)
				}
			}
		}
	}
	for job := range used {
		if !known[job] {
			t.Errorf("there is no job %s", job)
		}
	}
	for job := range known {
		if !used[job] && !strings.HasPrefix(job, "bare/") {
			t.Errorf("no scenario runs %s", job)
		}
	}
}

// TestScenarios runs what needs no control plane, small, and wants a value in every row.
func TestScenarios(t *testing.T) {
	var scenarios []suite.Scenario
	for _, sc := range suite.Scenarios(suite.Size{Objects: 300, Quick: true}) {
		if !sc.Real && sc.Name != "million" {
			scenarios = append(scenarios, sc)
		}
	}
	rows, err := suite.Run(t.Context(), scenarios, suite.Options{Rounds: 1, Seed: 1, Out: t.Output(), PeerVersion: peer.Version()})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Fatal("there are no rows")
	}
	for _, r := range rows {
		if r.Ours == nil || r.Peer == nil && r.Unit != "" && r.PeerVersion != suite.Alone {
			t.Errorf("a value is missing: %+v", r)
		}
		if !regexp.MustCompile(`^client-go v0\.37\.\d+$|^(our|its) steady heap$|^nothing$`).MatchString(r.PeerVersion) {
			t.Errorf("row %q is beside %q", r.Name, r.PeerVersion)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-n", "-1"}, {"surplus"}, {"-run", "("}, {"-nonsense"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
