// Package dropin holds informers that stand in for client-go's to client-go's own, on a real API server: both
// follow the same objects through random changes and failures, and must have told their handlers the same.
//
// TATTLER_DROPIN is how many steps are done (24), TATTLER_SEED repeats the choices of a former run, though not
// the timing of the servers.
package dropin

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/tattler-dev/tattler/devcluster"
)

const (
	stepsEnv = "TATTLER_DROPIN"
	seedEnv  = "TATTLER_SEED"
)

// here is the control plane of every test.
var here struct {
	*devcluster.Cluster
	cfg    *rest.Config
	client *kubernetes.Clientset
	seed   uint64
	steps  int
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	steps, err := number(stepsEnv, 24)
	if err != nil {
		return complain(err)
	}
	if here.seed, err = number(seedEnv, rand.Uint64N(1e9)); err != nil {
		return complain(err)
	}
	here.steps = int(steps)
	fmt.Fprintf(os.Stderr, "dropin: %d steps, %s=%d\n", steps, seedEnv, here.seed)
	// client-go pings a silent HTTP/2 connection after these; by default a stalled one would take 45 s.
	for _, env := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		if err := os.Setenv(env, "2"); err != nil {
			return complain(err)
		}
	}
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}} //nolint:reassign // it is meant to be
	klog.SetOutput(io.Discard)                                                                              // failures are what is tested
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)                                // cold, it is built first
	defer cancel()
	here.Cluster, err = devcluster.Start(ctx, devcluster.Options{Out: os.Stderr, APIServerArgs: []string{
		"--disable-admission-plugins=ServiceAccount", // pods without the controller that makes service accounts
	}})
	if err != nil {
		return complain(err)
	}
	code := 1
	if here.cfg, err = clientcmd.BuildConfigFromFlags("", here.Kubeconfig()); err == nil {
		here.cfg.QPS = -1
		if here.client, err = kubernetes.NewForConfig(here.cfg); err == nil {
			code = m.Run()
		}
	}
	if err != nil {
		code = complain(err)
	}
	if err := here.Stop(); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "dropin:", err)
	return 1
}

func number(env string, otherwise uint64) (uint64, error) {
	text := os.Getenv(env)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", env, err)
	}
	return n, nil
}
