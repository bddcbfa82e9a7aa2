package clientgo

import "sync"

// queue holds what one handler has yet to be told. It keeps every note while they take no more than
// its budget, if need be without the objects at hand; beyond, it folds them by object, until the handler
// has captured up: what is left of an object's changes is the difference between what the handler was told
// last and what is.
type queue struct {
	budget    int64 // in bytes; negative: there is none
	always    bool  // it folds from the first
	onDropped func(*notification)
	pack      func(any) *item

	mu           sync.Mutex
	cond         sync.Cond
	closed       bool
	notes        []*notification // while it does not fold
	head         int             // the first one
	bytes        int64           // without objects at hand
	decodedBytes int64           // estimated size of the decoded objects of queued notifications
	decoded      int             // notifications with decoded objects

	folding     bool
	fold        map[string]*folded
	first, last *folded // in the order of the first change
	foldedAway  uint64  // notes that were folded away, ever
}

// folded is what is left of the changes of one object: one note, or a deletion and what came after.
type folded struct {
	key        string
	a, b       *notification
	prev, next *folded
}

// newQueue returns a queue. dead hears of notes of the initial state that are folded away; pack makes items
// of deleted objects that cannot stay at hand.
func newQueue(budget int64, always bool, onDropped func(*notification), pack func(any) *item) *queue {
	q := &queue{budget: budget, always: always, onDropped: onDropped, pack: pack}
	q.cond.L = &q.mu
	return q
}

// push adds a note, and tells whether the queue began to fold because of it. It does not wait.
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

// exceededBy tells whether a note is too much; the only one never is.
func (q *queue) exceededBy(n *notification) bool {
	return q.budget >= 0 && len(q.notes) > q.head && q.bytes+q.decodedBytes+n.weight()+n.decodedBytes() > q.budget
}

// count notes that a note came, or with -1 that it went.
func (q *queue) count(n *notification, sign int) {
	q.bytes += int64(sign) * n.weight()
	q.decodedBytes += int64(sign) * n.decodedBytes()
	if n.hasDecoded() {
		q.decoded += sign
	}
}

// strip lets go of the objects at hand. Those that have some are among the first (maxDecodedNotes).
func (q *queue) strip() {
	for i := q.head; q.decoded > 0 && i < len(q.notes); i++ {
		if n := q.notes[i]; n.hasDecoded() {
			q.count(n, -1)
			q.notes[i] = n.withoutObjects(q.pack)
			q.count(q.notes[i], 1)
		}
	}
}

// next waits for the next note; false is returned once the queue is closed.
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
	case q.head == len(q.notes): // the array is kept, unless it is large
		q.notes, q.head = q.notes[:0], 0
		if cap(q.notes) > keepNotesCap {
			q.notes = nil
		}
	case q.head > keepNotesCap && 2*q.head > len(q.notes):
		q.notes = append(make([]*notification, 0, 2*(len(q.notes)-q.head)), q.notes[q.head:]...)
		q.head = 0
	}
	return n, true
}

// keepNotesCap is how many notes a queue keeps the room for.
const keepNotesCap = 1024

// close drops what is queued.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.notes, q.head, q.fold, q.first, q.last = nil, 0, nil, nil, nil
	q.bytes, q.decodedBytes, q.decoded = 0, 0, 0
	q.cond.Broadcast()
}

// len is how many notes are queued, or objects while they are folded.
func (q *queue) len() int {
	if q.folding {
		return len(q.fold)
	}
	return len(q.notes) - q.head
}

// waiting is len, for others.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.len()
}

// lag is how much is queued, and how much was folded away.
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

// add folds a note in.
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
		if f.b = q.merge(f.b, n); f.b != nil && f.b.op == deleted { // one deletion says it, with the last words
			f.a, f.b = f.b, nil
			q.foldedAway++
		}
	case f.a.op == deleted && n.op != deleted: // an addition, or what became of an object that was put there by hand
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

// merge returns what is left of two changes of an object, of which the handler knows neither; nil is
// nothing.
func (q *queue) merge(a, n *notification) *notification {
	if n.op == resynced {
		return a
	}
	q.foldedAway++
	switch {
	case a.op == resynced, a.op == deleted: // a deletion of what is not there is told again
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
	const own = 96 // with its place in the map
	w := own + f.a.weight()
	if f.b != nil {
		w += f.b.weight()
	}
	return w
}

// takeFolded removes the first note.
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

// unlink takes out what an object has left. Of a folded queue that gets empty so, the map stays.
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
