package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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

// ErrLost ends a controller that no longer leads.
var ErrLost = errors.New("leadership was lost: another process may reconcile now")

// term is the time for which this process may reconcile.
type term struct {
	holds func() bool     // whether a call may start now
	lost  <-chan struct{} // closed when leadership is lost
}

// candidate takes part in leader election; a nil candidate leads at once.
type candidate struct {
	*leaderelection.LeaderElector
	lock   *lock
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
	led, lock := make(chan struct{}), &lock{Interface: c.o.Lock}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: l.Duration, RenewDeadline: l.Renew, RetryPeriod: l.Retry, Name: c.name, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(led) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up leader election: %w", err)
	}
	return &candidate{elector, lock, led, l.Duration - l.Renew}, nil
}

// lock does not release the lease while a call that ignores its context may still write: the next leader waits until the
// lease has expired.
type lock struct {
	resourcelock.Interface
	keep atomic.Bool
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.keep.Load() {
		return errors.New("the lease is not released: a call of Reconcile has not returned")
	}
	return l.Interface.Update(ctx, r)
}

// lead runs work until ctx ends: at once or, with a lock, while this process leads. It returns ErrLost if leadership was
// lost.
func (c *candidate) lead(ctx context.Context, work func(context.Context, term) error) error {
	if c == nil {
		return work(ctx, term{holds: func() bool { return true }})
	}
	leading, stop := context.WithCancel(ctx)
	defer stop()
	// The lease is released after the last Reconcile has ended, so that no call overlaps with the next leader's.
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	ended := make(chan struct{})
	go func() {
		defer stop()
		defer close(ended)
		c.Run(electing)
	}()
	var err error
	select {
	case <-c.led:
		// A process that was suspended or disconnected learns that it lost the lease when it next tries to renew it.
		// Until then it must start no call once its last renewal is too old.
		err = work(leading, term{holds: func() bool { return c.IsLeader() && c.Check(-c.margin) == nil }, lost: ended})
	case <-ctx.Done():
	case <-ended:
		err = ErrLost
	}
	var unfinished *UnfinishedError
	c.lock.keep.Store(errors.As(err, &unfinished))
	release()
	<-ended
	return err
}
