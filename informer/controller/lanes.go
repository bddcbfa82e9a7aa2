package controller

import "sync"

// lanes are the storage of the queue: keys of changes come before those of the first list.
//
// Push, Touch, Pop and Len are called by the queue, under its lock; see workqueue.Queue.
type lanes struct {
	mu       sync.Mutex
	first    map[Key]bool // to be pushed into the slow lane
	changed  map[Key]bool // to be pushed into the fast lane, whatever else is added meanwhile
	slow     map[Key]bool // those of the slow lane that were not promoted
	fast     fifo
	patience fifo // the slow lane
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

// initial says that the next addition of a key is one of the first list. While the key is reconciled, its additions are
// pushed once, when that has ended: then a change among them counts, whichever was first.
func (l *lanes) initial(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.changed[k] {
		l.first[k] = true
	}
}

// change says that it is one of a change.
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
		l.patience.push(k)
		return
	}
	l.fast.push(k)
}

// Touch implements workqueue.Queue: a key that waits was added again.
func (l *lanes) Touch(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.changed, k)
	switch {
	case l.first[k]:
		delete(l.first, k)
	case l.slow[k]:
		delete(l.slow, k) // what is left of it in the slow lane is passed over
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
		if k := l.patience.pop(); l.slow[k] {
			delete(l.slow, k)
			return k
		}
	}
}
