package auth

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// memo remembers the results of calls for a short time, the most recently used ones up to a limit. Concurrent calls
// for one key share one call, which the first caller makes: there is no goroutine to wait for.
type memo[K comparable, V any] struct {
	limit int // at least 1

	mu      sync.Mutex
	entries map[K]*list.Element // of order, with *entry
	order   list.List           // the most recently used first
	calls   map[K]*call[V]
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

type call[V any] struct {
	done  chan struct{} // closed at the end
	ended bool          // with value and err; else its caller gave up
	value V
	err   error
}

// do returns the remembered value for the key, or else that of ask, which also returns how long to remember it,
// counted from the start of the call. Errors are not remembered, but shared.
func (m *memo[K, V]) do(ctx context.Context, key K, ask func() (V, time.Duration, error)) (V, error) {
	for {
		value, c, mine := m.begin(key)
		switch {
		case c == nil:
			return value, nil
		case mine:
			return m.lead(ctx, key, c, ask)
		}
		select {
		case <-c.done:
			if c.ended {
				return c.value, c.err
			} // else ask again: the end of another request is not this one's
		case <-ctx.Done():
			return value, ctx.Err()
		}
	}
}

// begin returns a remembered value, or else the call to wait for or, if mine, to make.
func (m *memo[K, V]) begin(key K) (value V, c *call[V], mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.fresh(key); e != nil {
		m.order.MoveToFront(m.entries[key])
		return e.value, nil, false
	}
	if c := m.calls[key]; c != nil {
		return value, c, false
	}
	if m.calls == nil {
		m.calls = map[K]*call[V]{}
	}
	c = &call[V]{done: make(chan struct{})}
	m.calls[key] = c
	return value, c, true
}

func (m *memo[K, V]) lead(ctx context.Context, key K, c *call[V], ask func() (V, time.Duration, error)) (V, error) {
	began, keep := time.Now(), time.Duration(0)
	defer func() { // also if ask panics
		m.mu.Lock()
		defer m.mu.Unlock()
		if c.ended && c.err == nil && keep > 0 {
			m.remember(&entry[K, V]{key, c.value, began.Add(keep)})
		}
		delete(m.calls, key)
		close(c.done)
	}()
	value, keep2, err := ask()
	c.value, c.err, keep = value, err, keep2
	c.ended = err == nil || ctx.Err() == nil
	return value, err
}

// known reports whether the key's value is remembered.
func (m *memo[K, V]) known(key K) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fresh(key) != nil
}

func (m *memo[K, V]) fresh(key K) *entry[K, V] {
	el := m.entries[key]
	if el == nil {
		return nil
	}
	e := el.Value.(*entry[K, V])
	if !time.Now().Before(e.until) {
		m.order.Remove(el)
		delete(m.entries, key)
		return nil
	}
	return e
}

func (m *memo[K, V]) remember(e *entry[K, V]) {
	if m.entries == nil {
		m.entries = map[K]*list.Element{}
	}
	if old := m.entries[e.key]; old != nil {
		m.order.Remove(old)
	}
	m.entries[e.key] = m.order.PushFront(e)
	for len(m.entries) > m.limit {
		last := m.order.Back()
		m.order.Remove(last)
		delete(m.entries, last.Value.(*entry[K, V]).key)
	}
}
