// Package manager runs a controller-runtime manager twice on one real API server, with client-go's informers and
// with those that stand in for them: at quiescence both must have reconciled the same, and hold the same.
//
// TATTLER_MANAGER is how many writes there are (400), TATTLER_SEED repeats the choices of a former run.
package manager

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tattler-dev/tattler/devcluster"
)

const (
	writesEnv = "TATTLER_MANAGER"
	seedEnv   = "TATTLER_SEED"
)

var here struct {
	*devcluster.Cluster
	cfg    *rest.Config
	seed   uint64
	writes int
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	writes, err := number(writesEnv, 400)
	if err != nil {
		return complain(err)
	}
	if here.seed, err = number(seedEnv, rand.Uint64N(1e9)); err != nil {
		return complain(err)
	}
	here.writes = int(writes)
	fmt.Fprintf(os.Stderr, "manager: %d writes, %s=%d\n", writes, seedEnv, here.seed)
	log.SetLogger(logr.Discard())
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}} //nolint:reassign // it is meant to be
	klog.SetOutput(io.Discard)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // cold, it is built first
	defer cancel()
	here.Cluster, err = devcluster.Start(ctx, devcluster.Options{Out: os.Stderr, APIServerArgs: []string{
		"--disable-admission-plugins=ServiceAccount", // pods without the controller that makes service accounts
	}})
	if err != nil {
		return complain(err)
	}
	var code int
	if here.cfg, err = clientcmd.BuildConfigFromFlags("", here.Kubeconfig()); err == nil {
		here.cfg.QPS = -1
		code = m.Run()
	} else {
		code = complain(err)
	}
	if err := here.Stop(); err != nil {
		return complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "manager:", err)
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
