// Package manager runs two controller-runtime managers on one real API server, one with client-go's informers and one
// with ours. At quiescence both must have reconciled, and must hold, the same objects.
//
// TATTLER_MANAGER is the number of writes (400). TATTLER_SEED repeats the choices of an earlier run.
package manager

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/devcluster/clustertest"
)

// here has the shared control plane and the parameters of the tests.
var here struct {
	cfg    *rest.Config
	seed   uint64
	writes int
}

func TestMain(m *testing.M) {
	writes := uint64(400)
	here.seed = rand.Uint64N(1e9)
	log.SetLogger(logr.Discard())
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}} //nolint:reassign // exported for this purpose
	klog.SetOutput(io.Discard)
	os.Exit(clustertest.Main(m, clustertest.Options{
		PodsAnywhere: true,
		Numbers:      map[string]*uint64{"TATTLER_MANAGER": &writes, "TATTLER_SEED": &here.seed},
		// client-go's metadata client filters watches, and a stopped filter may wait for its reader forever.
		Leaks: []string{"k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"},
		Begin: func(_ context.Context, c *devcluster.Cluster) (err error) {
			here.writes = int(writes)
			if here.cfg, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
				return fmt.Errorf("read kubeconfig: %w", err)
			}
			here.cfg.QPS = -1
			return nil
		},
	}))
}
