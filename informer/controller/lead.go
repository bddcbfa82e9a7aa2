package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// Lease tunes leader election with Options.Lock; 0 means the value that client-go recommends.
type Lease struct {
	// Duration is the time after which others may take over a lease that was not renewed; default 15 s.
	Duration time.Duration
	// Renew is how long the leader tries to renew the lease before it gives up; default 10 s.
	Renew time.Duration
	// Retry is the wait between attempts; default 2 s.
	Retry time.Duration
}

// errLost ends a controller that no longer leads.
var errLost = errors.New("leadership was lost: another process may reconcile now")

// candidate takes part in leader election; a nil candidate leads at once.
type candidate struct {
	*leaderelection.LeaderElector
	led    chan struct{} // closed when it leads
	margin time.Duration // remaining lease time needed to start a call
}

// candidate makes a candidate from the options, and validates them.
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
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	return &candidate{elector, led, l.Duration - l.Renew}, nil
}

// lead runs work until ctx ends: at once or, with a lock, while this process leads. work must start no call while holds
// returns false. lead returns errLost if leadership was lost.
func (c *candidate) lead(ctx context.Context, work func(ctx context.Context, holds func() bool)) error {
	if c == nil {
		work(ctx, func() bool { return true })
		return nil
	}
	leading, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	// The lease is released after the last Reconcile has ended, so that no call overlaps with the next leader's.
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
		// A process that was suspended or disconnected learns that it lost the lease when it next tries to renew it.
		// Until then it must start no call once its last renewal is too old.
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
