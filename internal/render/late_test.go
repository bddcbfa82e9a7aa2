package render

import (
	"strings"
	"testing"
	"time"
)

// TestMembersAtTheEnd: what a workload's pods did while it did not change itself has no second line at the end that says
// the same as the last one.
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

// TestFrom: a story that was over when the time that was asked for began has no line, unless something that belongs to
// it happened since.
func TestFrom(t *testing.T) {
	for _, tc := range []struct {
		from  float64
		shown bool
	}{{0, true}, {12.5, true}, {13, true}, {14.5, true}, {15, false}} {
		p := newPlay(t, Options{Terminal: true, Width: 120, From: morning.Add(time.Duration(tc.from * float64(time.Second)))})
		shop(p)
		setImage(p, "shop/web:1.6")
		p.at(0.1)
		counts(p, 0, 3, 0)
		podStarts(p, "web-86c9647fcb-a")
		p.at(12)
		counts(p, 0, 3, 3)
		p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(2)}, set{"status.updatedReplicas", int64(3)})
		p.at(14.5)
		p.write("kubelet/status", "Pod/web-86c9647fcb-a", set{"status", runningStatus(p.now)})
		p.at(30)
		if got := p.end(); strings.Contains(got, "rolled out") != tc.shown {
			t.Errorf("from %v s on:\n%s", tc.from, got)
		}
	}
}

// TestForget: stories in which nothing happened since a time are not told at the end; the others are.
func TestForget(t *testing.T) {
	p := newPlay(t, narrow)
	podStarts(p, "web-1-a")
	p.at(1)
	podStarts(p, "web-2-b")
	p.at(3)
	p.text.Forget(morning.Add(time.Second))
	if got := p.end(); strings.Contains(got, "web-1-a") || !strings.Contains(got, "web-2-b") {
		t.Errorf("at the end:\n%s", got)
	}
}

// TestOnlyMembers: of a workload of which only members changed, the line does not say that it changed.
func TestOnlyMembers(t *testing.T) {
	p := newPlay(t, narrow)
	p.have(day, parse(t, `{"kind":"CronJob","metadata":{"name":"nightly","namespace":"shop"},"spec":{"schedule":"* * * * *"},"status":{"active":[{"name":"nightly-1"}]}}`))
	p.write(kcm+"/status", "CronJob/nightly", set{"status.lastScheduleTime", p.now.Format(time.RFC3339)})
	p.at(70)
	before := p.out.Len()
	p.create(kcm, parse(t, `{"kind":"Job","metadata":{"name":"nightly-1","uid":"uid-nightly-1","namespace":"shop",
		"ownerReferences":[{"kind":"CronJob","name":"nightly","uid":"uid-nightly","controller":true}]},"spec":{"completions":1},"status":{}}`))
	p.at(80)
	if got := p.end()[before:]; strings.Contains(got, "and back") || !strings.Contains(got, "what it owns changed") {
		t.Errorf("at the end:\n%s", got)
	}
}

// TestHeirs: what a deleted workload owned is part of its story, also where it did not change for so long that nobody
// remembers it, and is deleted some seconds later.
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

// TestLaggards: that a rollout is complete may be known before its pods are seen to be ready: they are part of its line.
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
