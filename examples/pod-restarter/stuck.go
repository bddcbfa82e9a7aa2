package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

// stuck is why a pod is stuck, and since when.
type stuck struct {
	why   string
	since time.Time
	says  string // what since was read from
}

// podEvents finds events by the pod that they are about.
type podEvents = *informer.Index[*corev1.Event, types.UID]

func about(e *corev1.Event) []types.UID { return []types.UID{e.InvolvedObject.UID} }

// stuck judges a pod: nil if it is not stuck. Its since is zero where the objects do not say it.
func (r *restarter) stuck(pod *corev1.Pod) (*stuck, error) {
	unready, ready := condition(pod)
	if ready || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && slices.Contains(r.reasons, w.Reason) {
			why := strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message), ": ") // not all have a message
			return &stuck{why, unready, "its condition"}, nil
		}
	}
	if r.byPod == nil {
		return nil, nil
	}
	var found *stuck
	for e, err := range r.byPod.In(pod.Namespace, pod.UID) {
		if err != nil {
			return nil, fmt.Errorf("read its events: %w", err)
		}
		first, last := times(e)
		if !slices.Contains(r.events, e.Reason) || last.Before(unready) {
			continue // what it is about was over when the pod became unready
		}
		// An event that is older than that counts from when the pod became unready.
		s := &stuck{fmt.Sprintf("event %s: %s", e.Reason, e.Message), first, "the event"}
		if first.Before(unready) {
			s.since, s.says = unready, "its condition"
		}
		if found == nil || s.since.Before(found.since) {
			found = s
		}
	}
	return found, nil
}

// condition returns since when the containers of a pod are not ready, zero if nothing says so, or that they are.
func condition(pod *corev1.Pod) (unready time.Time, ready bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.ContainersReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// times are when an event was first and last seen. Events have them in different fields, by the API that made them.
func times(e *corev1.Event) (first, last time.Time) {
	first = cmp.Or(e.FirstTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
	last = cmp.Or(e.LastTimestamp.Time, first)
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return first, last
}

// record is the state of a stuck pod since it was first seen.
type record struct {
	uid  types.UID
	at   time.Time
	done bool // it was evicted or left alone, which was logged
}

// remember records a stuck pod, and sets since if the objects do not show it.
func (r *restarter) remember(key controller.Key, pod *corev1.Pod, s *stuck) record {
	known, ok := r.seen[key]
	if !ok || known.uid != pod.UID {
		known = record{uid: pod.UID, at: time.Now()}
		r.seen[key] = known
	}
	if s.since.IsZero() {
		s.since, s.says = known.at, "first sight: the pod does not say"
	}
	return known
}

// log logs the action on a pod, once.
func (r *restarter) log(key controller.Key, what string, s *stuck) {
	known := r.seen[key]
	known.done = true
	r.seen[key] = known
	slog.Info(what, "pod", key.String(), "why", s.why, "since", s.since.UTC().Format(time.RFC3339), "by", s.says)
}

// cause returns why an eviction is refused: the API server's message about the budget, if it has one.
func cause(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			return c.Message
		}
	}
	return err.Error()
}
