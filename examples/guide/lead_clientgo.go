package guide

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func leadClientGo(ctx context.Context, cfg *rest.Config, out io.Writer) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	return eachName(ctx, func(ctx context.Context, name string, stop func()) error {
		//guide:begin lead-clientgo
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "replicas"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					fmt.Fprintln(out, name, "leads") // run the controller until ctx ends
					stop()
				},
				OnStoppedLeading: func() {
					fmt.Fprintln(out, name, "leads no longer") // usually: os.Exit
				},
			},
		})
		//guide:end
		return nil
	})
}

// eachName runs a candidate after the other, until it calls stop.
func eachName(ctx context.Context, run func(ctx context.Context, name string, stop func()) error) error {
	for _, name := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(ctx)
		err := run(ctx, name, cancel)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}
