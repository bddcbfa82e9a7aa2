package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// Lease says how processes compete for Options.Lock; 0 means what client-go recommends.
type Lease struct {
	// Duration is after how long others may take a lead that was not renewed; 15 s.
	Duration time.Duration
	// Renew is for how long the leader tries to renew it before it gives up; 10 s.
	Renew time.Duration
	// Retry is the wait between attempts; 2 s.
	Retry time.Duration
}

// errLost ends a controller that does not lead any more.
var errLost = errors.New("the lead was lost: somebody else may reconcile now")

// lead runs work until ctx ends: at once, or, with a lock, while this process has it. Work begins nothing while holds
// returns false. lead returns errLost when the lead was lost.
func (c *Controller) lead(ctx context.Context, work func(ctx context.Context, holds func() bool)) error {
	if c.o.Lock == nil {
		work(ctx, func() bool { return true })
		return nil
	}
	l := c.o.Lease
	if l.Duration == 0 {
		l.Duration = 15 * time.Second
	}
	if l.Renew == 0 {
		l.Renew = 10 * time.Second
	}
	if l.Retry == 0 {
		l.Retry = 2 * time.Second
	}
	led := make(chan struct{})
	leading, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.o.Lock, LeaseDuration: l.Duration, RenewDeadline: l.Renew, RetryPeriod: l.Retry, Name: c.name, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(led) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("lead: %w", err)
	}
	// The lease is given back once the last Reconcile has ended: what runs must not run beside the next leader's.
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
		lost(errLost)
	}()
	select {
	case <-led:
		// A process that was suspended, or cut off, learns that it does not lead any more when it next tries to renew.
		// Until then it may begin nothing once its last renewal is too old.
		work(leading, func() bool { return elector.IsLeader() && elector.Check(l.Renew-l.Duration) == nil })
	case <-ctx.Done():
	case <-ended:
	}
	wasLost := errors.Is(context.Cause(leading), errLost)
	release()
	<-ended
	if wasLost && ctx.Err() == nil {
		return errLost
	}
	return nil
}
