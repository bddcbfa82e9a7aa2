// Package dropin compares drop-in informers with client-go's own, on a real API server: both follow the same
// objects through random changes and failures, and must have called their handlers alike.
//
// TATTLER_DROPIN is the number of steps (24). TATTLER_SEED repeats the choices of an earlier run, but not the
// timing of the servers.
package dropin

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

const seedEnv = "TATTLER_SEED"

// here is the control plane of every test.
var here struct {
	*devcluster.Cluster
	cfg    *rest.Config
	client *kubernetes.Clientset
	seed   uint64
	steps  int
}

func TestMain(m *testing.M) {
	steps := uint64(24)
	here.seed = rand.Uint64N(1e9)
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}} //nolint:reassign // on purpose
	klog.SetOutput(io.Discard)                                                                              // failures are expected
	os.Exit(clustertest.Main(m, clustertest.Options{
		PodsAnywhere: true,
		FastPings:    true,
		Numbers:      map[string]*uint64{"TATTLER_DROPIN": &steps, seedEnv: &here.seed},
		Begin: func(_ context.Context, c *devcluster.Cluster) (err error) {
			here.Cluster, here.steps = c, int(steps)
			if here.cfg, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
				return fmt.Errorf("read kubeconfig: %w", err)
			}
			here.cfg.QPS = -1
			here.client, err = kubernetes.NewForConfig(here.cfg)
			return err
		},
	}))
}
