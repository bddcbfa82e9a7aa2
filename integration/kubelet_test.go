package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kubelet simulates a node whose pods behave as their label "behaves" says: well, crash or no-image. The
// cluster's own fake nodes have no failing containers.
type kubelet struct {
	client kubernetes.Interface
	node   string
	silent bool // it stops sending heartbeats
	pods   map[string]*played
}

// played is the kubelet's state of a pod.
type played struct {
	step  int
	next  time.Time
	ready bool // the controllers have seen it ready
}

// lastCrash and lastPull are the steps after which a pod stays as it is: what a log says about it does not depend on how long
// the test goes on.
const lastCrash, lastPull = 8, 12

// startKubelet registers a node and simulates it until the test ends.
func startKubelet(t *testing.T, client kubernetes.Interface, node string, silent bool) {
	t.Helper()
	k := &kubelet{client: client, node: node, silent: silent, pods: map[string]*played{}}
	created, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CoreV1().Nodes().Delete(context.Background(), created.Name, metav1.DeleteOptions{}) })
	if err := k.beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		beat := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := k.round(ctx); err != nil && ctx.Err() == nil {
				t.Logf("node %s: %v", node, err) // the next round tries again
			}
			if !silent && time.Since(beat) > 10*time.Second {
				beat = time.Now()
				if err := k.beat(ctx); err != nil && ctx.Err() == nil {
					t.Logf("node %s: %v", node, err)
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// beat sends a heartbeat of the node.
func (k *kubelet) beat(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	since := now
	if len(node.Status.Conditions) > 0 {
		since = node.Status.Conditions[0].LastTransitionTime
	}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: since,
	}}
	if _, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{FieldManager: "kubelet"}); errors.IsConflict(err) {
		return k.beat(ctx)
	}
	return err
}

// round updates every pod of the node.
func (k *kubelet) round(ctx context.Context) error {
	pods, err := k.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.node})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if err := k.look(ctx, pod); err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func (k *kubelet) look(ctx context.Context, pod *corev1.Pod) error {
	p := k.pods[string(pod.UID)]
	if p == nil {
		p = &played{}
		k.pods[string(pod.UID)] = p
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	case time.Now().Before(p.next):
		return nil
	}
	p.next = time.Now().Add(1500 * time.Millisecond)
	behaves := pod.Labels["behaves"]
	switch {
	case behaves == "crash" && p.step == 1 && !p.ready:
		p.ready = k.seenReady(ctx, pod)
		p.next = time.Now().Add(3 * time.Second)
		return nil
	case behaves == "crash" && p.step == lastCrash, behaves == "no-image" && p.step == lastPull:
		return nil
	}
	p.step++
	switch behaves {
	case "crash":
		crash(pod, p.step)
	case "no-image":
		reason := "ErrImagePull"
		if p.step%2 == 0 {
			reason = "ImagePullBackOff"
		}
		waits(pod, reason, 0)
	default:
		p.next = time.Now().Add(time.Hour)
		runs(pod, 0)
	}
	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

// seenReady reports whether the controllers of a pod's workload have seen it ready.
func (k *kubelet) seenReady(ctx context.Context, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return true
	}
	apps := k.client.AppsV1()
	if owner.Kind == "StatefulSet" {
		s, err := apps.StatefulSets(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		return err == nil && s.Status.ReadyReplicas == *s.Spec.Replicas
	}
	set, err := apps.ReplicaSets(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	d, err := apps.Deployments(pod.Namespace).Get(ctx, metav1.GetControllerOf(set).Name, metav1.GetOptions{})
	return err == nil && d.Status.ReadyReplicas == *d.Spec.Replicas &&
		slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Reason == "NewReplicaSetAvailable" })
}

// crash makes a container run for a while, fail with exit code 3, and wait, repeatedly.
func crash(pod *corev1.Pod, step int) {
	ended := &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: metav1.Now()}
	if step%2 == 1 {
		last := pod.Status.ContainerStatuses
		runs(pod, int32(step/2))
		if len(last) > 0 {
			pod.Status.ContainerStatuses[0].LastTerminationState = last[0].LastTerminationState
		}
		return
	}
	waits(pod, "CrashLoopBackOff", int32(step/2-1))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended
}

func runs(pod *corev1.Pod, restarts int32) {
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	ready(pod, corev1.ConditionTrue)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, Ready: true, RestartCount: restarts,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
}

func waits(pod *corev1.Pod, reason string, restarts int32) {
	pod.Status.Phase = corev1.PodPending
	ready(pod, corev1.ConditionFalse)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, RestartCount: restarts,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off"}},
	}}
}

// ready sets the readiness conditions, with their transition time.
func ready(pod *corev1.Pod, status corev1.ConditionStatus) {
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		i := 0
		for i < len(pod.Status.Conditions) && pod.Status.Conditions[i].Type != kind {
			i++
		}
		if i == len(pod.Status.Conditions) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind})
		}
		if c := &pod.Status.Conditions[i]; c.Status != status {
			c.Status, c.LastTransitionTime = status, metav1.Now()
		}
	}
}
