package render

import (
	"fmt"
	"testing"
	"time"

	"github.com/tattler-dev/tattler/event"
)

// scenarios are short plays, each with a golden of its name.
var scenarios = []struct {
	name, why string
	o         Options
	play      func(p *play)
}{
	{"crashloop", "each restart is printed with its exit code, and nothing in between", terminal, func(p *play) {
		name := "web-86c9647fcb-dvmwn"
		podStarts(p, name)
		p.at(1)
		crash := func(restarts int) {
			p.write("kubelet/status", "Pod/"+name, set{"status", since(p.now, waiting("CrashLoopBackOff", restarts))})
		}
		crash(1)
		for i, at := range []float64{12, 32, 75} {
			p.at(at)
			p.write("kubelet/status", "Pod/"+name, set{"status", since(p.now, running(i+2))})
			p.at(at + 0.5)
			crash(i + 2)
		}
		p.at(160)
		p.write("kubelet/status", "Pod/"+name, set{"status", since(p.now, running(5))})
		p.at(300)
		p.remove("Pod/" + name)
	}},
	{"image-pull", "the two reasons alternate: printed once, then once a minute with the count", terminal, func(p *play) {
		name := "web-86c9647fcb-dvmwn"
		podStarts(p, name)
		for i := range 12 {
			p.at(2 + float64(10*i))
			p.write("kubelet/status", "Pod/"+name, set{"status", waiting("ErrImagePull", 0)})
			p.at(3.5 + float64(10*i))
			p.write("kubelet/status", "Pod/"+name, set{"status", waiting("ImagePullBackOff", 0)})
		}
		p.at(130)
		p.write("kubelet/status", "Pod/"+name, set{"status", runningStatus(p.now)})
		p.at(140)
	}},
	{"pending", "a pod that waits silently is printed within 10 s, and again when it continues", terminal, func(p *play) {
		p.create(kcm, newPod(p.t, "web-1-a"))
		p.write("kube-scheduler/status", "Pod/web-1-a", set{"status.conditions", []any{obj{
			"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu.",
		}}})
		p.at(50)
		p.write("?", "Pod/web-1-a", set{"spec.nodeName", "n1"}, set{"status", runningStatus(p.now)})
		p.at(60)
	}},
	{"stuck-termination", "a pod has a line when its grace period is over", terminal, func(p *play) {
		shop(p)
		p.at(1)
		stop(p, "xdkdf")
		p.at(100)
		p.remove("Pod/web-77dc77595-xdkdf")
	}},
	{"short-life", "a pod that is deleted before its first line has one line", terminal, func(p *play) {
		podStarts(p, "web-86c9647fcb-dvmwn")
		p.at(4)
		p.remove("Pod/web-86c9647fcb-dvmwn")
		p.at(30)
	}},
	{"recreated", "the same name with another UID: two lines", terminal, func(p *play) {
		p.create("kubectl", parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}`))
		p.remove("ConfigMap/a")
		p.create("kubectl", parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"2"}}`))
	}},
	{"pod-churn", "pods of one name with a pending line: two lives, two lines", terminal, func(p *play) {
		for range 2 {
			podStarts(p, "db-0")
			p.remove("Pod/db-0")
		}
		p.at(30)
	}},
	{"created-twice", "a repeated creation loses nothing", terminal, func(p *play) {
		pod := newPod(p.t, "web-1-a")
		pod["metadata"].(obj)["uid"] = "1"
		p.create(kcm, pod)
		p.create(kcm, clone(pod))
		p.at(30)
	}},
	{"created", "15 lines of its spec, without defaults; its later state is folded", terminal, created},
	{"created-full", "--full: all of it", Options{Terminal: true, Full: true}, created},
	{"hot", "more than ten lines a minute become one per 10 s, until a minute with few changes", terminal, func(p *play) {
		p.have(day, parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"leader-x"},"data":{"n":"0"}}`))
		for i := range 60 {
			p.at(float64(i) / 2)
			p.write("elector", "ConfigMap/leader-x", set{"data.n", fmt.Sprint("v", i)})
		}
		p.at(150)
		p.write("kubectl", "ConfigMap/leader-x", set{"data.n", "calm"})
	}},
	{"hot-status", "folded lines are lines, too", terminal, func(p *play) {
		p.have(day, parse(p.t, `{"kind":"Backup","metadata":{"name":"b"},"status":{"beats":0}}`))
		for i := range 30 {
			p.at(float64(2 * i))
			p.write("operator/status", "Backup/b", set{"status.beats", int64(i + 1)})
		}
		p.at(300)
	}},
	{"hot-gone", "a deletion counts the folded changes", terminal, func(p *play) {
		p.have(day, parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"leader-x"},"data":{"n":"0"}}`))
		for i := range 15 {
			p.at(float64(i) / 10)
			p.write("elector", "ConfigMap/leader-x", set{"data.n", fmt.Sprint("v", i)})
		}
		p.remove("ConfigMap/leader-x")
		p.at(60)
	}},
	{"custom", "a CRD and its object: conditions, a phase, fields", terminal, custom},
	{"node", "conditions say why", terminal, func(p *play) {
		p.have(day, parse(p.t, `{"kind":"Node","metadata":{"name":"n1"},"status":{"conditions":[
			{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`))
		p.at(1)
		p.write("kcm/status", "Node/n1", set{"status.conditions", []any{
			obj{"type": "MemoryPressure", "status": "Unknown", "reason": "NodeStatusUnknown"},
			obj{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."},
		}})
		p.at(10)
		p.write("kubectl", "Node/n1", set{"spec.unschedulable", true})
	}},
	{"node-pods", "a node that is not ready explains its pods", Options{Terminal: true, Width: 80, Color: true}, func(p *play) {
		shop(p)
		p.have(day, parse(p.t, `{"kind":"Node","metadata":{"name":"n2"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`))
		ready := func(node, pod string) {
			conditions := func(kind, status string) []any {
				return []any{obj{"type": kind, "status": status, "lastTransitionTime": p.now.Format(time.RFC3339)},
					obj{"type": "ContainersReady", "status": "True"}}
			}
			p.write("kcm/status", "Node/n2", set{"status.conditions", conditions("Ready", node)[:1]})
			p.write("kcm/status", "Pod/web-77dc77595-xdkdf", set{"status.conditions", conditions("Ready", pod)})
		}
		p.at(1)
		ready("Unknown", "False")
		p.at(30)
		ready("True", "True")
	}},
	{"labels", "who removed a label is not known; an owned object takes one line", terminal, func(p *play) {
		shop(p)
		p.write("kubectl-label", "ConfigMap/web-config", set{"metadata.labels", obj{"tier": "web"}})
		p.write("kubectl-label", "ConfigMap/web-config", set{"metadata.labels", nil})
		p.write("kubectl-label", "ConfigMap/web-config", set{"metadata.labels", obj{"a": "b"}}, set{"data.LOG_LEVEL", nil})
		p.write("kubectl-label", "Pod/web-77dc77595-xdkdf", set{"metadata.labels.foo", "bar"}, set{"metadata.labels.more", "1"})
	}},
	{"selection", "an object that left still exists, one that entered is not new", terminal, func(p *play) {
		cm := parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"web","namespace":"shop"}}`)
		p.feed(p.change(event.Snapshot, nil, cm))
		p.feed(p.change(event.Left, cm, nil))
		p.feed(p.change(event.Entered, nil, cm))
		pod := newPod(p.t, "web-1-a")
		put(pod, "status", runningStatus(p.now))
		p.feed(p.change(event.Snapshot, nil, pod))
		p.feed(p.change(event.Left, pod, nil))
	}},
	{"events", "kubectl's line", Options{Terminal: true, Namespaces: true}, func(p *play) {
		e := parse(p.t, `{"kind":"Event","metadata":{"name":"a","namespace":"shop"},"type":"Normal","reason":"Scheduled",
			"involvedObject":{"kind":"Pod","name":"web-1"},"message":"Successfully assigned shop/web-1 to n1\n","count":1,"lastTimestamp":"2026-11-21T10:41:59Z"}`)
		p.create("kube-scheduler", e)
		p.create("kubelet", parse(p.t, `{"kind":"Event","metadata":{"name":"b","namespace":"shop"},"type":"Warning","reason":"BackOff",
			"regarding":{"kind":"Pod","name":"web-1"},"note":"Back-off restarting failed container","series":{"count":4,"lastObservedTime":"2026-11-21T10:42:03.5Z"}}`))
		p.remove("Event/a")
	}},
	{"gaps", "a gap says what was missed, unless one notice sums it up; changes that a list derived, or that the server sent late, say when they happened", terminal, func(p *play) {
		shop(p)
		c := p.change(event.Gap, nil, p.objects["Deployment/web"])
		c.Name, c.UID = "", ""
		c.Gap = &event.GapInfo{From: "123", To: "200", Reason: "too old resource version"}
		p.feed(c)
		c.Away = true
		p.feed(c)
		c = p.written("kubectl-edit", "ConfigMap/web-config", set{"data.LOG_LEVEL", "debug"})
		c.Since, c.Net = p.now.Add(-14*time.Second), true
		p.feed(c)
		c = p.written("kubectl-edit", "ConfigMap/web-config", set{"data.LOG_LEVEL", "trace"})
		c.Since, c.Net, c.Time = p.now.Add(-14*time.Second), true, p.now.Add(-8*time.Second)
		p.feed(c)
		c = p.written("kubectl-edit", "ConfigMap/web-config", set{"data.LOG_LEVEL", "warn"})
		c.Since = p.now.Add(-14 * time.Second)
		p.feed(c)
		c = p.written("kubectl-edit", "ConfigMap/web-config", set{"data.LOG_LEVEL", "error"})
		c.Since, c.Time = p.now.Add(-14*time.Second), p.now.Add(-8*time.Second)
		p.feed(c)
		c = p.change(event.Deleted, p.objects["ConfigMap/web-config"], nil)
		c.Since = p.now.Add(-14 * time.Second)
		p.feed(c)
	}},
	{"terminating", "waiting for finalizers has a line; an immediate deletion is one line", terminal, func(p *play) {
		ns := func(name string) obj {
			return parse(p.t, `{"kind":"Namespace","metadata":{"name":"`+name+`"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`)
		}
		p.have(3*day, ns("slow"))
		p.have(3*day, ns("fast"))
		for _, n := range []string{"slow", "fast"} {
			p.write("?", "Namespace/"+n, set{"metadata.deletionTimestamp", p.now.Format(time.RFC3339)}, set{"status.phase", "Terminating"})
		}
		p.at(0.3)
		p.remove("Namespace/fast")
		p.at(20)
		p.write("kcm/status", "Namespace/slow", set{"status.note", "printed again after a minute only"})
		p.at(70)
		p.remove("Namespace/slow")
	}},
	{"rollout-crash", "of the pods of a rollout that crash, the first has a line; the Deployment's counts them", narrow, func(p *play) {
		shop(p)
		setImage(p, "shop/web:1.6")
		p.at(0.1)
		counts(p, 2, 2, 0)
		for _, suffix := range []string{"dvmwn", "k6m2x"} {
			podStarts(p, "web-86c9647fcb-"+suffix)
		}
		stop(p, "xdkdf")
		for i := range 5 {
			p.at(3 + 60*float64(i))
			for _, suffix := range []string{"dvmwn", "k6m2x"} {
				p.write("kubelet/status", "Pod/web-86c9647fcb-"+suffix, set{"status", waiting("CrashLoopBackOff", i+1)})
			}
			if i == 0 {
				p.at(10)
				p.remove("Pod/web-77dc77595-xdkdf")
			}
		}
		p.at(301)
		p.write(kcm+"/status", "Deployment/web", set{"status.conditions", []any{
			obj{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}})
		p.at(310)
		p.write("kubectl-rollout", "Deployment/web", set{"spec.template.spec.containers.0.image", "shop/web:1.4"}, set{"metadata.generation", int64(3)})
		p.at(311)
		counts(p, 3, 0, 0)
		p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(3)}, set{"status.updatedReplicas", int64(3)}, set{"status.conditions", []any{
			obj{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": p.now.Format(time.RFC3339)}}})
		for _, suffix := range []string{"dvmwn", "k6m2x"} {
			p.remove("Pod/web-86c9647fcb-" + suffix)
		}
		p.at(400)
	}},
	{"crash-unready", "a container that runs for a while before it crashes again has not recovered", narrow, func(p *play) {
		podStarts(p, "web-1-a")
		for i := range 6 {
			p.at(1 + 40*float64(i))
			p.write("kubelet/status", "Pod/web-1-a", set{"status", waiting("CrashLoopBackOff", i+1)})
			p.at(20 + 40*float64(i))
			up := running(i + 2)
			up["conditions"].([]any)[1].(obj)["status"] = "False"
			p.write("kubelet/status", "Pod/web-1-a", set{"status", up})
		}
		p.at(300)
		p.write("kubelet/status", "Pod/web-1-a", set{"status", running(7)})
		p.at(400)
	}},
	{"replicaset", "a ReplicaSet without a visible Deployment", narrow, func(p *play) {
		p.create(kcm, replicaSet(p.t, "web-86c9647fcb", 2, 1))
		podStarts(p, "web-86c9647fcb-dvmwn")
		p.at(3)
		p.write("kubelet/status", "Pod/web-86c9647fcb-dvmwn", set{"status", runningStatus(p.now)})
		p.write(kcm+"/status", "ReplicaSet/web-86c9647fcb", set{"metadata.annotations", obj{"deployment.kubernetes.io/revision": "2"}},
			set{"status", deep(obj{"observedGeneration": 1, "replicas": 1, "readyReplicas": 1})})
		p.at(40)
	}},
	{"owned-others", "other objects of a workload have their own lines", narrow, func(p *play) {
		shop(p)
		setImage(p, "shop/web:1.6")
		owned := func(name string) obj {
			return parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"`+name+`","namespace":"shop","ownerReferences":[{"kind":"Deployment","name":"web","uid":"uid-web","controller":true}]}}`)
		}
		p.create("operator", owned("made"))
		p.have(day, owned("old"))
		p.remove("ConfigMap/old")
		p.at(20)
	}},
	{"scale-300", "three hundred pods are no three hundred lines", narrow, func(p *play) {
		shop(p)
		p.write("kubectl/scale", "Deployment/web", set{"spec.replicas", int64(303)}, set{"metadata.generation", int64(2)})
		p.write(kcm, "ReplicaSet/web-77dc77595", set{"spec.replicas", int64(303)}, set{"metadata.annotations", obj{"deployment.kubernetes.io/desired-replicas": "303"}})
		for i := range 300 {
			p.at(0.1 + float64(i)/10)
			podStarts(p, fmt.Sprint("web-77dc77595-", i))
			if i >= 20 {
				p.write("kubelet/status", fmt.Sprint("Pod/web-77dc77595-", i-20), set{"status", runningStatus(p.now)})
				p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(2)}, set{"status.replicas", int64(303)},
					set{"status.updatedReplicas", int64(303)}, set{"status.readyReplicas", int64(i - 17)}, set{"status.availableReplicas", int64(i - 17)})
			}
		}
		p.at(35)
		for i := 280; i < 300; i++ {
			p.write("kubelet/status", fmt.Sprint("Pod/web-77dc77595-", i), set{"status", runningStatus(p.now)})
		}
		p.write(kcm+"/status", "ReplicaSet/web-77dc77595", set{"status", deep(obj{"observedGeneration": 1, "replicas": 303, "readyReplicas": 303})})
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(303)}, set{"status.availableReplicas", int64(303)})
		p.at(60)
	}},
	{"began-before", "a story with an unknown beginning has no number of replaced pods and no duration", narrow, func(p *play) {
		shop(p)
		d := p.objects["Deployment/web"]
		put(d, "status.updatedReplicas", int64(1))
		p.write(kcm, "ReplicaSet/web-77dc77595", set{"spec.replicas", int64(2)})
		p.at(0.1)
		p.write(kcm+"/status", "Deployment/web", set{"status.updatedReplicas", int64(2)})
		stop(p, "xdkdf")
		podStarts(p, "web-77dc77595-new1")
		p.at(5)
		p.write("kubelet/status", "Pod/web-77dc77595-new1", set{"status", runningStatus(p.now)})
		p.remove("Pod/web-77dc77595-xdkdf")
		p.write(kcm+"/status", "Deployment/web", set{"status.updatedReplicas", int64(3)})
		p.at(60)
	}},
	{"drain", "the pods of a drained node are part of their workload's story", narrow, func(p *play) {
		shop(p)
		p.have(day, parse(p.t, `{"kind":"Node","metadata":{"name":"n2"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`))
		p.write("kubectl-drain", "Node/n2", set{"spec.unschedulable", true})
		p.at(0.5)
		stop(p, "xdkdf")
		status := func(ready int64) {
			p.write(kcm+"/status", "ReplicaSet/web-77dc77595", set{"status.readyReplicas", ready})
			p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", ready}, set{"status.availableReplicas", ready})
		}
		podStarts(p, "web-77dc77595-new1")
		status(2)
		p.at(5)
		p.write("kubelet/status", "Pod/web-77dc77595-new1", set{"status", runningStatus(p.now)})
		status(3)
		p.at(12)
		p.remove("Pod/web-77dc77595-xdkdf")
		p.at(60)
	}},
	{"node-workload", "a node that is not ready explains the missing pods of a workload", narrow, func(p *play) {
		shop(p)
		p.have(day, parse(p.t, `{"kind":"Node","metadata":{"name":"n2"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"}]}}`))
		p.write("kcm/status", "Node/n2", set{"status.conditions", []any{obj{"type": "Ready", "status": "Unknown"}}})
		for _, suffix := range []string{"xdkdf", "b2p8q"} {
			p.write("kcm/status", "Pod/web-77dc77595-"+suffix, set{"status.conditions", []any{
				obj{"type": "Ready", "status": "False", "lastTransitionTime": p.now.Format(time.RFC3339)}, obj{"type": "ContainersReady", "status": "True"}}})
		}
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(1)}, set{"status.availableReplicas", int64(1)})
		p.at(300)
	}},
	{"node-unseen", "pods show that their unwatched node is not ready; a pod with an unmet readiness gate does not", narrow, func(p *play) {
		shop(p)
		unready := func(manager, suffix string) {
			p.write(manager+"/status", "Pod/web-77dc77595-"+suffix, set{"status.conditions", []any{
				obj{"type": "Ready", "status": "False", "lastTransitionTime": p.now.Format(time.RFC3339)}, obj{"type": "ContainersReady", "status": "True"}}})
			p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(2)}, set{"status.availableReplicas", int64(2)})
		}
		unready("kubelet", "xdkdf")
		p.at(100)
		unready(kcm, "b2p8q")
		p.at(300)
	}},
	{"evicted", "an evicted pod and one that ran out of memory have lines, whatever their workload does", narrow, func(p *play) {
		shop(p)
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(1)}, set{"status.availableReplicas", int64(1)})
		p.write("kubelet/status", "Pod/web-77dc77595-xdkdf", set{"status", deep(obj{"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})})
		oom := running(1)
		oom["containerStatuses"].([]any)[0].(obj)["lastState"] = obj{"terminated": obj{"reason": "OOMKilled", "exitCode": int64(137), "finishedAt": p.now.Format(time.RFC3339)}}
		p.write("kubelet/status", "Pod/web-77dc77595-b2p8q", set{"status", oom})
		p.at(300)
	}},
	{"deleted-workload", "the orphans of a deleted Deployment are one line", narrow, func(p *play) {
		shop(p)
		p.remove("Deployment/web")
		p.at(0.1)
		p.remove("ReplicaSet/web-77dc77595")
		for _, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
			stop(p, suffix)
		}
		p.at(30.5)
		for _, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
			p.remove("Pod/web-77dc77595-" + suffix)
		}
		p.at(90)
	}},
	{"cronjob", "a run of a CronJob is one line, which says how it ended", narrow, cronJob},
	{"kinds", "each kind has its own words", terminal, kinds},
	{"scale", "a scaling is not a rollout; constant changes are printed while they continue", terminal, func(p *play) {
		shop(p)
		p.write("kubectl/scale", "Deployment/web", set{"spec.replicas", int64(5)}, set{"metadata.generation", int64(2)})
		p.at(0.2)
		p.write(kcm+"/status", "Deployment/web", set{"status.observedGeneration", int64(2)}, set{"status.replicas", int64(5)},
			set{"status.updatedReplicas", int64(5)})
		p.at(4)
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(5)}, set{"status.availableReplicas", int64(5)})
		p.at(10)
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(4)}, set{"status.availableReplicas", int64(4)})
		p.at(30)
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(5)}, set{"status.availableReplicas", int64(5)})
		p.at(35)
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(4)}, set{"status.availableReplicas", int64(4)})
		p.at(38)
		p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(5)}, set{"status.availableReplicas", int64(5)})
		p.at(41)
		for i := range 3 {
			p.at(41 + float64(i))
			p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(4)}, set{"status.availableReplicas", int64(4)})
			p.at(41.3 + float64(i))
			p.write(kcm+"/status", "Deployment/web", set{"status.readyReplicas", int64(5)}, set{"status.availableReplicas", int64(5)})
		}
		p.at(60)
		p.write(kcm+"/status", "Deployment/web", set{"status.conditions", []any{
			obj{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}})
		p.at(70)
	}},
	{"quiet", "quiet updates are counted, not printed", terminal, quietPlay},
	{"noise", "--noise shows them", Options{Terminal: true, Noise: true}, quietPlay},
	{"hostile", "names, values and messages cannot control a terminal", terminal, func(p *play) {
		p.create("evil\x1b[2J", parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"a\u001b]0;x\u0007","labels":{"x":"\u202egnp"}},
			"data":{"k\r":"1\u001b[31m","t":"a\tb\n\u009bc\n"}}`))
		p.create("kubelet", parse(p.t, `{"kind":"Event","metadata":{"name":"b"},"reason":"X\u001b[H","message":"line\nnext\u2028\u200b"}`))
		p.must(p.text.Notice(p.now, "server said: \x1b[1mboo\n"))
	}},
	{"wide", "wide characters count double when a line is cut", Options{Terminal: true, Width: 40}, func(p *play) {
		p.create("kubectl", parse(p.t, `{"kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"漢字漢字漢字漢字漢字漢字漢字","e":"e\u0301e\u0301"}}`))
	}},
}

func TestScenarios(t *testing.T) {
	for _, tc := range scenarios {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlay(t, tc.o)
			tc.play(p)
			golden(t, tc.name+".txt", p.end())
		})
	}
}

var narrow = Options{Terminal: true, Width: 100}

// cronJob plays a run that succeeds, one that fails, and one that takes long.
func cronJob(p *play) {
	p.have(day, parse(p.t, `{"kind":"CronJob","metadata":{"name":"nightly","namespace":"shop"},"spec":{"schedule":"* * * * *"},"status":{}}`))
	start := func(n int) (job, pod string) {
		job = fmt.Sprintf("nightly-2937427%d", n)
		pod = job + "-x"
		p.create(kcm, parse(p.t, fmt.Sprintf(`{"kind":"Job","metadata":{"name":%q,"uid":"uid-%[1]s","namespace":"shop",
			"ownerReferences":[{"kind":"CronJob","name":"nightly","uid":"uid-nightly","controller":true}]},"spec":{"completions":1},"status":{}}`, job)))
		p.write(kcm+"/status", "CronJob/nightly", set{"status.active", []any{obj{"name": job}}}, set{"status.lastScheduleTime", p.now.Format(time.RFC3339)})
		p.create(kcm, parse(p.t, fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"namespace":"shop","finalizers":["batch.kubernetes.io/job-tracking"],
			"ownerReferences":[{"kind":"Job","name":%q,"uid":"uid-%[2]s","controller":true}]},"spec":{},"status":{"phase":"Pending"}}`, pod, job)))
		p.write(kcm+"/status", "Job/"+job, set{"status.startTime", p.now.Format(time.RFC3339)}, set{"status.active", int64(1)})
		p.write("kubelet/status", "Pod/"+pod, set{"status", runningStatus(p.now)})
		return job, pod
	}
	end := func(job, pod string, code int64, conditions ...any) {
		phase := "Succeeded"
		if code != 0 {
			phase = "Failed"
		}
		p.write("kubelet/status", "Pod/"+pod, set{"status", deep(obj{"phase": phase, "containerStatuses": []any{
			obj{"state": obj{"terminated": obj{"exitCode": code, "reason": "Error", "finishedAt": p.now.Format(time.RFC3339)}}}}})})
		p.write(kcm, "Pod/"+pod, set{"metadata.finalizers", nil})
		p.write(kcm+"/status", "Job/"+job, set{"status.active", nil}, set{"status.completionTime", p.now.Format(time.RFC3339)}, set{"status.conditions", conditions})
		p.write(kcm+"/status", "CronJob/nightly", set{"status.active", nil}, set{"status.lastSuccessfulTime", p.now.Format(time.RFC3339)})
	}
	complete := obj{"type": "Complete", "status": "True"}
	job1, pod1 := start(1)
	p.at(4)
	end(job1, pod1, 0, complete)
	p.at(60)
	job2, pod2 := start(2)
	p.at(63)
	end(job2, pod2, 3, obj{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"})
	p.at(64)
	p.remove("Job/" + job1)
	p.remove("Pod/" + pod1)
	p.at(120)
	job3, pod3 := start(3)
	p.at(3720)
	end(job3, pod3, 0, complete)
	p.at(3800)
	p.remove("Job/" + job2)
	p.remove("Pod/" + pod2)
}

// running is the status of a restarted, ready pod.
func running(restarts int) obj {
	s := runningStatus(morning)
	s["containerStatuses"].([]any)[0].(obj)["restartCount"] = int64(restarts)
	return s
}

// since writes when a pod became ready, or ceased to be.
func since(at time.Time, status obj) obj {
	for _, c := range status["conditions"].([]any) {
		if c := c.(obj); c["type"] == "Ready" {
			c["lastTransitionTime"] = at.Format(time.RFC3339)
		}
	}
	return status
}

func created(p *play) {
	p.create("kubectl-client-side-apply", parse(p.t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"api","namespace":"shop",
		"generation":1,"labels":{"app":"api"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","team":"core"}},
		"spec":{"progressDeadlineSeconds":600,"replicas":1,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":"api"}},"template":{"metadata":{"labels":{"app":"api"}},
		"spec":{"containers":[{"name":"app","image":"shop/api:1.0","env":[{"name":"TOKEN","value":"hidden #9c20000011112222"}],
		"ports":[{"containerPort":80,"protocol":"TCP"}]}]}}},"status":{}}`))
	p.at(0.2)
	p.write(kcm+"/status", "Deployment/api", set{"status.observedGeneration", int64(1)}, set{"status.replicas", int64(1)},
		set{"status.updatedReplicas", int64(1)})
	p.at(5)
	p.write(kcm+"/status", "Deployment/api", set{"status.readyReplicas", int64(1)}, set{"status.availableReplicas", int64(1)})
	p.at(10)
	p.create("kubectl-run", parse(p.t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"shell"},"spec":{"containers":[{"name":"app","image":"busybox"}]},"status":{"phase":"Pending"}}`))
	p.write("?", "Pod/shell", set{"spec.nodeName", "n1"})
	p.at(13)
	p.write("kubelet/status", "Pod/shell", set{"status", runningStatus(p.now)})
	p.at(20)
}

func custom(p *play) {
	p.create("kubectl", parse(p.t, `{"kind":"CustomResourceDefinition","metadata":{"name":"backups.example.com"},"spec":{"group":"example.com","scope":"Namespaced"}}`))
	p.at(0.1)
	p.write("kube-apiserver/status", "CustomResourceDefinition/backups.example.com", set{"status.conditions", []any{
		obj{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
		obj{"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
	}})
	p.at(2)
	p.create("kubectl", parse(p.t, `{"kind":"Backup","metadata":{"name":"nightly","namespace":"shop"},"spec":{"schedule":"0 3 * * *"}}`))
	p.at(3)
	p.write("operator/status", "Backup/nightly", set{"status.phase", "Running"}, set{"status.conditions", []any{
		obj{"type": "Ready", "status": "False", "reason": "Starting", "message": "volume is being attached"}}})
	p.at(10)
	p.write("operator/status", "Backup/nightly", set{"status.phase", "Done"}, set{"status.conditions", []any{
		obj{"type": "Ready", "status": "True", "reason": "Finished"}}})
	p.at(20)
	p.write("operator/status", "Backup/nightly", set{"status.bytes", int64(1)}, set{"status.files", int64(2)})
	p.write("operator/status", "Backup/nightly", set{"status.bytes", int64(3)})
	p.at(30)
	p.write("operator/status", "Backup/nightly", set{"status.bytes", int64(4)})
	p.write("operator/status", "Backup/nightly", set{"status.bytes", int64(3)})
	p.at(40)
	p.write("operator", "Backup/nightly", set{"spec.seen", true}, set{"status.bytes", int64(9)})
}

func kinds(p *play) {
	for _, o := range []string{
		`{"kind":"StatefulSet","metadata":{"name":"db","generation":1},"spec":{"replicas":2},"status":{"observedGeneration":1,"replicas":2,"readyReplicas":2,"updatedReplicas":2,"currentRevision":"a","updateRevision":"a"}}`,
		`{"kind":"DaemonSet","metadata":{"name":"agent","generation":1},"spec":{},"status":{"observedGeneration":1,"desiredNumberScheduled":2,"numberReady":2,"updatedNumberScheduled":2}}`,
		`{"kind":"Service","metadata":{"name":"web"},"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{}}}`,
		`{"kind":"CronJob","metadata":{"name":"nightly"},"spec":{},"status":{"active":[{"name":"nightly-1"}]}}`,
		`{"kind":"PersistentVolumeClaim","metadata":{"name":"data"},"spec":{},"status":{"phase":"Pending"}}`,
		`{"kind":"HorizontalPodAutoscaler","metadata":{"name":"web"},"spec":{},"status":{"currentReplicas":3,"desiredReplicas":3}}`,
	} {
		p.have(day, parse(p.t, o))
	}
	p.write("kubectl-set", "StatefulSet/db", set{"spec.template", obj{"image": "x"}}, set{"metadata.generation", int64(2)})
	p.at(0.1)
	p.write(kcm+"/status", "StatefulSet/db", set{"status.observedGeneration", int64(2)}, set{"status.updateRevision", "b"},
		set{"status.updatedReplicas", nil})
	p.at(45)
	p.write(kcm+"/status", "StatefulSet/db", set{"status.updatedReplicas", int64(1)}, set{"status.readyReplicas", int64(1)})
	p.at(60)
	p.write(kcm+"/status", "StatefulSet/db", set{"status.updatedReplicas", int64(2)}, set{"status.readyReplicas", int64(2)},
		set{"status.currentRevision", "b"})
	p.at(70)
	p.write(kcm+"/status", "DaemonSet/agent", set{"status.numberReady", int64(1)})
	p.write(kcm+"/status", "CronJob/nightly", set{"status.active", []any{obj{"name": "nightly-2"}}})
	p.write("cloud/status", "Service/web", set{"status.loadBalancer", obj{"ingress": []any{obj{"ip": "10.1.2.3"}}}})
	p.write(kcm, "PersistentVolumeClaim/data", set{"spec.volumeName", "pv-1"}, set{"metadata.annotations", obj{"pv.kubernetes.io/bind-completed": "yes"}})
	p.write(kcm+"/status", "PersistentVolumeClaim/data", set{"status.phase", "Bound"})
	p.write(kcm+"/status", "HorizontalPodAutoscaler/web", set{"status.desiredReplicas", int64(5)})
	p.at(120)
	p.create("kubectl", parse(p.t, `{"kind":"Job","metadata":{"name":"migrate","generation":1},"spec":{"completions":1}}`))
	p.at(121)
	p.write(kcm+"/status", "Job/migrate", set{"status.active", int64(1)}, set{"status.startTime", p.now.Format(time.RFC3339)})
	p.at(133)
	p.write(kcm+"/status", "Job/migrate", set{"status.active", nil}, set{"status.completionTime", p.now.Format(time.RFC3339)},
		set{"status.conditions", []any{obj{"type": "Complete", "status": "True"}}})
	p.at(140)
	p.create("kubectl", parse(p.t, `{"kind":"Job","metadata":{"name":"broken","generation":1},"spec":{"completions":1}}`))
	p.at(141)
	p.write(kcm+"/status", "Job/broken", set{"status.failed", int64(3)}, set{"status.conditions", []any{
		obj{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}}})
	p.at(150)
}

func quietPlay(p *play) {
	p.have(day, parse(p.t, `{"kind":"Node","metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"1"}]}}`))
	p.have(day, parse(p.t, `{"kind":"Backup","metadata":{"name":"b"},"spec":{"renewTime":"1"}}`))
	p.write("kubelet/status", "Node/n1", set{"status.conditions.0.lastHeartbeatTime", "2"})
	p.write("kubelet", "Backup/b", set{"spec.renewTime", "2"})
	p.at(5)
}
