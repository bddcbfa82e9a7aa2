package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// lies collects the errors that truth reports.
type lies struct{ found []string }

func (*lies) Helper() {}

func (l *lies) Errorf(format string, args ...any) {
	l.found = append(l.found, fmt.Sprintf(format, args...))
}

// rolledOut is a Deployment that was created at :00, set at :10 and complete at :13, with its old pod and its
// new one, which waited for its image at first.
func rolledOut(t *testing.T) *observer {
	w := &observer{objects: map[string][]sighting{}, owned: map[types.UID]map[string]string{}}
	at := func(second int) string {
		return time.Date(2026, 1, 2, 10, 0, second, 0, time.UTC).Format(time.RFC3339)
	}
	see := func(word string, second int, gone bool, text string) {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		w.see(word, o, gone)
		seen := w.objects[o.GetNamespace()+"/"+word+"/"+o.GetName()]
		seen[len(seen)-1].at, _ = time.Parse(time.RFC3339, at(second))
	}
	deploy := func(generation, second, ready int, status string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"d","generation":%d,
			"creationTimestamp":%q,"managedFields":[{"manager":"kubectl","time":%q},{"manager":"kcm","subresource":"status","time":%q}]},
			"spec":{"replicas":1},"status":{"readyReplicas":%d,"conditions":[{"type":"Progressing",%s}]}}`,
			generation, at(0), at([]int{0, 10}[generation-1]), at(second), ready, status)
	}
	pod := func(name string, born, second int, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop","uid":%[1]q,"creationTimestamp":%q,
			"ownerReferences":[{"kind":"Deployment","uid":"d","controller":true}],"managedFields":[{"manager":"kubelet","subresource":"status","time":%q}]},
			"spec":{"nodeName":"n1"},"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%[3]q}],%s}}`, name, at(born), at(second), more)
	}
	waiting := `"containerStatuses":[{"name":"app","image":"app:2","restartCount":2,"state":{"waiting":{"reason":"ErrImagePull"}},"lastState":{"terminated":{"exitCode":3}}}]`
	see("deploy", 0, false, deploy(1, 0, 1, `"reason":"NewReplicaSetAvailable","lastUpdateTime":"`+at(0)+`"`))
	see("pod", 1, false, pod("web-a", 0, 1, `"phase":"Running"`))
	see("deploy", 10, false, deploy(2, 10, 1, `"reason":"ReplicaSetUpdated"`))
	see("pod", 11, false, pod("web-b", 10, 11, waiting))
	see("deploy", 13, false, deploy(2, 13, 1, `"reason":"NewReplicaSetAvailable","lastUpdateTime":"`+at(13)+`"`))
	see("pod", 13, true, pod("web-a", 0, 1, `"phase":"Running"`))
	return w
}

// TestTruth: truth must find each statement that contradicts the objects.
func TestTruth(t *testing.T) {
	w := rolledOut(t)
	for _, tc := range []struct {
		line string
		lie  string // part of the error; empty: the line is true
	}{
		{"00Z + deploy/web  kubectl", ""},
		{"01Z + deploy/web  kubectl", "not created then"},
		{"10Z ~ deploy/web  kubectl", ""},
		{"11Z ~ deploy/web  kubectl", "kubectl did not write"},
		{"10Z ~ deploy/web  helm", "helm did not write"},
		{"13Z · deploy/web  rolled out in 3 s: 1/1 ready, 1 pod replaced", ""},
		{"14Z · deploy/web  rolled out in 3 s: 1/1 ready, 1 pod replaced", "contradicts the objects"},
		{"13Z · deploy/web  rolled out in 4 s: 1/1 ready", "contradicts the objects"},
		{"13Z · deploy/web  rolled out within 1 s: 1/1 ready", "contradicts the objects"},
		{"13Z · deploy/web  rolled out in 3 s: 2/1 ready", "2/1 ready"},
		{"13Z · deploy/web  rolled out in 3 s: 1/1 ready, 2 pods replaced", "2 pods replaced"},
		{"13Z · deploy/web  took 7 s", "no check for"},
		{"30Z · deploy/web  1/1 ready", "anything happened then"},
		{"13Z · deploy/web  ProgressDeadlineExceeded; 1/1 ready", "ProgressDeadlineExceeded"},
		{"13Z · deploy/api  1/1 ready", "never existed"},
		{"13Z · deploy/web  1 pod ErrImagePull; rolling out: 1/1 ready", ""},
		{"13Z · deploy/web  2 pods ErrImagePull; rolling out: 1/1 ready", "2 pods ErrImagePull"},
		{"11Z ·   pod/web-b  ErrImagePull: back-off, new on n1", ""},
		{"11Z ·   pod/web-b  ImagePullBackOff, new on n1", "ImagePullBackOff"},
		{"11Z ·   pod/web-b  ErrImagePull, new on n2", "new on n2"},
		{"11Z ·   pod/web-b  CrashLoopBackOff: exit code 3, 2 restarts", "CrashLoopBackOff"},
		{"11Z ·   pod/web-b  ErrImagePull: exit code 4", "exit code 4"},
		{"13Z - pod/web-a  gone after 13 s", ""},
		{"13Z - pod/web-a  gone after 20 s", "gone after 20 s"},
	} {
		l := &lies{}
		(&truth{l, w, "shop"}).check("2026-01-02T10:00:" + tc.line + "\n")
		if found := strings.Join(l.found, "; "); (tc.lie == "") != (found == "") || !strings.Contains(found, tc.lie) {
			t.Errorf("%s: found %q, want %q", tc.line, found, tc.lie)
		}
	}
}
