package controller

import "sync"

// lanes is the queue's storage: keys of changes come before keys of the first list.
//
// The queue calls Push, Touch, Pop and Len under its lock; see workqueue.Queue.
type lanes struct {
	mu        sync.Mutex
	first     map[Key]bool // keys to push into the slow lane
	changed   map[Key]bool // keys to push into the fast lane, even if a list adds them again
	slow      map[Key]bool // keys in the slow lane that were not promoted
	fast      fifo
	slowQueue fifo // the slow lane, with promoted keys
}

func newLanes() *lanes {
	return &lanes{first: map[Key]bool{}, changed: map[Key]bool{}, slow: map[Key]bool{}}
}

// fifo is a queue of keys.
type fifo struct {
	keys []Key
	head int
}

func (f *fifo) push(k Key) { f.keys = append(f.keys, k) }

func (f *fifo) empty() bool { return f.head == len(f.keys) }

func (f *fifo) pop() Key {
	k := f.keys[f.head]
	f.keys[f.head] = Key{}
	if f.head++; f.empty() {
		f.keys, f.head = nil, 0
	} else if f.head > 1024 && f.head > len(f.keys)/2 {
		f.keys, f.head = append([]Key(nil), f.keys[f.head:]...), 0
	}
	return k
}

// initial marks the next addition of a key as part of the first list. While the key is being reconciled, its additions are
// pushed once, after that call: then a change among them wins, in either order.
func (l *lanes) initial(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.changed[k] {
		l.first[k] = true
	}
}

// change marks the next addition of a key as a change.
func (l *lanes) change(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.first, k)
	l.changed[k] = true
}

// Push implements workqueue.Queue.
func (l *lanes) Push(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.changed, k)
	if l.first[k] {
		delete(l.first, k)
		l.slow[k] = true
		l.slowQueue.push(k)
		return
	}
	l.fast.push(k)
}

// Touch implements workqueue.Queue: a queued key was added again.
func (l *lanes) Touch(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.changed, k)
	switch {
	case l.first[k]:
		delete(l.first, k)
	case l.slow[k]:
		delete(l.slow, k) // Pop skips its entry in the slow lane
		l.fast.push(k)
	}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.fast.keys) - l.fast.head + len(l.slow)
}

// Pop implements workqueue.Queue.
func (l *lanes) Pop() Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.fast.empty() {
		return l.fast.pop()
	}
	for {
		if k := l.slowQueue.pop(); l.slow[k] {
			delete(l.slow, k)
			return k
		}
	}
}
