package clientgo

import "sync"

// queue holds one handler's notifications. It keeps every notification within its budget, without decoded objects if
// necessary. Beyond the budget it folds them by object until the handler has caught up: of an object's changes, only
// the difference between the last delivered and the current state is left.
type queue struct {
	budget    int64 // in bytes; negative: no limit
	always    bool  // it always folds
	onDropped func(*notification)
	pack      func(any) *item

	mu           sync.Mutex
	cond         sync.Cond
	closed       bool
	notes        []*notification // while not folding
	head         int             // index of the next notification
	bytes        int64           // without decoded objects
	decodedBytes int64           // estimated size of the decoded objects of queued notifications
	decoded      int             // notifications with decoded objects

	folding     bool
	fold        map[string]*folded
	first, last *folded // in the order of each object's first change
	foldedAway  uint64  // total number of notifications folded away
}

// folded is what is left of one object's changes: one notification, or a deletion and a later one.
type folded struct {
	key        string
	a, b       *notification
	prev, next *folded
}

// newQueue returns a queue. onDropped is called with notifications of the initial state that are folded away; pack
// makes items of deleted objects that cannot stay decoded.
func newQueue(budget int64, always bool, onDropped func(*notification), pack func(any) *item) *queue {
	q := &queue{budget: budget, always: always, onDropped: onDropped, pack: pack}
	q.cond.L = &q.mu
	return q
}

// push adds a notification without waiting, and reports whether the queue began to fold because of it.
func (q *queue) push(n *notification) (began bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	switch {
	case q.folding:
		q.add(n)
	case q.always:
		q.startFolding()
		q.add(n)
	case !q.exceededBy(n):
		q.count(n, 1)
		q.notes = append(q.notes, n)
	default:
		q.strip()
		if n = n.withoutObjects(q.pack); q.exceededBy(n) {
			began = true
			q.startFolding()
			q.add(n)
			break
		}
		q.count(n, 1)
		q.notes = append(q.notes, n)
	}
	q.cond.Signal()
	return began
}

// exceededBy reports whether a notification would exceed the budget. A single one never does.
func (q *queue) exceededBy(n *notification) bool {
	return q.budget >= 0 && len(q.notes) > q.head && q.bytes+q.decodedBytes+n.weight()+n.decodedBytes() > q.budget
}

// count accounts for a notification that is added (sign 1) or removed (-1).
func (q *queue) count(n *notification, sign int) {
	q.bytes += int64(sign) * n.weight()
	q.decodedBytes += int64(sign) * n.decodedBytes()
	if n.hasDecoded() {
		q.decoded += sign
	}
}

// strip drops the decoded objects. Only the first maxDecodedNotes notifications have any.
func (q *queue) strip() {
	for i := q.head; q.decoded > 0 && i < len(q.notes); i++ {
		if n := q.notes[i]; n.hasDecoded() {
			q.count(n, -1)
			q.notes[i] = n.withoutObjects(q.pack)
			q.count(q.notes[i], 1)
		}
	}
}

// next waits for the next notification. It returns false once the queue is closed.
func (q *queue) next() (*notification, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && q.len() == 0 {
		q.cond.Wait()
	}
	if q.closed {
		return nil, false
	}
	if q.folding {
		return q.takeFolded(), true
	}
	n := q.notes[q.head]
	q.notes[q.head] = nil
	q.head++
	q.count(n, -1)
	switch {
	case q.head == len(q.notes): // keep the array, unless it is large
		q.notes, q.head = q.notes[:0], 0
		if cap(q.notes) > maxIdleQueue {
			q.notes = nil
		}
	case q.head > maxIdleQueue && 2*q.head > len(q.notes):
		q.notes = append(make([]*notification, 0, 2*(len(q.notes)-q.head)), q.notes[q.head:]...)
		q.head = 0
	}
	return n, true
}

// maxIdleQueue is the capacity that an empty queue keeps.
const maxIdleQueue = 1024

// close drops all notifications.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.notes, q.head, q.fold, q.first, q.last = nil, 0, nil, nil, nil
	q.bytes, q.decodedBytes, q.decoded = 0, 0, 0
	q.cond.Broadcast()
}

// len returns the number of notifications, or of objects while folding. The caller holds mu.
func (q *queue) len() int {
	if q.folding {
		return len(q.fold)
	}
	return len(q.notes) - q.head
}

// waiting is len for callers without the lock.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.len()
}

// lag returns how much is queued and how much was folded away.
func (q *queue) lag() (notes int, bytes int64, foldedAway uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.len(), q.bytes + q.decodedBytes, q.foldedAway
}

func (q *queue) startFolding() {
	q.folding, q.fold = true, map[string]*folded{}
	notes := q.notes[q.head:]
	q.notes, q.head, q.bytes, q.decodedBytes, q.decoded = nil, 0, 0, 0, 0
	for _, n := range notes {
		q.add(n)
	}
}

// add folds a notification in.
func (q *queue) add(n *notification) {
	f := q.fold[n.key]
	if f == nil {
		f = &folded{key: n.key, a: n.withoutObjects(q.pack), prev: q.last}
		q.fold[n.key] = f
		if q.last == nil {
			q.first = f
		} else {
			q.last.next = f
		}
		q.last = f
		q.bytes += f.weight()
		return
	}
	q.bytes -= f.weight()
	switch {
	case f.b != nil:
		if f.b = q.merge(f.b, n); f.b != nil && f.b.op == deleted { // one deletion is enough, with the last state
			f.a, f.b = f.b, nil
			q.foldedAway++
		}
	case f.a.op == deleted && n.op != deleted: // an addition, or a change of an object that the program had added itself
		f.b = n.withoutObjects(q.pack)
	default:
		f.a = q.merge(f.a, n)
	}
	if f.a == nil {
		q.unlink(f)
		return
	}
	q.bytes += f.weight()
}

// merge merges two undelivered changes of an object. It returns nil if nothing is left.
func (q *queue) merge(a, n *notification) *notification {
	if n.op == resynced {
		return a
	}
	q.foldedAway++
	switch {
	case a.op == resynced, a.op == deleted: // a repeated deletion of a missing object is delivered
		return n.withoutObjects(q.pack)
	case n.op == deleted && a.op == added:
		if a.initial {
			q.onDropped(a)
		}
		return nil
	case n.op == deleted:
		return n.withoutObjects(q.pack)
	}
	b := &notification{op: a.op, initial: a.initial, key: a.key, old: a.old, new: n.new}
	b.oldWeak.set(firstOf(a.oldObj, &a.oldWeak))
	b.newWeak.set(firstOf(n.newObj, &n.newWeak))
	return b
}

func (f *folded) weight() int64 {
	const own = 96 // with its map entry
	w := own + f.a.weight()
	if f.b != nil {
		w += f.b.weight()
	}
	return w
}

// takeFolded removes the first notification.
func (q *queue) takeFolded() *notification {
	f := q.first
	n := f.a
	q.bytes -= f.weight()
	if f.b != nil {
		f.a, f.b = f.b, nil
		q.bytes += f.weight()
		return n
	}
	q.unlink(f)
	if len(q.fold) == 0 && !q.always {
		q.folding, q.fold = false, nil
	}
	return n
}

// unlink removes an object's entry. The map stays, even if it becomes empty.
func (q *queue) unlink(f *folded) {
	delete(q.fold, f.key)
	if f.prev == nil {
		q.first = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		q.last = f.prev
	} else {
		f.next.prev = f.prev
	}
}
