package event

import "sync"

// Dedup remembers the ids of the last events, so that a consumer handles each once although deliveries
// repeat. It is safe for concurrent use. It remembers nothing over a restart of the process: there, ids that
// were handled belong where the handling's effect is, such as in the same transaction.
type Dedup struct {
	mu   sync.Mutex
	at   map[string]int // the place in the ring
	ring []string
	next int
}

// NewDedup returns a memory of so many ids, at least 1. A repeat comes after a failure of the sender or of
// the way to it, and follows the first within the events that were on their way: some thousands are plenty,
// unless a sink is rewound. An id takes about 100 bytes.
func NewDedup(size int) *Dedup {
	return &Dedup{at: map[string]int{}, ring: make([]string, max(size, 1))}
}

// Seen tells whether an id came before, and remembers it. Who cannot handle the event says Forget, so that
// its repeat is handled.
func (d *Dedup) Seen(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.at[id]; ok {
		return true
	}
	if old := d.ring[d.next]; old != "" {
		delete(d.at, old)
	}
	d.ring[d.next], d.at[id] = id, d.next
	d.next = (d.next + 1) % len(d.ring)
	return false
}

// Forget forgets an id.
func (d *Dedup) Forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i, ok := d.at[id]; ok {
		delete(d.at, id)
		d.ring[i] = ""
	}
}
