package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// replicas makes a Deployment and returns its pods' names. No scheduler takes them, so no kubelet, and no kwok, writes
// their status: the tests do. All else about them is real, also the status of their PodDisruptionBudgets.
func replicas(t *testing.T, namespace, name string, n int) []string {
	t.Helper()
	kubectl(t, "create", "-f", manifest(t, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s}}, spec: {schedulerName: nobody, containers: [{name: main, image: "a:1"}]}}
`, name, namespace, n)))
	var pods []string
	eventually(t, func() error {
		pods = strings.Fields(kubectl(t, "get", "pods", "-n", namespace, "-l", "app="+name, "-o", "jsonpath={.items[*].metadata.name}"))
		if len(pods) != n {
			return fmt.Errorf("%d pods, want %d", len(pods), n)
		}
		return nil
	})
	return pods
}

// status writes the status of a pod as a kubelet would, whose containers are ready, or wait, since then. Zero leaves the
// conditions out.
func status(t *testing.T, namespace, pod string, since time.Time, ready bool) {
	t.Helper()
	s := corev1.PodStatus{Phase: corev1.PodRunning}
	c := corev1.ContainerStatus{Name: "main", Image: "a:1", Ready: ready}
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
		c.State.Running = &corev1.ContainerStateRunning{}
	} else {
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `configmap "x" not found`}
	}
	if !since.IsZero() {
		for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: metav1.NewTime(since)})
		}
	}
	s.ContainerStatuses = []corev1.ContainerStatus{c}
	patch, err := json.Marshal(map[string]any{"status": s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t).CoreV1().Pods(namespace).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// gone waits until a pod does not exist.
func gone(t *testing.T, namespace, pod string) {
	t.Helper()
	eventually(t, func() error {
		if exists(t, namespace, pod) {
			return errors.New(pod + " exists")
		}
		return nil
	})
}

func exists(t *testing.T, namespace, pod string) bool {
	t.Helper()
	return kubectl(t, "get", "pod", pod, "-n", namespace, "--ignore-not-found", "-o", "name") != ""
}

const configError = "CreateContainerConfigError"

// TestPodRestarter: a real PodDisruptionBudget, whose status the real controller-manager writes.
func TestPodRestarter(t *testing.T) {
	t.Parallel()
	may, ns := rights(t, "pod-restarter"), namespace(t, "restarter")
	pods := replicas(t, ns, "a", 2)
	kubectl(t, "create", "poddisruptionbudget", "budget", "--selector=app=a", "--min-available=1", "-n", ns)
	long := time.Now().Add(-10 * time.Minute)
	for _, pod := range pods {
		status(t, ns, pod, long, false)
	}
	args := []string{"--reason", "Other", "--reason", configError, "--namespace", ns, "--retry", "300ms"}
	forbids := `why="The disruption budget budget needs 1 healthy pods and has 0 currently"`
	dry := start(t, "pod-restarter", may, args...)
	dry.prints(t, "dry run: ")
	dry.prints(t, forbids)
	actual := start(t, "pod-restarter", may, append(args, "--evict")...)
	actual.prints(t, forbids)
	actual.prints(t, "pod="+ns+"/"+pods[0])
	actual.prints(t, "pod="+ns+"/"+pods[1])
	actual.stop(t)
	if !exists(t, ns, pods[0]) || !exists(t, ns, pods[1]) {
		t.Fatal("a pod was evicted, though the budget forbade it")
	}

	status(t, ns, pods[0], time.Now(), true) // it recovers, so the budget allows the other one
	dry.prints(t, "would evict pod="+ns+"/"+pods[1])
	dry.stop(t)
	if !exists(t, ns, pods[1]) {
		t.Fatal("the dry run deleted a pod")
	}
	actual = start(t, "pod-restarter", may, append(args, "--evict")...)
	actual.prints(t, "evicted pod="+ns+"/"+pods[1])
	gone(t, ns, pods[1])
	eventually(t, func() error { // the Deployment has a new one
		if n := len(strings.Fields(kubectl(t, "get", "pods", "-n", ns, "-o", "name"))); n != 2 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	actual.stop(t)
	if !exists(t, ns, pods[0]) || strings.Contains(actual.out.String(), pods[0]) {
		t.Error("the pod that recovered was not left alone")
	}
	if !strings.Contains(actual.out.String(), "since="+long.UTC().Format(time.RFC3339)+` by="its condition"`) {
		t.Error("it does not say since when the pod was stuck")
	}
}

// TestPodRestarterAfter: a restart does not change how long a pod is stuck, and one that recovers in time is left alone.
// One that has changed, which the program has not seen yet, is not evicted before that is seen.
func TestPodRestarterAfter(t *testing.T) {
	t.Parallel()
	may, ns := rights(t, "pod-restarter"), namespace(t, "restarter")
	pods := replicas(t, ns, "a", 2)
	since := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	status(t, ns, pods[0], since, false)
	status(t, ns, pods[1], since, false)
	args := []string{"--reason", configError, "--namespace", ns, "--evict", "--per-minute", "600", "--after"}
	first := start(t, "pod-restarter", may, append(args, "20m")...)
	first.prints(t, "synced pods=2")
	began := time.Now()
	eventually(t, func() error {
		if time.Since(began) < 5*time.Second {
			return errors.New("it is not time yet")
		}
		return nil
	})
	first.stop(t)
	if strings.Contains(first.out.String(), "evicted") {
		t.Fatal("too early")
	}
	status(t, ns, pods[0], time.Now(), true)
	due := time.Now().Add(45 * time.Second) // by then the other one has started and is frozen
	args = append(args, due.Sub(since).String())
	late := newLine(t)
	cmd := command("pod-restarter", late.kubeconfig(t, may), args...) // it has not been there for long, and the pod has
	cmd.Env = append(cmd.Env, patientPings...)
	again := launch(t, cmd)
	again.prints(t, "synced pods=2")
	late.freeze()
	kubectl(t, "annotate", "pod", pods[1], "a=b", "-n", ns)
	again.prints(t, "it has changed since it was judged, and is judged again pod="+ns+"/"+pods[1])
	if !exists(t, ns, pods[1]) {
		t.Error("it was evicted as it was not any more")
	}
	late.thaw()
	again.prints(t, " evicted pod="+ns+"/"+pods[1])
	if time.Now().Before(due) {
		t.Error("it was evicted before it was due")
	}
	gone(t, ns, pods[1])
	again.stop(t)
	if !exists(t, ns, pods[0]) {
		t.Error("the pod that recovered was evicted")
	}
}

// TestPodRestarterEvent: an event counts from its first time, unless it was over when the pod became unready.
func TestPodRestarterEvent(t *testing.T) {
	t.Parallel()
	may, ns := rights(t, "pod-restarter"), namespace(t, "restarter")
	pods := replicas(t, ns, "a", 2)
	now := time.Now()
	event := func(pod string, first, last time.Time) {
		t.Helper()
		p, err := client(t).CoreV1().Pods(ns).Get(t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(t).CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "a", Namespace: ns},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: pod, UID: p.UID},
			Reason:         "FailedMount", Type: corev1.EventTypeWarning, Message: "no volume",
			FirstTimestamp: metav1.NewTime(first), LastTimestamp: metav1.NewTime(last),
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	status(t, ns, pods[0], now.Add(-time.Hour), false)
	status(t, ns, pods[1], now.Add(-time.Hour), false)
	p := start(t, "pod-restarter", may, "--event", "FailedMount", "--namespace", ns, "--evict", "--per-minute", "600")
	event(pods[0], now.Add(-3*time.Hour), now.Add(-2*time.Hour)) // it was over an hour later
	event(pods[0], now, now)                                     // not for 5 minutes yet
	event(pods[1], now.Add(-10*time.Minute), now)
	p.prints(t, "evicted pod="+ns+"/"+pods[1]+` why="event FailedMount: no volume" since=`+now.Add(-10*time.Minute).UTC().Format(time.RFC3339)+` by="the event"`)
	gone(t, ns, pods[1])
	p.stop(t)
	if !exists(t, ns, pods[0]) {
		t.Error("a pod was evicted by an event that was over")
	}
}

// TestPodRestarterRate: evictions are at least a minute / --per-minute apart; nobody's pod is left alone.
func TestPodRestarterRate(t *testing.T) {
	t.Parallel()
	may, ns := rights(t, "pod-restarter"), namespace(t, "restarter")
	pods := replicas(t, ns, "a", 3)
	for _, pod := range pods {
		status(t, ns, pod, time.Now().Add(-time.Hour), false)
	}
	kubectl(t, "create", "-f", manifest(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: bare, namespace: "+ns+"}\nspec: {schedulerName: nobody, containers: [{name: main, image: 'a:1'}]}\n"))
	status(t, ns, "bare", time.Time{}, false)
	args := []string{"--reason", configError, "--namespace", ns, "--evict", "--per-minute", "12", "--after", "1s"}
	p := start(t, "pod-restarter", may, args...)
	for _, pod := range pods {
		gone(t, ns, pod)
		p.prints(t, "evicted pod="+ns+"/"+pod)
	}
	p.prints(t, "it has no controller")
	p.prints(t, `by="first sight: the pod does not say"`)
	p.stop(t)
	var at []time.Time
	for _, line := range regexp.MustCompile(`(?m)^(\S+ \S+) INFO evicted`).FindAllStringSubmatch(p.out.String(), -1) {
		when, err := time.Parse("2006/01/02 15:04:05", line[1])
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, when)
	}
	if len(at) != 3 || at[2].Sub(at[0]) < 5*time.Second { // some of the 10 s may pass before the first is logged
		t.Errorf("evictions at %v, want three, 5 s apart", at)
	}
	if !exists(t, ns, "bare") {
		t.Error("a pod without a controller was evicted")
	}
	p = start(t, "pod-restarter", may, append(args, "--bare")...)
	p.prints(t, "evicted pod="+ns+"/bare")
	gone(t, ns, "bare")
	p.stop(t)
}

// TestPodRestarterRights: without the right to evict it says so, and goes on once it has it.
func TestPodRestarterRights(t *testing.T) {
	t.Parallel()
	ns := namespace(t, "restarter")
	reader := user(t, "reader-"+ns)
	kubectl(t, "create", "rolebinding", "reads", "--clusterrole=view", "--user=reader-"+ns, "-n", ns)
	lists(t, "reader-"+ns, ns, "", "pods")
	pods := replicas(t, ns, "a", 1)
	status(t, ns, pods[0], time.Now().Add(-time.Hour), false)
	p := start(t, "pod-restarter", reader, "--reason", configError, "--namespace", ns, "--evict", "--retry", "1s")
	p.prints(t, `cannot create resource \"pods/eviction\"`)
	kubectl(t, "create", "role", "evicts", "--verb=create", "--resource=pods/eviction", "-n", ns)
	kubectl(t, "create", "rolebinding", "evicts", "--role=evicts", "--user=reader-"+ns, "-n", ns)
	gone(t, ns, pods[0])
	p.stop(t)
	for _, bad := range [][]string{{}, {"--reason", "a", "--per-minute", "0"}, {"--reason", "a", "--retry", "-1s"}} {
		if line := fails(t, command("pod-restarter", reader, bad...), 2); !strings.Contains(line, "--reason") {
			t.Errorf("%v: %s", bad, line)
		}
	}
}
