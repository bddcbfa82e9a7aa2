package fill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tattler-dev/tattler/bench/gen"
)

// TestOpen: the objects that a real API server stores equal those of the generator, also when the
// control plane is opened again.
func TestOpen(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	o := Options{Pods: 400, Widgets: 300, Seed: 1, Dir: t.TempDir(), Out: t.Output()}
	for _, when := range []string{"filled", "opened again"} {
		c, err := Open(ctx, o)
		if err != nil {
			t.Fatal(when, err)
		}
		if _, err := Open(ctx, o); err == nil {
			t.Error(when, "a second Open succeeded")
		}
		pods(ctx, t, c, o)
		widgets(ctx, t, c, o)
		if err := c.Stop(); err != nil {
			t.Fatal(when, err)
		}
	}
}

func pods(ctx context.Context, t *testing.T, c *Cluster, o Options) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != o.Pods {
		t.Fatalf("there are %d pods, not %d", len(list.Items), o.Pods)
	}
	g, stored, expected := gen.New(o.Seed), 0, 0
	for _, p := range list.Items {
		i, ok := g.Index(p.Namespace, p.Name)
		if !ok {
			t.Fatalf("%s/%s is not a generated pod", p.Namespace, p.Name)
		}
		want := g.Pod(i)
		stored, expected = stored+p.Size(), expected+want.Size()
		if diff := cmp.Diff(normalized(t, want), normalized(t, &p)); diff != "" {
			t.Fatalf("pod %d: the generator (-) and the API server (+) differ:\n%s", i, diff)
		}
	}
	t.Logf("stored pods have %d bytes on average, generated pods %d", stored/o.Pods, expected/o.Pods)
	if d := stored - expected; d < -expected/100 || d > expected/100 {
		t.Errorf("stored pods have %d bytes, generated pods %d", stored, expected)
	}
}

// normalized removes from a pod the values that differ between servers.
func normalized(t *testing.T, p *corev1.Pod) map[string]any {
	p = p.DeepCopy()
	p.UID, p.ResourceVersion, p.CreationTimestamp = "", "", metav1.Time{}
	p.Finalizers = nil // the controller that would set them does not run
	token := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "kube-api-access-") })
	if token >= 0 {
		name := p.Spec.Volumes[token].Name
		p.Spec.Volumes[token].Name = "token"
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for _, c := range list {
				for i := range c.VolumeMounts {
					if c.VolumeMounts[i].Name == name {
						c.VolumeMounts[i].Name = "token"
					}
				}
			}
		}
	}
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodScheduled {
			p.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	for i := range p.ManagedFields {
		p.ManagedFields[i].Time = nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func widgets(ctx context.Context, t *testing.T, c *Cluster, o Options) {
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(gen.Widgets).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != o.Widgets {
		t.Fatalf("there are %d widgets, not %d", len(list.Items), o.Widgets)
	}
	var sizes []int
	sum := 0
	for _, w := range list.Items {
		b, err := w.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		sizes, sum = append(sizes, len(b)), sum+len(b)
	}
	slices.Sort(sizes)
	t.Logf("%d bytes per widget; %s", sum/len(sizes), fmt.Sprint("percentiles 0, 10, 50, 90, 100: ",
		sizes[0], sizes[len(sizes)/10], sizes[len(sizes)/2], sizes[len(sizes)*9/10], sizes[len(sizes)-1]))
	if mean := sum / len(sizes); mean < 3000 || mean > 5500 {
		t.Errorf("widgets have %d bytes on average", mean)
	}
}
