// Package share divides what a daemon does at once among its viewers, so that one of them cannot take all of it.
package share

import (
	"context"
	"sync"
)

// Pool is a number of places, of which one viewer has some at most. It is safe for concurrent use.
type Pool struct {
	places, each int

	mu    sync.Mutex
	taken int
	of    map[string]int // by viewer
	freed chan struct{}  // closed when a place becomes free
}

// New returns a pool of places, of which a viewer has at most each.
func New(places, each int) *Pool {
	return &Pool{places: places, each: each, of: map[string]int{}, freed: make(chan struct{})}
}

// Try takes a place, and reports whether it could.
func (p *Pool) Try(viewer string) bool {
	ok, _ := p.take(viewer)
	return ok
}

// Enter waits for a place. An error is ctx's.
func (p *Pool) Enter(ctx context.Context, viewer string) error {
	for {
		ok, freed := p.take(viewer)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Pool) take(viewer string) (ok bool, freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.places || p.of[viewer] >= p.each {
		return false, p.freed
	}
	p.taken++
	p.of[viewer]++
	return true, nil
}

// Leave gives a viewer's place back.
func (p *Pool) Leave(viewer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[viewer]--; p.of[viewer] == 0 {
		delete(p.of, viewer)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}
