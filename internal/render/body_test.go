package render

import (
	"fmt"
	"strings"
	"testing"
)

func TestExcerptOf(t *testing.T) {
	certificate := []string{"data:", "  ca.crt: |"}
	for i := range 20 {
		certificate = append(certificate, fmt.Sprintf("    line %d", i))
	}
	certificate = append(certificate, "  name: x")
	var long []string
	for i := range 14 {
		long = append(long, fmt.Sprintf("k%d: v", i))
	}
	for _, tt := range []struct {
		why  string
		in   []string
		last string
		n    int
	}{
		{"a long text does not push out what follows it", certificate, "  name: x", 2 + textLines + 1},
		{"a name without its value says nothing", append(long, "metadata:", "  labels:", "    a: b"), "k13: v", 14},
		{"fifteen lines are all", append(long, "a: 1", "b: 2"), "a: 1", bodyLines},
	} {
		t.Run(tt.why, func(t *testing.T) {
			got := excerptOf(tt.in, bodyLines)
			if len(got) != tt.n || got[len(got)-1] != tt.last {
				t.Errorf("%d lines, want %d:\n%s", len(got), tt.n, strings.Join(got, "\n"))
			}
		})
	}
}

// TestHighlights: a long new object begins with its important fields, and omits fields that only controllers read.
func TestHighlights(t *testing.T) {
	container := func(name string) obj {
		return obj{"name": name, "image": name + ":1", "env": variables(40)}
	}
	template := func(names ...string) obj {
		var all []any
		for _, n := range names {
			all = append(all, container(n))
		}
		return obj{"metadata": obj{"labels": obj{"controller-uid": "c-uid"}}, "spec": obj{"containers": all, "restartPolicy": "Never"}}
	}
	keys := obj{}
	for i := range 30 {
		keys[fmt.Sprintf("key%02d", i)] = "x"
	}
	for _, tc := range []struct {
		why    string
		object obj
		first  []string
	}{
		{"a Deployment", obj{"kind": "Deployment", "spec": obj{"replicas": int64(3), "template": template("app")}},
			[]string{"spec.replicas: 3", "spec.template.spec.containers[name=app].image: app:1"}},
		{"a CronJob", obj{"kind": "CronJob", "spec": obj{"schedule": "*/5 * * * *", "jobTemplate": obj{"spec": obj{"template": template("job")}}}},
			[]string{"spec.schedule: */5 * * * *", "spec.jobTemplate.spec.template.spec.containers[name=job].image: job:1"}},
		{"a pod of many containers", obj{"kind": "Pod", "spec": template("a", "b", "c", "d", "e", "f", "g", "h")["spec"]},
			[]string{"spec.containers[name=a].image: a:1", "spec.containers[name=b].image: b:1", "spec.containers[name=c].image: c:1",
				"spec.containers[name=d].image: d:1", "spec.containers[name=e].image: e:1", "… 3 more like these"}},
		{"a ConfigMap", obj{"kind": "ConfigMap", "data": keys}, []string{"data: 30 keys: key00, key01"}},
	} {
		p := newPlay(t, terminal)
		tc.object["metadata"] = obj{"name": "x", "namespace": "shop", "labels": obj{"batch.kubernetes.io/controller-uid": "c-uid"}}
		p.create("kubectl", tc.object)
		out := strings.Split(p.end(), "\n")[1:]
		for i, want := range tc.first {
			if !strings.HasPrefix(strings.TrimSpace(out[i]), want) {
				t.Errorf("%s: line %d is %q, want %q", tc.why, i+1, out[i], want)
			}
		}
		if all := strings.Join(out, "\n"); strings.Contains(all, "c-uid") || len(out) > bodyLines+3 {
			t.Errorf("%s: %d lines:\n%s", tc.why, len(out), all)
		}
	}
}

// TestDifferenceIsSeen: the difference of two long lines with the same beginning is on the screen.
func TestDifferenceIsSeen(t *testing.T) {
	long := strings.Repeat("the same text ", 20)
	p := newPlay(t, Options{Terminal: true, Width: 80})
	p.create("kubectl", obj{"kind": "ConfigMap", "metadata": obj{"name": "a", "namespace": "shop"}, "data": obj{"k": "first\n" + long + "old\nlast\n"}})
	p.at(1)
	p.write("kubectl", "ConfigMap/a", set{"data.k", "first\n" + long + "new\nlast\n"})
	out := p.end()
	for _, want := range []string{"- …", "old", "+ …", "new"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func variables(n int) (all []any) {
	for i := range n {
		all = append(all, obj{"name": fmt.Sprint("E", i), "value": "x"})
	}
	return all
}
