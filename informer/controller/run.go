package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tattler-dev/tattler/informer"
)

// Run runs a cluster and the controllers that read from it until ctx ends or one of them fails. It can be a whole program.
// The controllers end first, then the cluster. Run returns the first error; it returns nil after the end of ctx.
func Run(ctx context.Context, cluster *informer.Cluster, controllers ...*Controller) error {
	return cluster.RunWhile(ctx, func(ctx context.Context) error {
		running, fail := context.WithCancelCause(ctx)
		defer fail(nil)
		var ran sync.WaitGroup
		for _, c := range controllers {
			ran.Go(func() {
				if err := c.Run(running); err != nil {
					fail(err)
				}
			})
		}
		<-running.Done()
		ran.Wait()
		return context.Cause(running)
	})
}

// logWaitEvery is how often a controller that waits for its caches logs why.
const logWaitEvery = 10 * time.Second

// wait waits until every source is synced.
func (c *Controller) wait(ctx context.Context) error {
	for _, s := range c.sources {
		again, err := c.waitFor(ctx, s)
		for again {
			c.o.Log.Warn("waiting for caches", "controller", c.name, "error", cause(err))
			again, err = c.waitFor(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("wait for caches: %w", err)
		}
	}
	return nil
}

// waitFor waits for a source to sync; again means that it is time to log why it has not, and to call waitFor again.
func (c *Controller) waitFor(ctx context.Context, s Source) (again bool, err error) {
	quiet, cancel := context.WithTimeout(ctx, logWaitEvery)
	defer cancel()
	err = s.wait(quiet)
	return err != nil && quiet.Err() != nil && ctx.Err() == nil, err
}

// cause returns why a source is not synced, if known: the error joined to that of the context.
func cause(err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		if all := joined.Unwrap(); len(all) > 1 {
			return all[1]
		}
	}
	return errors.New("the first list is under way")
}
