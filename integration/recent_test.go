package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tattler-dev/tattler/event"
)

// step is a write of the test: it happened at or after from, and not after to.
type step struct{ from, to time.Time }

// has reports whether a time, in whole seconds rounded down, is within the step.
func (s step) has(t time.Time) bool {
	return !t.Before(s.from.Truncate(time.Second)) && !t.After(s.to)
}

// TestRecent: without a journal, `tattler log` names the writes of a test at the right times and with the right managers.
// The server, its controllers and this test share one clock.
func TestRecent(t *testing.T) {
	t.Parallel()
	client := clientOf(t, cluster)
	const node = "recent"
	startKubelet(t, client, node, false)
	s := &stage{t, client, fmt.Sprintf("recent%d-%d", os.Getpid(), namespaces.Add(1))}
	if out, err := runKubectl("", cluster.Kubeconfig(), "create", "namespace", s.ns); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _, _ = runKubectl("", cluster.Kubeconfig(), "delete", "namespace", s.ns, "--wait=false") })

	timed := func(do func()) step {
		st := step{from: time.Now()}
		do()
		st.to = time.Now()
		return st
	}
	steps := map[string]step{}
	steps["apply"] = timed(func() { s.apply("Deployment", "web", "well", node, 1, "") })
	s.apply("StatefulSet", "queue", "well", node, 1, "")
	s.kubectl("rollout", "status", "deployment/web")
	steps["crash"] = timed(func() {
		s.apply("StatefulSet", "db", "crash", node, 1, "")
		s.until("restart", func() bool { return ended(s, "db-0") })
	})
	wait(1100 * time.Millisecond) // so that each write has its own second
	steps["set"] = timed(func() {
		s.kubectl("set", "image", "deployment/web", "app=shop/app:2")
		s.kubectl("rollout", "status", "deployment/web")
	})
	steps["scale"] = timed(func() {
		s.kubectl("scale", "deployment/web", "--replicas=2")
		s.kubectl("rollout", "status", "deployment/web")
	})
	steps["undo"] = timed(func() {
		s.kubectl("rollout", "undo", "deployment/web")
		s.kubectl("rollout", "status", "deployment/web")
	})
	steps["template"] = timed(func() {
		s.kubectl("set", "env", "statefulset/queue", "DB_PASSWORD=canary-4711")
		s.until("revision", func() bool {
			return strings.Count(s.kubectl("get", "controllerrevisions", "-o", "name"), "queue-") == 2
		})
	})

	out := recentEvents(t, s.ns)
	if strings.Contains(out, "canary-4711") {
		t.Errorf("a secret value is shown:\n%s", out)
	}
	all := decodeRecent(t, out)
	for _, want := range []struct {
		why, step, fact, kind, name string
		is                          func(d event.Reconstruction) bool
	}{
		{"the creation", "apply", "created", "Deployment", "web", func(event.Reconstruction) bool { return true }},
		{"the creation and its manager", "crash", "created", "Pod", "db-0", func(d event.Reconstruction) bool { return d.Manager == "kube-controller-manager" }},
		{"kubectl scale leaves no time, but the ReplicaSet's controller does", "undo", "written", "ReplicaSet", "web-", func(d event.Reconstruction) bool { return d.Manager == "kube-controller-manager" }},
		{"the rollout to the second image", "set", "rollout", "Deployment", "web", func(d event.Reconstruction) bool {
			return d.Revision == "2" && d.Previous == "1" && image(d) == "shop/app:1 → shop/app:2"
		}},
		{"the rollback", "undo", "rollout", "Deployment", "web", func(d event.Reconstruction) bool {
			return d.Revision == "3" && d.Previous == "2" && image(d) == "shop/app:2 → shop/app:1"
		}},
		{"a new template of a StatefulSet", "template", "rollout", "StatefulSet", "queue", func(d event.Reconstruction) bool {
			return d.Revision == "2" && d.Previous == "1" && len(d.Changes) == 1 && strings.Contains(d.Changes[0].Path, "env")
		}},
		{"its manager", "template", "written", "StatefulSet", "queue", func(d event.Reconstruction) bool { return d.Manager == "kubectl-set" && len(d.Owns) > 0 }},
		{"a new pod becomes ready", "undo", "condition", "Pod", "web-", func(d event.Reconstruction) bool { return len(d.Conditions) > 0 }},
	} {
		found := false
		for _, e := range all {
			d := e.Data
			found = found || string(d.Fact) == want.fact && d.Resource.Kind == want.kind && strings.HasPrefix(d.Resource.Name, want.name) &&
				want.is(d) && within(e, steps[want.step])
		}
		if !found {
			t.Errorf("%s: nothing in %+v", want.why, steps[want.step])
		}
	}
	checkRecent(t, s, all)
	if t.Failed() {
		t.Log(out)
	}
}

// within reports whether the entry's time or interval overlaps a step.
func within(e event.Reconstructed, s step) bool {
	if e.Data.After != nil {
		return !e.Time.Before(s.from.Truncate(time.Second)) && !e.Data.After.After(s.to)
	}
	return s.has(e.Time)
}

// checkRecent compares what is said about containers with the pods.
func checkRecent(t *testing.T, s *stage, all []event.Reconstructed) {
	t.Helper()
	ends := 0
	for _, e := range all {
		if e.Type != event.ReconstructedType || e.Data.Evidence == "" {
			t.Errorf("%+v", e)
		}
		if e.Data.Fact != event.FactTerminated {
			continue
		}
		if ends++; e.Data.ExitCode == nil || *e.Data.ExitCode != 3 || e.Data.Container != "app" || e.Data.Resource.Name != "db-0" {
			t.Errorf("the end of a container: %+v", e.Data)
		}
	}
	if ends == 0 {
		t.Error("no container's end")
	}
}

// image returns the change of an image.
func image(d event.Reconstruction) string {
	for _, c := range d.Changes {
		if strings.HasSuffix(c.Path, ".image") {
			return fmt.Sprintf("%v → %v", c.From, c.To)
		}
	}
	return ""
}

// ended reports whether the status of a pod has the end of a container.
func ended(s *stage, pod string) bool {
	p, err := s.client.CoreV1().Pods(s.ns).Get(s.Context(), pod, metav1.GetOptions{})
	return err == nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].LastTerminationState.Terminated != nil
}

// recentEvents returns what tattler log shows without a journal.
func recentEvents(t *testing.T, ns string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, tattler(t), "log", "-n", ns, "-o", "json", "--limit", "0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "XDG_STATE_HOME="+t.TempDir(), "HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || !strings.Contains(stderr.String(), "no journal at ") {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	return string(out)
}

func decodeRecent(t *testing.T, out string) (all []event.Reconstructed) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e event.Reconstructed
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}
