package store

import "sync"

// maxFew is the number of deltas for which a queue keeps its own slice. For more, it borrows one.
const maxFew = 16

// page is the memory for the deltas of a consumer's current batch, reused once it asks for the next one. The zero
// value is ready to use.
type page struct {
	few  []Delta
	many *[]Delta // nil: not borrowed
	used int      // upper bound of the deltas used
}

// pages are the unused slices, each large enough for a batch.
var pages sync.Pool

// deltas returns an empty slice for the deltas of n objects: usually one each, two for a replaced object.
func (p *page) deltas(n int) []Delta {
	p.used = 2 * n
	switch {
	case n == 0:
		return nil
	case n < maxFew:
		if p.few == nil {
			p.few = make([]Delta, 0, maxFew)
		}
		return p.few
	}
	p.many, _ = pages.Get().(*[]Delta)
	if p.many == nil {
		many := make([]Delta, 0, maxBatch+1)
		p.many = &many
	}
	return *p.many
}

// clear releases the versions.
func (p *page) clear() {
	clear(p.few[:min(p.used, cap(p.few))])
	if p.many != nil {
		clear((*p.many)[:min(p.used, cap(*p.many))])
		pages.Put(p.many)
		p.many = nil
	}
	p.used = 0
}
