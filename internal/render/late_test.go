package render

import (
	"strings"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
	"github.com/tattler-dev/tattler/internal/change"
)

// TestMembersAtTheEnd: members that changed while their workload did not cause no second line at the end that repeats the
// last one.
func TestMembersAtTheEnd(t *testing.T) {
	p := newPlay(t, narrow)
	shop(p)
	setImage(p, "shop/web:1.6")
	p.at(0.1)
	counts(p, 2, 2, 0)
	p.at(120)
	p.write(kcm+"/status", "ReplicaSet/web-86c9647fcb", set{"status.fullyLabeledReplicas", int64(2)})
	p.at(2000)
	before := p.out.Len()
	if got := p.end()[before:]; got != "" {
		t.Errorf("at the end:\n%s", got)
	}
}

// TestHeirs: a deleted workload's objects are part of its story, even if they did not change for so long that they were
// forgotten, and are deleted some seconds later.
func TestHeirs(t *testing.T) {
	p := newPlay(t, narrow)
	shop(p)
	p.at(10)
	p.remove("Deployment/web")
	p.at(12)
	p.remove("ReplicaSet/web-77dc77595")
	for i, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
		p.at(14 + float64(i)*0.1)
		stop(p, suffix)
	}
	for i, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
		p.at(20 + float64(i))
		p.remove("Pod/web-77dc77595-" + suffix)
	}
	p.at(60)
	if got := p.end(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "deploy/web                     3 pods gone") {
		t.Errorf("got\n%s", got)
	}
}

// TestLaggards: a rollout may be complete before its pods are seen to be ready; they are part of its line.
func TestLaggards(t *testing.T) {
	p := newPlay(t, narrow)
	shop(p)
	setImage(p, "shop/web:1.6")
	p.at(0.1)
	counts(p, 0, 3, 0)
	for _, suffix := range []string{"a", "b", "c"} {
		podStarts(p, "web-86c9647fcb-"+suffix)
	}
	for _, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
		stop(p, suffix)
		p.remove("Pod/web-77dc77595-" + suffix)
	}
	p.at(12)
	counts(p, 0, 3, 3)
	p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(2)}, set{"status.updatedReplicas", int64(3)}, set{"status.conditions", []any{
		obj{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": p.now.Format(time.RFC3339)}}})
	p.at(14)
	for _, suffix := range []string{"a", "b", "c"} {
		p.write("kubelet/status", "Pod/web-86c9647fcb-"+suffix, set{"status", runningStatus(p.now)})
	}
	p.at(30)
	if got := p.end(); strings.Contains(got, "pod/") || !strings.Contains(got, "rolled out in 12 s: 3/3 ready, 3 pods replaced") {
		t.Errorf("got\n%s", got)
	}
}

// TestOrphansAtTheEnd: the orphans of a failed Job are not a failure, and at the end its line does not say that the Job
// exists.
func TestOrphansAtTheEnd(t *testing.T) {
	play := func(o Options) string {
		p := newPlay(t, o)
		p.have(day, parse(t, `{"kind":"Job","metadata":{"name":"import","namespace":"shop"},"spec":{"completions":1},
			"status":{"failed":1,"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}}`))
		for _, name := range []string{"import-a", "import-b"} {
			p.have(day, parse(t, `{"kind":"Pod","metadata":{"name":"`+name+`","namespace":"shop",
				"ownerReferences":[{"kind":"Job","name":"import","uid":"uid-import","controller":true}]},"status":{"phase":"Failed"}}`))
		}
		p.remove("Job/import")
		p.at(0.1)
		p.write("?", "Pod/import-a", set{"metadata.deletionTimestamp", p.now.Format(time.RFC3339)})
		p.remove("Pod/import-a")
		p.write("?", "Pod/import-b", set{"metadata.deletionTimestamp", p.now.Format(time.RFC3339)})
		p.at(3)
		return p.end()
	}
	if got := play(narrow); strings.Contains(got, "owns") || !strings.Contains(got, "job/import                     1 pod gone, 1 pod terminating") {
		t.Errorf("at the end:\n%s", got)
	}
	o := narrow
	o.Severities = []event.Severity{event.Failure}
	if got := play(o); got != "" {
		t.Errorf("shown as a failure:\n%s", got)
	}
}

// TestWavering: a line about pods that are ready again has the time at which they became ready, even if a crashing pod
// delays it.
func TestWavering(t *testing.T) {
	p := newPlay(t, narrow)
	shop(p)
	crash := func(at float64, n int, ready int64) {
		p.at(at)
		s := waiting("CrashLoopBackOff", n)
		if ready == 3 {
			s = running(n)
		}
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", ready}, set{"status.availableReplicas", ready})
		p.write(kcm+"/status", "ReplicaSet/web-77dc77595", set{"status.readyReplicas", ready}, set{"status.availableReplicas", ready})
		p.write("kubelet/status", "Pod/web-77dc77595-xdkdf", set{"status", s})
	}
	crash(1, 1, 2)
	crash(20, 2, 3)
	crash(40, 2, 2)
	crash(60, 3, 3)
	p.at(115)
	if got := p.end(); !strings.Contains(got, "10:43:07 · deploy/web  3/3 ready again, after 59 s; before that: 1 pod CrashLoopBackOff") {
		t.Errorf("got\n%s", got)
	}
}

// TestMissedCrash: if a pod crashed and was deleted during an absence, and both are seen at once, the crash has a line
// with its time.
func TestMissedCrash(t *testing.T) {
	for _, lasted := range []time.Duration{0, time.Second, 8 * time.Second} {
		p := newPlay(t, Options{Terminal: true, Width: 120})
		shop(p)
		p.at(60)
		happened := morning.Add(20 * time.Second)
		p.stamp = func(c *change.Change) { c.Since, c.Time = morning.Add(10*time.Second), happened }
		p.write("kubelet/status", "Pod/web-77dc77595-xdkdf", set{"status", waiting("CrashLoopBackOff", 4)})
		if lasted > 0 {
			happened = happened.Add(lasted)
			p.write("kubelet/status", "Pod/web-77dc77595-xdkdf", set{"status", runningStatus(happened)})
		} else {
			p.stamp = func(c *change.Change) { c.Since, c.Time = morning.Add(10*time.Second), c.At }
			stop(p, "xdkdf")
			p.remove("Pod/web-77dc77595-xdkdf")
		}
		p.at(200)
		p.end()
		shown := strings.Contains(p.out.String(), "10:42:27 ·   pod/web-77dc77595-xdkdf      CrashLoopBackOff: exit code 1, 4 restarts")
		if !shown {
			t.Errorf("it lasted %v (0: unknown), and is not shown:\n%s", lasted, p.out.String())
		}
	}
}
