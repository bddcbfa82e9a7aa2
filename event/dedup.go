package event

import "sync"

// Dedup remembers the ids of recent events, so that a consumer handles each once although deliveries repeat. It is safe for
// concurrent use. It does not survive a restart of the process: for that, store handled ids together with the effect, for
// example in the same transaction.
type Dedup struct {
	mu   sync.Mutex
	at   map[string]int // position in the ring
	ring []string
	next int
}

// NewDedup returns a Dedup for so many ids, at least 1. A repeat follows a failure of the sender or of the connection, and
// comes within the events that were in flight: some thousands are plenty, unless a sink is rewound. An id takes about 100
// bytes.
func NewDedup(size int) *Dedup {
	return &Dedup{at: map[string]int{}, ring: make([]string, max(size, 1))}
}

// Seen reports whether an id came before, and remembers it. If the event cannot be handled, call Forget, so that its repeat is
// handled.
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
