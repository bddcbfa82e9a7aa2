package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// shop is the start of the example: a ready Deployment with 3 pods.
func shop(p *play) {
	for _, o := range []string{`{"kind":"Deployment","metadata":{"name":"web","namespace":"shop","generation":1,
		"annotations":{"deployment.kubernetes.io/revision":"1"}},
		"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"app","image":"shop/web:1.4"}]}}},
		"status":{"observedGeneration":1,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`,
		`{"kind":"ConfigMap","metadata":{"name":"web-config","namespace":"shop"},
		"data":{"LOG_LEVEL":"info","app.properties":"cache.size=64\nhttp.timeout=30s\nhttp.retries=3\n"}}`,
		`{"kind":"Secret","metadata":{"name":"web-db","namespace":"shop"},"type":"Opaque","data":{"password":"hidden #4e1f000011112222"}}`,
	} {
		p.have(41*day, parse(p.t, o))
	}
	p.have(41*day, replicaSet(p.t, "web-77dc77595", 1, 3))
	for _, suffix := range []string{"xdkdf", "b2p8q", "zzt4l"} {
		pod := newPod(p.t, "web-77dc77595-"+suffix)
		put(pod, "spec.nodeName", "n2")
		put(pod, "status", runningStatus(p.now.Add(-41*day)))
		p.have(41*day, pod)
	}
}

func replicaSet(t *testing.T, name string, revision, replicas int) obj {
	o := parse(t, fmt.Sprintf(`{"kind":"ReplicaSet","metadata":{"name":%q,"uid":"uid-%[1]s","namespace":"shop","generation":1,
		"annotations":{"deployment.kubernetes.io/revision":"%[2]d","deployment.kubernetes.io/desired-replicas":"3"},
		"ownerReferences":[{"kind":"Deployment","name":"web","uid":"uid-web","controller":true}]},
		"spec":{"replicas":%[3]d},"status":{"replicas":0}}`, name, revision, replicas))
	if revision == 1 {
		put(o, "status", deep(obj{"observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas}))
	}
	return o
}

func newPod(t *testing.T, name string) obj {
	owner := name[:strings.LastIndex(name, "-")]
	return parse(t, fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"namespace":"shop","labels":{"app":"web"},
		"ownerReferences":[{"kind":"ReplicaSet","name":%q,"uid":"uid-%s","controller":true}]},
		"spec":{"containers":[{"name":"app"}]},"status":{"phase":"Pending"}}`, name, owner, owner))
}

// runningStatus is the status of a ready pod.
func runningStatus(since time.Time) obj {
	return deep(obj{"phase": "Running", "conditions": []any{
		obj{"type": "PodScheduled", "status": "True"}, obj{"type": "Ready", "status": "True", "lastTransitionTime": since.Format(time.RFC3339)},
	}, "containerStatuses": []any{obj{"name": "app", "ready": true, "restartCount": 0, "state": obj{"running": obj{}}}}}).(obj)
}

// waiting is the status of a pod whose container waits, with the reason.
func waiting(reason string, restarts int) obj {
	c := obj{"name": "app", "image": "shop/web:1.6", "restartCount": restarts, "ready": false,
		"state": obj{"waiting": obj{"reason": reason, "message": "back-off"}}}
	phase := "Pending"
	if restarts > 0 {
		phase = "Running"
		c["lastState"] = obj{"terminated": obj{"exitCode": 1, "reason": "Error"}}
	}
	return deep(obj{"phase": phase, "conditions": []any{
		obj{"type": "PodScheduled", "status": "True"}, obj{"type": "Ready", "status": "False"},
	}, "containerStatuses": []any{c}}).(obj)
}

const kcm = "kube-controller-manager"

// setImage begins a rollout as kubectl and the deployment controller do.
func setImage(p *play, image string) {
	p.write("kubectl-set", "Deployment/web",
		set{"spec.template.spec.containers.0.image", image}, set{"metadata.generation", int64(2)})
	p.create(kcm, replicaSet(p.t, "web-86c9647fcb", 2, 1))
	p.write(kcm, "Deployment/web", set{"metadata.annotations", obj{"deployment.kubernetes.io/revision": "2"}},
		set{"status.observedGeneration", int64(2)}, set{"status.updatedReplicas", nil})
}

// podStarts creates a pod and binds it; it is not ready yet.
func podStarts(p *play, name string) {
	p.create(kcm, newPod(p.t, name))
	p.write("?", "Pod/"+name, set{"spec.nodeName", "n1"},
		set{"status.conditions", []any{obj{"type": "PodScheduled", "status": "True"}}})
	p.write("kubelet/status", "Pod/"+name, set{"status", waiting("ContainerCreating", 0)})
}

// counts writes the counters of the controllers.
func counts(p *play, old, now, ready int) {
	n := func(i int) any { return int64(i) }
	p.write(kcm+"/status", "ReplicaSet/web-86c9647fcb", set{"spec.replicas", n(now)},
		set{"status", deep(obj{"observedGeneration": 1, "replicas": now, "readyReplicas": ready})})
	p.write(kcm, "ReplicaSet/web-77dc77595", set{"spec.replicas", n(old)})
	p.write(kcm+"/status", "ReplicaSet/web-77dc77595",
		set{"status", deep(obj{"observedGeneration": 1, "replicas": old, "readyReplicas": old})})
	p.write(kcm+"/status", "Deployment/web", set{"status.replicas", n(old + now)}, set{"status.updatedReplicas", n(now)},
		set{"status.readyReplicas", n(old + ready)}, set{"status.availableReplicas", n(old + ready)})
}

// rollout plays a complete rollout: 3 pods, one after the other, each ready after 6 s; the old ones need 10 s
// to stop.
func rollout(p *play, start float64) {
	const step, start0, stopping = 7, 6, 10
	type scene struct {
		at float64
		do func()
	}
	scenes := []scene{{start, func() { setImage(p, "shop/web:1.5") }}}
	olds := []string{"xdkdf", "b2p8q", "zzt4l"}
	for i, suffix := range []string{"dvmwn", "k6m2x", "q9r7c"} {
		pod, begin := "web-86c9647fcb-"+suffix, start+0.1+float64(step*i)
		scenes = append(scenes, scene{begin, func() {
			counts(p, 3-i, i+1, i)
			podStarts(p, pod)
		}}, scene{begin + start0, func() {
			p.write("kubelet/status", "Pod/"+pod, set{"status", runningStatus(p.now)})
			counts(p, 3-i, i+1, i+1)
		}}, scene{begin + start0 + 0.1, func() {
			stop(p, olds[i])
			counts(p, 2-i, min(i+2, 3), i+1)
		}}, scene{begin + start0 + 0.1 + stopping, func() { p.remove("Pod/web-77dc77595-" + olds[i]) }})
	}
	slices.SortStableFunc(scenes, func(a, b scene) int { return cmp.Compare(a.at, b.at) })
	for _, s := range scenes {
		p.at(s.at)
		s.do()
	}
}

// stop begins the termination of an old pod.
func stop(p *play, suffix string) {
	p.write("?", "Pod/web-77dc77595-"+suffix,
		set{"metadata.deletionTimestamp", p.now.Add(30 * time.Second).Format(time.RFC3339)},
		set{"metadata.deletionGracePeriodSeconds", int64(30)})
	p.write("kubelet/status", "Pod/web-77dc77595-"+suffix, set{"status.conditions", []any{obj{"type": "Ready", "status": "False"}}})
}

// session is the example of the README.
func session(t *testing.T, o Options) string {
	p := newPlay(t, o)
	shop(p)
	rollout(p, 0)
	p.at(83)
	p.write("kubectl-edit", "ConfigMap/web-config", set{"data", obj{
		"LOG_LEVEL": "debug", "app.properties": "cache.size=64\nhttp.timeout=5s\nhttp.retries=3\n",
	}})
	p.at(115)
	p.write("kubectl-client-side-apply", "Secret/web-db", set{"data.password", "hidden #9c20000011112222"})
	p.at(183)
	p.remove("ConfigMap/web-config")
	p.at(489)
	p.must(p.text.Notice(p.now, "API server was away 14 s; resumed, 2 streams relisted (net changes only)"))
	return p.end()
}

func TestSession(t *testing.T) {
	for _, tc := range []struct {
		golden, why string
		o           Options
	}{
		{"session.txt", "the issue's example", terminal},
		{"session-color.txt", "colours are the only difference", Options{Terminal: true, Color: true}},
		{"session-pipe.txt", "RFC 3339 times, nothing cut", Options{}},
		{"session-namespaces.txt", "-A has a column as kubectl's", Options{Terminal: true, Namespaces: true}},
		{"session-narrow.txt", "80 columns: cells move together, the info is cut before the counts", Options{Terminal: true, Width: 80}},
		{"session-flat.txt", "--flat shows each change", Options{Terminal: true, Flat: true}},
	} {
		t.Run(tc.golden, func(t *testing.T) { golden(t, tc.golden, session(t, tc.o)) })
	}
}

func TestRolloutIsShort(t *testing.T) {
	p := newPlay(t, terminal)
	shop(p)
	rollout(p, 0)
	p.at(120)
	out := p.end()
	if n := strings.Count(out, "\n"); n > 13 {
		t.Errorf("a rollout of 3 pods has %d lines, want at most 13:\n%s", n, out)
	}
}
