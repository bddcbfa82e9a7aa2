// Command node-tagger copies the tags of cloud instances to the labels of their nodes, and keeps them so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
	"github.com/tattler-dev/tattler/informer"
	"github.com/tattler-dev/tattler/informer/controller"
)

func main() {
	prefix := flag.String("prefix", "tags.example.com/", "`prefix` of the labels' keys")
	every := flag.Duration("every", 5*time.Minute, "how often the cloud is asked again")
	tags := flag.String("tags", "", "read the tags from this JSON `file` instead of EC2, to try the program")
	program.Main(func(ctx context.Context, cfg *rest.Config) error { return run(ctx, cfg, *prefix, *tags, *every) })
}

func run(ctx context.Context, cfg *rest.Config, prefix, tags string, every time.Duration) error {
	if errs := validation.IsDNS1123Subdomain(strings.TrimSuffix(prefix, "/")); !strings.HasSuffix(prefix, "/") || errs != nil || every <= 0 {
		return program.Usage("--prefix %q, --every %v: give the prefix of a label with its slash, and a positive time", prefix, every)
	}
	cfg.QPS, cfg.Burst = 50, 100 // at client-go's default of five a second, a large cluster would take minutes
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	cluster, err := informer.NewCluster(cfg, informer.Options{})
	if err != nil {
		return err
	}
	nodes, err := informer.For[*corev1.Node](cluster)
	if err != nil {
		return err
	}
	cloud, err := newCloud(ctx, tags)
	if err != nil {
		return err
	}
	t := &tagger{prefix: prefix, every: every, cloud: cloud, nodes: nodes, client: client, known: map[string]known{}}

	// One key stands for all nodes: however many join while the cloud is being asked, they are one more call.
	all := func(*corev1.Node) []controller.Key { return []controller.Key{{Name: "all nodes"}} }
	changed := controller.Any(controller.LabelsChanged[*corev1.Node], controller.Touches[*corev1.Node]("spec.providerID"))
	hooks := controller.Hooks{Synced: func() { slog.Info("synced", "nodes", nodes.Len()) }}
	o := controller.Options{MinBackoff: min(every, time.Second), MaxBackoff: every, Hooks: hooks}
	return controller.Run(ctx, cluster, controller.New("node-tagger", t.reconcile, o, controller.Map(nodes, all, changed)))
}

// tagger has one worker, so what it keeps needs no lock.
type tagger struct {
	prefix string
	every  time.Duration
	cloud  cloud
	nodes  *informer.Informer[*corev1.Node]
	client kubernetes.Interface
	known  map[string]known // by instance
}

// known is what the cloud has said about an instance.
type known struct {
	tags, labels map[string]string
	until        time.Time
}

func (t *tagger) reconcile(ctx context.Context, _ controller.Key) (controller.Result, error) {
	nodes, err := t.instances()
	if err != nil {
		return controller.Result{}, err
	}
	maps.DeleteFunc(t.known, func(id string, _ known) bool { return nodes[id] == nil })
	var due []string
	for id := range nodes {
		if time.Now().After(t.known[id].until) {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	next := time.Now().Add(t.every)
	tags, err := t.cloud.Tags(ctx, due)
	for id, has := range tags {
		labels := t.known[id].labels
		if before, ok := t.known[id]; !ok || !maps.Equal(before.tags, has) {
			labels = toLabels(t.prefix, has, slog.With("node", nodes[id].Name, "instance", id))
		}
		t.known[id] = known{has, labels, next}
	}
	for id, node := range nodes {
		if k, ok := t.known[id]; ok {
			err = errors.Join(err, t.label(ctx, node, k.labels))
			next = slices.MinFunc([]time.Time{next, k.until}, time.Time.Compare)
		}
	}
	return controller.Result{RequeueAfter: max(time.Until(next), time.Millisecond)}, err
}

// instances returns the nodes of this cloud, by instance.
func (t *tagger) instances() (map[string]*corev1.Node, error) {
	of := map[string]*corev1.Node{}
	for node, err := range t.nodes.All() {
		if err != nil {
			return nil, err
		}
		if id, ok := t.cloud.Instance(node.Spec.ProviderID); ok {
			of[id] = node
		}
	}
	return of, nil
}

// label applies a node's labels unless it has them. The API server knows which labels are ours: those that we applied.
// It removes the ones that we no longer apply, and leaves all others alone.
func (t *tagger) label(ctx context.Context, node *corev1.Node, labels map[string]string) error {
	ours, err := applycore.ExtractNode(node, manager)
	if err != nil {
		return fmt.Errorf("read the managed fields of %s: %w", node.Name, err)
	}
	if maps.Equal(ours.Labels, labels) {
		return nil
	}
	// The UID keeps this from creating a node that was deleted, and from labelling one that took its name.
	written, err := t.client.CoreV1().Nodes().Apply(ctx, applycore.Node(node.Name).WithUID(node.UID).WithLabels(labels),
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) && strings.Contains(err.Error(), "metadata.uid") {
		return nil // the node is gone, or another one has its name
	} else if err != nil {
		return err
	}
	slog.Info("labelled", "node", node.Name, "labels", labels)
	return t.nodes.Await(ctx, written)
}

const manager = "node-tagger"
