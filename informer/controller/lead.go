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

// candidate is a process that competes for a lead. Nil leads at once.
type candidate struct {
	*leaderelection.LeaderElector
	led    chan struct{} // closed when it leads
	margin time.Duration // how much of the lease must be left to begin something
}

// candidate makes one of the options, which are checked by that.
func (c *Controller) candidate() (*candidate, error) {
	if c.o.Lock == nil {
		return nil, nil
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
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.o.Lock, LeaseDuration: l.Duration, RenewDeadline: l.Renew, RetryPeriod: l.Retry, Name: c.name, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(led) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("compete for the lead: %w", err)
	}
	return &candidate{elector, led, l.Duration - l.Renew}, nil
}

// lead runs work until ctx ends: at once, or, with a lock, while this process has it. Work begins nothing while holds
// returns false. lead returns errLost when the lead was lost.
func (c *candidate) lead(ctx context.Context, work func(ctx context.Context, holds func() bool)) error {
	if c == nil {
		work(ctx, func() bool { return true })
		return nil
	}
	leading, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	// The lease is given back once the last Reconcile has ended: what runs must not run beside the next leader's.
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(electing)
		lost(errLost)
	}()
	select {
	case <-c.led:
		// A process that was suspended, or cut off, learns that it does not lead any more when it next tries to renew.
		// Until then it may begin nothing once its last renewal is too old.
		work(leading, func() bool { return c.IsLeader() && c.Check(-c.margin) == nil })
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
