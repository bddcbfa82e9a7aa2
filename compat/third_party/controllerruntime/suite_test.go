// Package controllerruntime runs the tests that controller-runtime has for its cache, with client-go's informers
// and with those that stand in for them; README.md says what was changed.
package controllerruntime

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tattler-dev/tattler/devcluster"
	"github.com/tattler-dev/tattler/informer/clientgo"
)

func TestCache(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	reporter.Succinct, reporter.NoColor = true, true
	RunSpecs(t, "Cache Suite", suite, reporter)
}

var (
	cluster *devcluster.Cluster
	cfg     *rest.Config
)

var _ = BeforeSuite(func() {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // cold, it is built first
	defer cancel()
	var err error
	cluster, err = devcluster.Start(ctx, devcluster.Options{Out: os.Stderr, APIServerArgs: []string{
		"--disable-admission-plugins=ServiceAccount", // as envtest, with which their tests run, has it
	}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	cfg, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	cfg.QPS = -1
})

// candidate is a way to have informers.
type candidate struct {
	name string
	// open prepares informers for a cache of this configuration. The HTTP client may be nil.
	open func(*rest.Config) (*http.Client, newInformer, error)
}

type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// candidates are those that are judged: all of them only where allEnv is set, since each takes minutes.
func candidates() []candidate {
	all := []candidate{
		{name: "raw", open: raw(clientgo.Options{})},
		{name: "decoded", open: decoded},
		{name: "client-go", open: func(*rest.Config) (*http.Client, newInformer, error) {
			return nil, toolscache.NewSharedIndexInformer, nil
		}},
	}
	if os.Getenv(allEnv) == "" {
		return all[:1]
	}
	return all
}

const allEnv = "TATTLER_COMPAT_ALL"

// current is whose turn it is.
var current candidate

// both describes specs once for each candidate.
func both(text string, specs func()) bool {
	for _, c := range candidates() {
		Describe(text+", "+c.name, func() {
			BeforeEach(func() { current = c })
			specs()
		})
	}
	return true
}

// newCache is cache.New with the informers of whose turn it is, unless a spec brings its own.
func newCache(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
	if opts.NewInformer == nil {
		client, build, err := current.open(cfg)
		if err != nil {
			return nil, err
		}
		opts.HTTPClient, opts.NewInformer = client, build
	}
	return cache.New(cfg, opts)
}
