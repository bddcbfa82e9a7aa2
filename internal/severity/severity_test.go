package severity

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tattler-dev/tattler/event"
)

const (
	ready    = "{type: Ready, status: 'True', lastTransitionTime: '2026-11-21T10:00:10Z'}"
	unready  = "{type: Ready, status: 'False', lastTransitionTime: '2026-11-21T10:00:00Z'}"
	lost     = "{type: Ready, status: 'False', lastTransitionTime: '2026-11-21T11:00:00Z'}"
	running  = "{name: a, state: {running: {startedAt: '2026-11-21T10:00:05Z'}}}"
	crashing = "{name: a, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, finishedAt: '2026-11-21T10:00:06Z'}}}"
)

// pod returns a pod with the given status.
func pod(phase, condition, container string) string {
	return "{metadata: {creationTimestamp: '2026-11-21T10:00:00Z'}, status: {phase: " + phase + ", conditions: [" + condition + "], containerStatuses: [" + container + "]}}"
}

// release returns a Secret of a Helm 3 release.
func release(status string) string {
	return "{type: helm.sh/release.v1, metadata: {name: sh.helm.release.v1.web.v2, labels: {name: web, owner: helm, version: '2', status: " + status + "}}}"
}

func conditions(list string) string {
	return "{metadata: {creationTimestamp: '2026-11-21T10:00:00Z'}, status: {conditions: [" + list + "]}}"
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		why, kind     string
		before, after string
		want          event.Severity
	}{
		{"a pod becomes ready for the first time", "Pod", pod("Pending", unready, ""), pod("Running", ready, running), event.Normal},
		{"a crash loop", "Pod", pod("Running", unready, running), pod("Running", unready, crashing), event.Failure},
		{"a crash loop continues", "Pod", pod("Running", unready, crashing), pod("Running", lost, crashing), event.Normal},
		{"a crash loop ends", "Pod", pod("Running", unready, crashing), pod("Running", ready, running), event.Recovery},
		{"the two reasons for an image take turns", "Pod", pod("Pending", unready, "{name: a, state: {waiting: {reason: ErrImagePull}}}"),
			pod("Pending", unready, "{name: a, state: {waiting: {reason: ImagePullBackOff}}}"), event.Normal},
		{"a missing image", "Pod", pod("Pending", unready, "{name: a, state: {waiting: {reason: ContainerCreating}}}"),
			pod("Pending", unready, "{name: a, state: {waiting: {reason: ErrImagePull}}}"), event.Failure},
		{"out of memory", "Pod", pod("Running", ready, running),
			pod("Running", unready, "{name: a, state: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: '2026-11-21T11:00:00Z'}}}"), event.Failure},
		{"running again after that", "Pod",
			pod("Running", unready, "{name: a, state: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: '2026-11-21T11:00:00Z'}}}"),
			pod("Running", ready, "{name: a, restartCount: 1, lastState: {terminated: {reason: OOMKilled, exitCode: 137, finishedAt: '2026-11-21T11:00:00Z'}}}"), event.Recovery},
		{"a container that ended with an error", "Pod", pod("Running", ready, running),
			pod("Running", unready, "{name: a, state: {terminated: {exitCode: 2, finishedAt: '2026-11-21T11:00:00Z'}}}"), event.Warning},
		{"unschedulable", "Pod", pod("Pending", "", ""), pod("Pending", "{type: PodScheduled, status: 'False', reason: Unschedulable}", ""), event.Failure},
		{"evicted", "Pod", pod("Running", ready, running), "{status: {phase: Failed, reason: Evicted}}", event.Failure},
		{"readiness lost", "Pod", pod("Running", ready, running), pod("Running", lost, running), event.Warning},
		{"readiness regained", "Pod", pod("Running", lost, running), pod("Running", ready, running), event.Recovery},
		{"a deletion begins", "Pod", pod("Running", ready, running),
			"{metadata: {deletionTimestamp: '2026-11-21T11:00:00Z'}, status: {phase: Running, conditions: [" + ready + "]}}", event.Normal},
		{"a node", "Node", conditions(ready), conditions("{type: Ready, status: Unknown, lastTransitionTime: '2026-11-21T11:00:00Z'}"), event.Failure},
		{"a node recovers", "Node", conditions("{type: Ready, status: Unknown, lastTransitionTime: '2026-11-21T11:00:00Z'}"), conditions(ready), event.Recovery},
		{"a new node", "Node", conditions(unready), conditions(ready), event.Normal},
		{"a node under memory pressure", "Node", conditions(ready), conditions(ready + ", {type: MemoryPressure, status: 'True'}"), event.Warning},
		{"a rollout beyond its deadline", "Deployment.apps", conditions("{type: Progressing, status: 'True', reason: ReplicaSetUpdated}"),
			conditions("{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}"), event.Failure},
		{"the rollout progresses again", "Deployment.apps", conditions("{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}"),
			conditions("{type: Progressing, status: 'True', reason: ReplicaSetUpdated}"), event.Recovery},
		{"a new Deployment is not available yet", "Deployment.apps", "{}",
			conditions("{type: Available, status: 'False'}, {type: Progressing, status: 'True', reason: NewReplicaSetCreated}"), event.Normal},
		{"an available Deployment becomes unavailable", "Deployment.apps", conditions("{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}"),
			conditions("{type: Available, status: 'False'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}"), event.Warning},
		{"a Job", "Job.batch", "{}", conditions("{type: Failed, status: 'True', reason: BackoffLimitExceeded}"), event.Failure},
		{"a quota", "ReplicaSet.apps", "{}", conditions("{type: ReplicaFailure, status: 'True'}"), event.Failure},
		{"another kind", "Backup.example.com", "{status: {phase: Running}}", "{status: {phase: Failed}}", event.Failure},
		{"another kind recovers", "Backup.example.com", conditions(lost), conditions(ready), event.Recovery},
		{"a Helm release", "Secret", release("pending-upgrade"), release("failed"), event.Failure},
		{"a Helm release succeeds", "Secret", release("pending-upgrade"), release("deployed"), event.Normal},
		{"a Secret that looks like one", "Secret", "{}", "{type: Opaque, metadata: {labels: {owner: helm, status: failed}}}", event.Normal},
		{"a release in a ConfigMap", "ConfigMap", "{}", "{metadata: {name: sh.helm.release.v1.web.v2, labels: {owner: helm, status: failed}}}", event.Failure},
		{"spec", "Deployment.apps", "{spec: {replicas: 1}}", "{spec: {replicas: 2}}", event.Normal},
	} {
		t.Run(tc.why, func(t *testing.T) {
			var before, after map[string]any
			for text, to := range map[string]*map[string]any{tc.before: &before, tc.after: &after} {
				if err := yaml.Unmarshal([]byte(text), to); err != nil {
					t.Fatal(err)
				}
			}
			if got := Of(event.Updated, tc.kind, before, after); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			for field := range before {
				if field != "metadata" && reflect.DeepEqual(before[field], after[field]) {
					delete(before, field)
					delete(after, field)
				}
			}
			if got := Of(event.Updated, tc.kind, before, after); got != tc.want {
				t.Errorf("without the fields that are equal: got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOfOtherOperations(t *testing.T) {
	failed := map[string]any{"status": map[string]any{"phase": "Failed"}}
	for _, tc := range []struct {
		op            event.Op
		before, after map[string]any
		want          event.Severity
	}{
		{event.Gap, nil, nil, event.Warning},
		{event.Deleted, failed, nil, event.Normal},
		{event.Snapshot, nil, failed, event.Failure},
		{event.Created, nil, map[string]any{}, event.Normal},
		{event.Created, nil, map[string]any{"type": "Warning", "reason": "Unhealthy"}, event.Normal},
		{event.Converted, nil, failed, event.Normal},
	} {
		if got := Of(tc.op, "Pod", tc.before, tc.after); got != tc.want {
			t.Errorf("%s of %v: %s, want %s", tc.op, tc.after, got, tc.want)
		}
	}
	for reason, want := range map[string]event.Severity{"FailedScheduling": event.Failure, "Unhealthy": event.Warning} {
		if got := Of(event.Created, "Event", nil, map[string]any{"type": "Warning", "reason": reason}); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
}
