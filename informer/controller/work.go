package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// How long Run waits for calls of Reconcile whose context has ended: after Options.Grace, and after a lost lease.
const (
	heedEnd  = 5 * time.Second
	heedLoss = time.Second
)

// UnfinishedError says that calls of Reconcile still run although their context has ended. The lease, if there is one, is
// not released. The program should exit.
type UnfinishedError struct{ Keys []Key }

func (e *UnfinishedError) Error() string {
	names := make([]string, len(e.Keys))
	for i, k := range e.Keys {
		names[i] = k.String()
	}
	slices.Sort(names)
	return fmt.Sprintf("Reconcile ignores the end of its context, and still runs for %s", strings.Join(names, ", "))
}

// work runs the workers until ctx ends, and lets them finish.
func (c *Controller) work(ctx context.Context, t term) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers sync.WaitGroup
	for range c.o.Workers {
		workers.Go(func() { c.worker(ctx, running, t.holds) })
	}
	ended := make(chan struct{})
	go func() {
		workers.Wait()
		close(ended)
	}()
	<-ctx.Done()
	c.queue.ShutDown()
	return c.finish(ended, t.lost, cancel)
}

// worker reconciles queued keys until the queue is shut down; it starts no call after the end of ctx, or while holds
// returns false.
func (c *Controller) worker(ctx, running context.Context, holds func() bool) {
	for {
		key, ended := c.queue.Get()
		if ended {
			return
		}
		if allowed(ctx, holds) { // after the end, queued keys are dropped
			c.mark(key, true)
			c.reconcileKey(running, key)
			c.mark(key, false)
		}
		c.queue.Done(key)
	}
}

// finish waits until the workers have ended. It cancels running calls after Options.Grace, or at once if leadership is
// lost, and does not wait for those that ignore that.
func (c *Controller) finish(ended, lost <-chan struct{}, cancel func()) error {
	select {
	case <-lost:
	default:
		select {
		case <-ended:
			return nil
		case <-time.After(c.o.Grace):
			cancel()
			return c.heed(ended, heedEnd)
		case <-lost:
		}
	}
	cancel()
	if c.o.Hooks.Lost != nil {
		c.o.Hooks.Lost(c.unfinished())
	}
	if err := c.heed(ended, heedLoss); err != nil {
		return fmt.Errorf("%w; %w", ErrLost, err)
	}
	return ErrLost
}

// heed waits until the workers have ended, or returns an *UnfinishedError.
func (c *Controller) heed(ended <-chan struct{}, within time.Duration) error {
	select {
	case <-ended:
		return nil
	case <-time.After(within):
	}
	if keys := c.unfinished(); len(keys) > 0 {
		return &UnfinishedError{keys}
	}
	<-ended
	return nil
}

func (c *Controller) mark(key Key, running bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if running {
		c.running[key] = struct{}{}
	} else {
		delete(c.running, key)
	}
}

// unfinished returns the keys that are being reconciled.
func (c *Controller) unfinished() []Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.running))
}

// allowed waits until holds returns true, and reports false if ctx ends first.
func allowed(ctx context.Context, holds func() bool) bool {
	for ctx.Err() == nil {
		if holds() {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}
